use crate::{
    AsyncBufRead, Lines, Split,
    read::{FillBuf, ReadLine, ReadUntil},
};
use std::pin::Pin;

/// Methods for every [`AsyncBufRead`] that return futures.
///
/// A reader without a buffer gets one by [`BufReader`](crate::BufReader).
///
/// ```
/// use task_io::AsyncBufReadExt;
///
/// # futures::executor::block_on(async {
/// let mut reader: &[u8] = b"GET /\nHost: example\nname=value";
/// let mut line = String::new();
/// assert_eq!(reader.read_line(&mut line).await?, 6);
/// assert_eq!(line, "GET /\n");
///
/// let mut name = Vec::new();
/// reader.read_until(b':', &mut name).await?;
/// assert_eq!(name, b"Host:");
///
/// assert!(reader.fill_buf().await?.starts_with(b" "));
/// reader.consume(1);
///
/// let mut lines = reader.lines();
/// assert_eq!(lines.next_line().await?.unwrap(), "example");
/// let mut parts = AsyncBufReadExt::split(lines.into_inner(), b'=');
/// assert_eq!(parts.next_segment().await?.unwrap(), b"name");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub trait AsyncBufReadExt: AsyncBufRead {
    /// Reads up to the first `byte`, or to the end of the reader, and appends all bytes that it
    /// reads to `buf`, `byte` included. Returns how many: 0 is the end.
    ///
    /// # Cancel safety
    /// If the future is dropped, the bytes that were read are in `buf`. Another call goes on.
    ///
    /// # Errors
    /// The reader's, except for `Interrupted`, after which the read is repeated. The bytes that
    /// were read are in `buf`.
    fn read_until<'a>(&'a mut self, byte: u8, buf: &'a mut Vec<u8>) -> ReadUntil<'a, Self>
    where
        Self: Unpin,
    {
        ReadUntil::new(self, byte, buf)
    }

    /// Reads up to the next line feed, or to the end of the reader, and appends the text to `buf`,
    /// the line feed included. Returns how many bytes it has read: 0 is the end.
    ///
    /// # Cancel safety
    /// If the future is dropped, the part of the line that was read is lost, and `buf` is as it was
    /// before. Use [`lines`](Self::lines) or [`read_until`](Self::read_until) instead.
    ///
    /// # Errors
    /// Those of [`read_until`](Self::read_until), with the bytes before the error in `buf` if they
    /// are UTF-8. If the line is not UTF-8, the error's kind is `InvalidData`, its inner error is
    /// a [`Utf8Error`](std::str::Utf8Error), the line is lost, and `buf` is as it was before.
    fn read_line<'a>(&'a mut self, buf: &'a mut String) -> ReadLine<'a, Self>
    where
        Self: Unpin,
    {
        ReadLine::new(self, buf)
    }

    /// Returns the parts of the reader between bytes that equal `byte`, one after the other.
    fn split(self, byte: u8) -> Split<Self>
    where
        Self: Sized + Unpin,
    {
        Split::new(self, byte)
    }

    /// Returns the bytes in the buffer, and first fills the buffer if it is empty. No bytes are the
    /// end.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// The reader's.
    fn fill_buf(&mut self) -> FillBuf<'_, Self>
    where
        Self: Unpin,
    {
        FillBuf::new(self)
    }

    /// Takes `amt` bytes out of the buffer, at most as many as [`fill_buf`](Self::fill_buf) has
    /// returned.
    fn consume(&mut self, amt: usize)
    where
        Self: Unpin,
    {
        Pin::new(self).consume(amt);
    }

    /// Returns the lines of the reader, one after the other, without their ends: a line feed, or a
    /// carriage return and a line feed.
    fn lines(self) -> Lines<Self>
    where
        Self: Sized,
    {
        Lines::new(self)
    }
}

impl<R: AsyncBufRead + ?Sized> AsyncBufReadExt for R {}
