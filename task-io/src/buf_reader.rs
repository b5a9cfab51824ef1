use crate::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};
use pin_project_lite::pin_project;
use std::{
    fmt,
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The capacity of a buffer for which the caller states none.
pub(crate) const DEFAULT_CAPACITY: usize = 8 * 1024;

pin_project! {
    /// A reader with a buffer, which makes many small reads cheap.
    ///
    /// It reads as many bytes as the buffer holds, and hands them out. A read that asks for more
    /// than that, while the buffer is empty, goes past it. The drop loses the bytes in the buffer.
    /// Writes go past the buffer.
    ///
    /// # Seeks
    ///
    /// A seek from the current position counts from the next byte that this reader would return.
    /// After a seek the buffer is empty. If the seek fails, the buffer stays as it was. If the
    /// future of a seek is dropped, the next read returns what the inner reader has at its
    /// position, before or after the seek. A read or a write cancels a seek that was dropped,
    /// unless the inner reader has started it.
    ///
    /// ```
    /// use task_io::{AsyncReadExt, BufReader};
    ///
    /// let mut reader = BufReader::new(&b"ab"[..]);
    /// assert_eq!(futures::executor::block_on(reader.read_u8()).unwrap(), b'a');
    /// assert_eq!(reader.buffer(), b"b");
    /// ```
    pub struct BufReader<R> {
        #[pin]
        inner: R,
        // The bytes in `buf[start..end]` were read and not yet handed out.
        buf: Box<[u8]>,
        start: usize,
        end: usize,
        seek: Seek,
    }
}

/// The state of a seek.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Seek {
    /// None has begun.
    Idle,
    /// The caller has started one; the inner reader has not.
    Wanted(SeekFrom),
    /// The inner reader seeks back to where the buffer was read up to. After that it seeks on by
    /// this distance, which was too far for one step.
    Far(i64),
    /// The inner reader seeks.
    Started,
}

/// ```
/// use std::pin::Pin;
/// use task_io::{AsyncBufReadExt, AsyncReadExt, BufReader};
///
/// # futures::executor::block_on(async {
/// let mut reader = BufReader::new(&b"one\ntwo\n"[..]);
/// let mut line = String::new();
/// reader.read_line(&mut line).await?;
/// assert_eq!(line, "one\n");
/// assert_eq!(reader.buffer(), b"two\n");
/// assert!(reader.get_ref().is_empty());
///
/// let mut reader = BufReader::with_capacity(2, &b"abcdef"[..]);
/// assert_eq!(reader.read_u8().await?, b'a');
/// assert_eq!(reader.buffer(), b"b");
/// *reader.get_mut() = b"x";
/// assert_eq!(*Pin::new(&mut reader).get_pin_mut(), b"x");
/// assert_eq!(reader.into_inner(), b"x");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
impl<R: AsyncRead> BufReader<R> {
    /// Creates a reader with a buffer of 8 KiB.
    pub fn new(inner: R) -> Self {
        Self::with_capacity(DEFAULT_CAPACITY, inner)
    }

    /// Creates a reader with a buffer of `capacity` bytes.
    ///
    /// # Panics
    /// If `capacity` is 0.
    #[track_caller]
    pub fn with_capacity(capacity: usize, inner: R) -> Self {
        assert!(capacity > 0, "the capacity must be greater than zero");
        Self {
            inner,
            buf: vec![0; capacity].into_boxed_slice(),
            start: 0,
            end: 0,
            seek: Seek::Idle,
        }
    }

    /// Returns the inner reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the inner reader. Bytes that are read from it here are missing later, and come
    /// before those in the buffer.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Returns the inner reader, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// Returns the inner reader. The bytes in the buffer are lost.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Returns the bytes in the buffer.
    pub fn buffer(&self) -> &[u8] {
        &self.buf[self.start..self.end]
    }

    fn discard(self: Pin<&mut Self>) {
        let this = self.project();
        *this.start = 0;
        *this.end = 0;
    }

    /// Forgets a seek whose future was dropped. If the inner reader has started it, the buffer has
    /// the bytes of the old position.
    fn abandon_seek(mut self: Pin<&mut Self>) {
        if matches!(self.seek, Seek::Far(_) | Seek::Started) {
            self.as_mut().discard();
        }
        *self.project().seek = Seek::Idle;
    }
}

impl<R> BufReader<R> {
    /// Puts another reader, made of the inner one, into the place of that one.
    pub(crate) fn replace<S>(self, with: impl FnOnce(R) -> S) -> BufReader<S> {
        BufReader {
            inner: with(self.inner),
            buf: self.buf,
            start: self.start,
            end: self.end,
            seek: self.seek,
        }
    }
}

impl<R: AsyncRead> AsyncRead for BufReader<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_mut().abandon_seek();
        if self.buffer().is_empty() && buf.remaining() >= self.buf.len() {
            return self.project().inner.poll_read(cx, buf);
        }
        let bytes = ready!(self.as_mut().poll_fill_buf(cx))?;
        let len = bytes.len().min(buf.remaining());
        buf.put_slice(&bytes[..len]);
        self.consume(len);
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncRead> AsyncBufRead for BufReader<R> {
    fn poll_fill_buf(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.as_mut().abandon_seek();
        let this = self.project();
        if this.start == this.end {
            let mut buf = ReadBuf::new(this.buf);
            ready!(this.inner.poll_read(cx, &mut buf))?;
            let len = buf.filled().len();
            *this.start = 0;
            *this.end = len;
        }
        Poll::Ready(Ok(&this.buf[*this.start..*this.end]))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        *this.start = this.start.saturating_add(amt).min(*this.end);
    }
}

impl<R: AsyncRead + AsyncSeek> AsyncSeek for BufReader<R> {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.as_mut().abandon_seek();
        *self.project().seek = Seek::Wanted(position);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if let Seek::Wanted(position) = self.seek {
            let this = self.as_mut().project();
            let mut inner = this.inner;
            // The inner reader may still do something else, which it must end first.
            let ended = ready!(inner.as_mut().poll_complete(cx));
            *this.seek = Seek::Idle; // An error ends the seek.
            ended?;
            // No buffer is longer than `i64::MAX`.
            let buffered = (*this.end - *this.start) as i64;
            let (position, then) = match position {
                SeekFrom::Current(distance) => match distance.checked_sub(buffered) {
                    Some(distance) => (SeekFrom::Current(distance), Seek::Started),
                    None => (SeekFrom::Current(-buffered), Seek::Far(distance)),
                },
                other => (other, Seek::Started),
            };
            inner.start_seek(position)?;
            *this.seek = then;
        }
        if let Seek::Far(distance) = self.seek {
            let mut this = self.as_mut().project();
            let at = ready!(this.inner.as_mut().poll_complete(cx));
            *this.seek = Seek::Idle; // An error ends the seek.
            at?;
            self.as_mut().discard();
            let this = self.as_mut().project();
            this.inner.start_seek(SeekFrom::Current(distance))?;
            *this.seek = Seek::Started;
        }
        let this = self.as_mut().project();
        let position = ready!(this.inner.poll_complete(cx));
        let has_sought = *this.seek == Seek::Started;
        *this.seek = Seek::Idle;
        if has_sought && position.is_ok() {
            self.discard();
        }
        Poll::Ready(position)
    }
}

impl<R: AsyncRead + AsyncWrite> AsyncWrite for BufReader<R> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_mut().abandon_seek();
        self.project().inner.poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.project().inner.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_mut().abandon_seek();
        self.project().inner.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}

impl<R: fmt::Debug> fmt::Debug for BufReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, capacity) = (self.end - self.start, self.buf.len());
        f.debug_struct("BufReader")
            .field("reader", &self.inner)
            .field("buffer", &format_args!("{len}/{capacity}"))
            .finish()
    }
}
