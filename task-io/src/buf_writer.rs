use crate::{
    AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, BufReader, ReadBuf,
    buf_reader::DEFAULT_CAPACITY, empty::total_len, write::write_zero,
};
use pin_project_lite::pin_project;
use std::{
    fmt,
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// A writer with a buffer, which makes many small writes cheap.
    ///
    /// It collects bytes until the next ones have no room, and then writes all of them. A write of
    /// more bytes than the buffer holds goes past it. The drop loses the bytes in the buffer: flush
    /// or shut down the writer first. Reads go past the buffer. A seek writes the buffer first. If
    /// that fails, nothing is sought. If the future of a seek is dropped, a read or a write cancels
    /// the seek, unless the inner writer has started it.
    ///
    /// ```
    /// use task_io::{AsyncWriteExt, BufWriter};
    ///
    /// let mut writer = BufWriter::new(Vec::new());
    /// futures::executor::block_on(writer.write_all(b"ab")).unwrap();
    /// assert_eq!(writer.buffer(), b"ab");
    /// futures::executor::block_on(writer.shutdown()).unwrap();
    /// assert_eq!(writer.into_inner(), b"ab");
    /// ```
    pub struct BufWriter<W> {
        #[pin]
        inner: W,
        buf: Vec<u8>,
        // How many bytes of the buffer the inner writer has taken. It is 0 except during a flush.
        written: usize,
        seek: Seek,
    }
}

/// The state of a seek.
#[derive(Debug, Clone, Copy)]
enum Seek {
    /// None has begun.
    Idle,
    /// The caller has started one; the inner writer has not.
    Wanted(SeekFrom),
    /// The inner writer seeks.
    Started,
}

/// ```
/// use std::pin::Pin;
/// use task_io::{AsyncWriteExt, BufWriter};
///
/// # futures::executor::block_on(async {
/// let mut writer = BufWriter::new(Vec::new());
/// writer.write_all(b"ab").await?;
/// writer.write_u8(b'c').await?;
/// assert_eq!((writer.buffer(), writer.get_ref().len()), (&b"abc"[..], 0));
/// writer.flush().await?;
/// assert_eq!((writer.buffer(), &writer.get_ref()[..]), (&b""[..], &b"abc"[..]));
///
/// let mut writer = BufWriter::with_capacity(2, writer.into_inner());
/// writer.write_all(b"long").await?;
/// writer.get_mut().push(b'!');
/// Pin::new(&mut writer).get_pin_mut().push(b'!');
/// assert_eq!(writer.into_inner(), b"abclong!!");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
impl<W: AsyncWrite> BufWriter<W> {
    /// Creates a writer with a buffer of 8 KiB.
    pub fn new(inner: W) -> Self {
        Self::with_capacity(DEFAULT_CAPACITY, inner)
    }

    /// Creates a writer with a buffer of `cap` bytes. With 0 it has no buffer.
    pub fn with_capacity(cap: usize, inner: W) -> Self {
        Self {
            inner,
            buf: Vec::with_capacity(cap),
            written: 0,
            seek: Seek::Idle,
        }
    }

    /// Returns the inner writer.
    pub fn get_ref(&self) -> &W {
        &self.inner
    }

    /// Returns the inner writer. Bytes that are written to it here come before those in the buffer.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Returns the inner writer, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().inner
    }

    /// Returns the inner writer. The bytes in the buffer are lost.
    pub fn into_inner(self) -> W {
        self.inner
    }

    /// Returns the bytes that the inner writer has not taken.
    pub fn buffer(&self) -> &[u8] {
        &self.buf[self.written..]
    }

    /// Forgets a seek whose future was dropped. The inner writer may have started it; else it never
    /// will.
    fn abandon_seek(self: Pin<&mut Self>) {
        *self.project().seek = Seek::Idle;
    }

    /// Writes all bytes of the buffer. After an error, those stay that were not written.
    fn poll_drain(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut this = self.project();
        let mut result = Ok(());
        while *this.written < this.buf.len() {
            let rest = &this.buf[*this.written..];
            match ready!(this.inner.as_mut().poll_write(cx, rest)) {
                Ok(0) => result = Err(write_zero()),
                Ok(len) => *this.written += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => result = Err(error),
            }
            if result.is_err() {
                break;
            }
        }
        this.buf.drain(..*this.written);
        *this.written = 0;
        Poll::Ready(result)
    }

    /// Makes room for `len` bytes, unless the buffer is empty and has no room for so many.
    fn poll_room(self: Pin<&mut Self>, cx: &mut Context<'_>, len: usize) -> Poll<io::Result<()>> {
        if len > self.buf.capacity() - self.buf.len() {
            self.poll_drain(cx)
        } else {
            Poll::Ready(Ok(()))
        }
    }

    /// Writes several slices to an inner writer that takes only one at once. Copies as many of them
    /// as there is room for.
    fn poll_write_each(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut bufs = bufs.iter().filter(|buf| !buf.is_empty()).peekable();
        let Some(first) = bufs.peek() else {
            return Poll::Ready(Ok(0));
        };
        ready!(self.as_mut().poll_room(cx, first.len()))?;
        let this = self.project();
        if first.len() >= this.buf.capacity() {
            return this.inner.poll_write(cx, first);
        }
        let before = this.buf.len();
        for buf in bufs {
            if buf.len() > this.buf.capacity() - this.buf.len() {
                break;
            }
            this.buf.extend_from_slice(buf);
        }
        Poll::Ready(Ok(this.buf.len() - before))
    }
}

impl<R> BufWriter<BufReader<R>> {
    /// Exchanges the two wrappers. Both keep their buffers.
    pub(crate) fn inside_out(self) -> BufReader<BufWriter<R>> {
        self.inner.replace(|inner| BufWriter {
            inner,
            buf: self.buf,
            written: self.written,
            seek: self.seek,
        })
    }
}

impl<W: AsyncWrite> AsyncWrite for BufWriter<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_mut().abandon_seek();
        ready!(self.as_mut().poll_room(cx, buf.len()))?;
        let this = self.project();
        if buf.len() >= this.buf.capacity() {
            return this.inner.poll_write(cx, buf);
        }
        this.buf.extend_from_slice(buf);
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_drain(cx))?;
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_drain(cx))?;
        self.project().inner.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_mut().abandon_seek();
        if !self.inner.is_write_vectored() {
            return self.poll_write_each(cx, bufs);
        }
        let len = total_len(bufs);
        ready!(self.as_mut().poll_room(cx, len))?;
        let this = self.project();
        if len >= this.buf.capacity() {
            return this.inner.poll_write_vectored(cx, bufs);
        }
        for buf in bufs {
            this.buf.extend_from_slice(buf);
        }
        Poll::Ready(Ok(len))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

impl<W: AsyncWrite + AsyncSeek> AsyncSeek for BufWriter<W> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        *self.project().seek = Seek::Wanted(position);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if let Seek::Wanted(position) = self.seek {
            let drained = ready!(self.as_mut().poll_drain(cx));
            let mut this = self.as_mut().project();
            let ended = match drained {
                // The inner writer may still do something else, which it must end first.
                Ok(()) => ready!(this.inner.as_mut().poll_complete(cx)).map(drop),
                failed => failed,
            };
            *this.seek = Seek::Idle; // An error ends the seek.
            ended?;
            this.inner.start_seek(position)?;
            *this.seek = Seek::Started;
        }
        let this = self.project();
        let position = ready!(this.inner.poll_complete(cx));
        *this.seek = Seek::Idle;
        Poll::Ready(position)
    }
}

impl<W: AsyncWrite + AsyncRead> AsyncRead for BufWriter<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_mut().abandon_seek();
        self.project().inner.poll_read(cx, buf)
    }
}

impl<W: AsyncWrite + AsyncBufRead> AsyncBufRead for BufWriter<W> {
    fn poll_fill_buf(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.as_mut().abandon_seek();
        self.project().inner.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().inner.consume(amt);
    }
}

impl<W: fmt::Debug> fmt::Debug for BufWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = (self.buf.len(), self.buf.capacity());
        f.debug_struct("BufWriter")
            .field("writer", &self.inner)
            .field("buffer", &format_args!("{len}/{capacity}"))
            .field("written", &self.written)
            .finish()
    }
}
