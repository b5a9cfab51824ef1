use crate::{
    AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf,
    coop::{WaitsOn, poll_proceed},
    pipe::{Done, Pipe, Side, slices},
    split,
};
use std::{
    io::{self, IoSlice},
    iter,
    pin::Pin,
    task::{Context, Poll, ready},
};
use sync_shim::panics::contain;

/// Bytes in memory, which are read in the order in which they were written.
///
/// [`simplex`] makes one and splits it. A write waits while there are as many bytes as there may
/// be. After a shutdown, the reader reads the bytes that are there, and then ends, and a write
/// fails; the error's kind is `BrokenPipe`. The drop of a half shuts nothing down.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt, SimplexStream};
///
/// # futures::executor::block_on(async {
/// let mut stream = SimplexStream::new_unsplit(64);
/// stream.write_all(b"note").await?;
/// stream.shutdown().await?;
/// let mut text = String::new();
/// stream.read_to_string(&mut text).await?;
/// assert_eq!(text, "note");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct SimplexStream {
    pipe: Pipe,
}

/// Makes the two ends of a pipe in memory, with up to `max_buf_size` bytes on the way.
///
/// [`ReadHalf::unsplit`] makes one object of them.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (mut reader, mut writer) = task_io::simplex(64);
/// writer.write_all(b"note").await?;
/// writer.shutdown().await?;
/// let mut text = String::new();
/// reader.read_to_string(&mut text).await?;
/// assert_eq!(text, "note");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Panics
/// If `max_buf_size` is 0.
#[track_caller]
pub fn simplex(max_buf_size: usize) -> (ReadHalf<SimplexStream>, WriteHalf<SimplexStream>) {
    split(SimplexStream::new_unsplit(max_buf_size))
}

impl SimplexStream {
    /// Makes a pipe in memory that is not split, with up to `max_buf_size` bytes.
    ///
    /// # Panics
    /// If `max_buf_size` is 0.
    #[track_caller]
    pub fn new_unsplit(max_buf_size: usize) -> Self {
        Self {
            pipe: Pipe::new(max_buf_size),
        }
    }

    /// Calls the pipe, and waits if it returns `None`.
    fn poll<T>(
        &mut self,
        side: Side,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Pipe) -> Option<Done<T>>,
    ) -> Poll<io::Result<T>> {
        let progress = ready!(poll_proceed(cx));
        if let Some((result, other)) = call(&mut self.pipe) {
            progress.made_progress();
            if let Some(other) = other {
                contain(|| other.wake());
            }
            return Poll::Ready(result);
        }
        if !self.pipe.has(side, cx.waker()) {
            let old = self.pipe.wait(side, cx.waker().clone());
            contain(|| drop(old));
        }
        progress.waits_for(|| WaitsOn::event(side.awaited(), &self.pipe));
        Poll::Pending
    }
}

impl AsyncRead for SimplexStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.poll(Side::Reader, cx, |pipe| pipe.read(buf))
    }
}

impl AsyncWrite for SimplexStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll(Side::Writer, cx, |pipe| pipe.write(iter::once(buf)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        for waker in self.pipe.close().into_iter().flatten() {
            contain(|| waker.wake());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(Side::Writer, cx, |pipe| pipe.write(slices(bufs)))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
