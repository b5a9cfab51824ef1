use crate::{
    AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, BufReader, BufWriter, ReadBuf,
    buf_reader::DEFAULT_CAPACITY, pass::pass_writes,
};
use pin_project_lite::pin_project;
use std::{
    io::{self, IoSlice, SeekFrom},
    pin::Pin,
    task::{Context, Poll},
};

pin_project! {
    /// A stream with a buffer for each direction.
    ///
    /// It reads as a [`BufReader`] does, and writes as a [`BufWriter`] does. The drop loses the
    /// bytes in both buffers.
    ///
    /// ```
    /// use task_io::{AsyncWriteExt, BufStream};
    ///
    /// let mut stream = BufStream::new(task_io::join(&b"in"[..], Vec::new()));
    /// futures::executor::block_on(stream.write_all(b"out")).unwrap();
    /// assert!(stream.get_ref().writer().is_empty());
    /// ```
    #[derive(Debug)]
    pub struct BufStream<RW> {
        #[pin]
        inner: BufReader<BufWriter<RW>>,
    }
}

/// ```
/// use std::pin::Pin;
/// use task_io::{AsyncReadExt, AsyncWriteExt, BufReader, BufStream, BufWriter, DuplexStream};
///
/// # futures::executor::block_on(async {
/// let (near, mut far) = task_io::duplex(64);
/// let mut stream = BufStream::new(near);
/// stream.write_all(b"ping").await?;
/// stream.flush().await?;
/// assert_eq!(far.read_u32().await?, u32::from_be_bytes(*b"ping"));
///
/// let near: DuplexStream = stream.into_inner();
/// let mut stream = BufStream::with_capacity(16, 16, near);
/// far.write_u8(7).await?;
/// assert_eq!(stream.read_u8().await?, 7);
/// let _: &DuplexStream = stream.get_ref();
/// let _: &mut DuplexStream = stream.get_mut();
/// let _: Pin<&mut DuplexStream> = Pin::new(&mut stream).get_pin_mut();
/// let _ = BufStream::from(BufReader::new(BufWriter::new(far)));
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
impl<RW: AsyncRead + AsyncWrite> BufStream<RW> {
    /// Creates a stream with two buffers of 8 KiB.
    pub fn new(stream: RW) -> Self {
        Self::with_capacity(DEFAULT_CAPACITY, DEFAULT_CAPACITY, stream)
    }

    /// Creates a stream with buffers of these capacities.
    ///
    /// # Panics
    /// If `reader_capacity` is 0.
    #[track_caller]
    pub fn with_capacity(reader_capacity: usize, writer_capacity: usize, stream: RW) -> Self {
        let writer = BufWriter::with_capacity(writer_capacity, stream);
        Self {
            inner: BufReader::with_capacity(reader_capacity, writer),
        }
    }

    /// Returns the inner stream.
    pub fn get_ref(&self) -> &RW {
        self.inner.get_ref().get_ref()
    }

    /// Returns the inner stream. What is read from it or written to it here goes past the buffers.
    pub fn get_mut(&mut self) -> &mut RW {
        self.inner.get_mut().get_mut()
    }

    /// Returns the inner stream, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut RW> {
        self.project().inner.get_pin_mut().get_pin_mut()
    }

    /// Returns the inner stream. The bytes in the buffers are lost.
    pub fn into_inner(self) -> RW {
        self.inner.into_inner().into_inner()
    }
}

impl<RW> From<BufReader<BufWriter<RW>>> for BufStream<RW> {
    fn from(inner: BufReader<BufWriter<RW>>) -> Self {
        Self { inner }
    }
}

impl<RW> From<BufWriter<BufReader<RW>>> for BufStream<RW> {
    fn from(writer: BufWriter<BufReader<RW>>) -> Self {
        Self {
            inner: writer.inside_out(),
        }
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncRead for BufStream<RW> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().inner.poll_read(cx, buf)
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncBufRead for BufStream<RW> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().inner.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().inner.consume(amt);
    }
}

impl<RW: AsyncRead + AsyncWrite> AsyncWrite for BufStream<RW> {
    pass_writes!(inner);
}

/// Seeks as a [`BufReader`] does, after it has written the bytes in the other buffer.
impl<RW: AsyncRead + AsyncWrite + AsyncSeek> AsyncSeek for BufStream<RW> {
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.project().inner.start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.project().inner.poll_complete(cx)
    }
}
