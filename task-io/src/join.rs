use crate::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf, pass::pass_writes};
use pin_project_lite::pin_project;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

pin_project! {
    /// A reader and a writer as one object.
    ///
    /// [`join`] makes it.
    ///
    /// ```
    /// use task_io::{Join, Sink};
    ///
    /// let both: Join<&[u8], Sink> = task_io::join(&b"in"[..], task_io::sink());
    /// ```
    #[derive(Debug)]
    pub struct Join<R, W> {
        #[pin]
        reader: R,
        #[pin]
        writer: W,
    }
}

/// Joins a reader and a writer into one object.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let mut both = task_io::join(&b"x"[..], Vec::new());
/// let byte = both.read_u8().await?;
/// both.write_all(&[byte; 3]).await?;
/// assert_eq!(both.writer(), b"xxx");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub fn join<R: AsyncRead, W: AsyncWrite>(reader: R, writer: W) -> Join<R, W> {
    Join { reader, writer }
}

/// ```
/// use std::pin::Pin;
///
/// let mut both = task_io::join(&b"in"[..], Vec::new());
/// assert_eq!(*both.reader(), b"in");
/// *both.reader_mut() = b"more";
/// both.writer_mut().extend(b"out");
/// assert_eq!(Pin::new(&mut both).reader_pin_mut().len(), 4);
/// Pin::new(&mut both).writer_pin_mut().push(b'!');
/// assert_eq!(both.writer(), b"out!");
/// let (reader, _) = both.into_inner();
/// assert_eq!(reader, b"more");
/// ```
impl<R: AsyncRead, W: AsyncWrite> Join<R, W> {
    /// Takes the two apart.
    pub fn into_inner(self) -> (R, W) {
        (self.reader, self.writer)
    }

    /// Returns the reader.
    pub fn reader(&self) -> &R {
        &self.reader
    }

    /// Returns the writer.
    pub fn writer(&self) -> &W {
        &self.writer
    }

    /// Returns the reader, to change it.
    pub fn reader_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the writer, to change it.
    pub fn writer_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// Returns the reader, pinned.
    pub fn reader_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().reader
    }

    /// Returns the writer, pinned.
    pub fn writer_pin_mut(self: Pin<&mut Self>) -> Pin<&mut W> {
        self.project().writer
    }
}

impl<R: AsyncRead, W> AsyncRead for Join<R, W> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.project().reader.poll_read(cx, buf)
    }
}

impl<R: AsyncBufRead, W> AsyncBufRead for Join<R, W> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.project().reader.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.project().reader.consume(amt);
    }
}

impl<R, W: AsyncWrite> AsyncWrite for Join<R, W> {
    pass_writes!(writer);
}
