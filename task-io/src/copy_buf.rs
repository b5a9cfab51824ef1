use crate::{AsyncBufRead, AsyncWrite, coop::Rounds, write::write_zero};
use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Copies a reader's bytes to a writer, as [`copy`](crate::copy) does, from the reader's own
/// buffer.
///
/// ```
/// use task_io::BufReader;
///
/// # futures::executor::block_on(async {
/// let mut reader = BufReader::with_capacity(64 * 1024, &b"bytes"[..]);
/// let mut writer = Vec::new();
/// assert_eq!(task_io::copy_buf(&mut reader, &mut writer).await?, 5);
/// assert_eq!(writer, b"bytes");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Cancel safety
/// If the future is dropped, no byte is lost: the reader has exactly those that were not written.
///
/// # Errors
/// Those of [`copy`](crate::copy). The reader has exactly the bytes that were not written.
pub async fn copy_buf<'a, R, W>(reader: &'a mut R, writer: &'a mut W) -> io::Result<u64>
where
    R: AsyncBufRead + Unpin + ?Sized,
    W: AsyncWrite + Unpin + ?Sized,
{
    let mut progress = Progress::default();
    poll_fn(|cx| progress.poll(cx, Pin::new(&mut *reader), Pin::new(&mut *writer))).await
}

#[derive(Default)]
struct Progress {
    written: u64,
    /// Whether bytes were written since the last flush.
    must_flush: bool,
}

impl Progress {
    fn poll<R: AsyncBufRead + ?Sized, W: AsyncWrite + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        mut reader: Pin<&mut R>,
        mut writer: Pin<&mut W>,
    ) -> Poll<io::Result<u64>> {
        let mut rounds = Rounds::new();
        loop {
            ready!(rounds.poll_next(cx));
            let bytes = match reader.as_mut().poll_fill_buf(cx) {
                Poll::Ready(Ok(bytes)) => bytes,
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::Interrupted => continue,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    if self.must_flush {
                        ready!(writer.as_mut().poll_flush(cx))?;
                        self.must_flush = false;
                    }
                    return Poll::Pending;
                }
            };
            if bytes.is_empty() {
                ready!(writer.as_mut().poll_flush(cx))?;
                return Poll::Ready(Ok(self.written));
            }
            match ready!(writer.as_mut().poll_write(cx, bytes)) {
                Ok(0) => return Poll::Ready(Err(write_zero())),
                Ok(len) => {
                    self.written += len as u64;
                    self.must_flush = true;
                    reader.as_mut().consume(len);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}
