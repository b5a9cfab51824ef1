use crate::{AsyncRead, AsyncWrite, buf_reader::DEFAULT_CAPACITY, transfer::Transfer};
use std::{future::poll_fn, io, pin::Pin};

/// Copies a reader's bytes to a writer until the reader ends, flushes the writer, and returns how
/// many bytes were copied.
///
/// The bytes go through a buffer of 8 KiB. While the writer waits, the buffer is filled. While the
/// reader waits, the writer is flushed. The writer is not shut down. A reader that has a buffer of
/// its own is copied by [`copy_buf`](crate::copy_buf) without a second one.
///
/// ```
/// # futures::executor::block_on(async {
/// let (mut reader, mut writer) = (&b"bytes"[..], Vec::new());
/// assert_eq!(task_io::copy(&mut reader, &mut writer).await?, 5);
/// assert_eq!(writer, b"bytes");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Cancel safety
/// If the future is dropped, the bytes in its buffer are lost.
///
/// # Errors
/// Those of the reader and the writer, except for `Interrupted`, after which the read or write is
/// repeated, and `WriteZero` if the writer takes no more bytes. The bytes in the buffer are lost.
pub async fn copy<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut transfer = Transfer::new(DEFAULT_CAPACITY);
    poll_fn(|cx| transfer.poll(cx, Pin::new(&mut *reader), Pin::new(&mut *writer))).await
}
