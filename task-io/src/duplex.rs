use crate::{
    AsyncRead, AsyncWrite, ReadBuf,
    coop::{WaitsOn, poll_proceed},
    pipe::{Done, Pipe, Side, slices},
};
use std::{
    io::{self, IoSlice},
    iter,
    pin::Pin,
    task::{Context, Poll, ready},
};
use sync_shim::{
    panics::contain,
    sync::{Arc, Mutex},
};

#[cfg(test)]
mod models;

/// One end of a connection in memory.
///
/// [`duplex`] makes both ends.
///
/// A write waits while the connection has as many bytes on the way as it may. After a shutdown, or
/// the drop of this end, the other end reads the bytes that are on the way, and then ends. After
/// the drop, its writes fail, also one that waits; the error's kind is `BrokenPipe`.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
///
/// # futures::executor::block_on(async {
/// let (mut near, mut far): (DuplexStream, DuplexStream) = task_io::duplex(64);
/// near.write_all(b"last words").await?;
/// drop(near);
/// let mut text = String::new();
/// far.read_to_string(&mut text).await?;
/// assert_eq!(text, "last words");
/// let error = far.write_all(b"hello?").await.unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct DuplexStream {
    /// The other end writes to this one.
    incoming: Arc<Mutex<Pipe>>,
    /// The other end reads from this one.
    outgoing: Arc<Mutex<Pipe>>,
}

/// Makes the two ends of a connection in memory, with up to `max_buf_size` bytes on the way in each
/// direction.
///
/// The memory for the bytes grows as it is needed.
///
/// ```
/// use task_io::{AsyncReadExt, AsyncWriteExt};
///
/// # futures::executor::block_on(async {
/// let (mut client, mut server) = task_io::duplex(64);
/// client.write_all(b"ping").await?;
/// let mut word = [0; 4];
/// server.read_exact(&mut word).await?;
/// server.write_all(b"pong").await?;
/// client.read_exact(&mut word).await?;
/// assert_eq!(word, *b"pong");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Panics
/// If `max_buf_size` is 0.
#[track_caller]
pub fn duplex(max_buf_size: usize) -> (DuplexStream, DuplexStream) {
    let there = Arc::new(Mutex::new(Pipe::new(max_buf_size)));
    let back = Arc::new(Mutex::new(Pipe::new(max_buf_size)));
    let near = DuplexStream {
        incoming: back.clone(),
        outgoing: there.clone(),
    };
    let far = DuplexStream {
        incoming: there,
        outgoing: back,
    };
    (near, far)
}

/// Calls the pipe, and waits if it returns `None`. Wakers are cloned, woken and dropped while no
/// lock is held (rule 3 of the pipe).
fn poll<T>(
    pipe: &Mutex<Pipe>,
    side: Side,
    cx: &mut Context<'_>,
    mut call: impl FnMut(&mut Pipe) -> Option<Done<T>>,
) -> Poll<io::Result<T>> {
    let progress = ready!(poll_proceed(cx));
    let mut waker = None;
    loop {
        let mut locked = pipe.lock();
        if let Some((result, other)) = call(&mut locked) {
            drop(locked);
            progress.made_progress();
            if let Some(other) = other {
                contain(|| other.wake());
            }
            return Poll::Ready(result);
        }
        if locked.has(side, cx.waker()) {
            drop(locked);
            progress.waits_for(|| WaitsOn::event(side.awaited(), pipe));
            return Poll::Pending;
        }
        if let Some(waker) = waker.take() {
            let old = locked.wait(side, waker);
            drop(locked);
            contain(|| drop(old));
            progress.waits_for(|| WaitsOn::event(side.awaited(), pipe));
            return Poll::Pending;
        }
        drop(locked);
        // Meanwhile the other side may act, so the pipe is called once more.
        waker = Some(cx.waker().clone());
    }
}

fn close(pipe: &Mutex<Pipe>) {
    let wakers = pipe.lock().close();
    for waker in wakers.into_iter().flatten() {
        contain(|| waker.wake());
    }
}

impl AsyncRead for DuplexStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        poll(&self.incoming, Side::Reader, cx, |pipe| pipe.read(buf))
    }
}

impl AsyncWrite for DuplexStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        poll(&self.outgoing, Side::Writer, cx, |pipe| {
            pipe.write(iter::once(buf))
        })
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        close(&self.outgoing);
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        poll(&self.outgoing, Side::Writer, cx, |pipe| {
            pipe.write(slices(bufs))
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

impl Drop for DuplexStream {
    fn drop(&mut self) {
        close(&self.outgoing);
        close(&self.incoming);
    }
}
