//! hyper's I/O over the sockets of Selvedge.
//!
//! hyper reads into memory that may be uninitialised, and so does
//! [`poll_read_uninit`](TcpStream::poll_read_uninit): there is no copy, and nothing is zeroed. A
//! stream copies only short pieces that hyper writes at once.
use crate::write_limit::{LimitWrites, WriteLimit};
use futures_io::AsyncWrite;
use hyper::rt;
use selvedge::net::TcpStream;
#[cfg(unix)]
use selvedge::net::UnixStream;
use socket2::SockRef;
#[cfg(unix)]
use std::os::fd::AsFd as AsHandle;
#[cfg(windows)]
use std::os::windows::io::AsSocket as AsHandle;
use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

mod sealed {
    use super::*;

    /// A stream whose reads take uninitialised memory.
    pub trait Stream: AsyncWrite + AsHandle + Unpin {
        /// As [`TcpStream::poll_read_uninit`], with its guarantees for unsafe code.
        fn poll_read_uninit(
            &self,
            cx: &mut Context<'_>,
            to: &mut [MaybeUninit<u8>],
        ) -> Poll<io::Result<usize>>;
    }

    impl Stream for TcpStream {
        fn poll_read_uninit(
            &self,
            cx: &mut Context<'_>,
            to: &mut [MaybeUninit<u8>],
        ) -> Poll<io::Result<usize>> {
            self.poll_read_uninit(cx, to)
        }
    }

    #[cfg(unix)]
    impl Stream for UnixStream {
        fn poll_read_uninit(
            &self,
            cx: &mut Context<'_>,
            to: &mut [MaybeUninit<u8>],
        ) -> Poll<io::Result<usize>> {
            self.poll_read_uninit(cx, to)
        }
    }
}

/// A [`TcpStream`] or a [`UnixStream`] with the traits of [`hyper::rt`].
///
/// A read is one system call, straight into hyper's buffer. A write is one system call, also for
/// several buffers. Buffers of 512 bytes or fewer together are first copied into one, which costs
/// less than a vectored write. Reads and writes are charged to the task's budget.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{BodyExt, Empty, Full};
/// use hyper::{Request, Response, client, server, service::service_fn};
/// use selvedge::net::UnixStream;
/// use selvedge_hyper::SelvedgeIo;
/// use std::convert::Infallible;
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let (near, far) = UnixStream::pair()?;
///     selvedge::spawn_detached(async move {
///         let service = service_fn(|_| async {
///             Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("hello"))))
///         });
///         let io = SelvedgeIo::new(far);
///         let _ = server::conn::http1::Builder::new().serve_connection(io, service).await;
///     });
///     let io = SelvedgeIo::new(near);
///     assert!(io.inner().peer_addr()?.is_unnamed());
///     let (mut sender, connection) = client::conn::http1::handshake(io).await?;
///     selvedge::spawn_detached(async { drop(connection.await) });
///     let response = sender.send_request(Request::new(Empty::<Bytes>::new())).await?;
///     assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
///     Ok::<(), Box<dyn std::error::Error>>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SelvedgeIo<T> {
    stream: T,
    /// The time limit for writes, if there is one.
    limit: Option<Box<WriteLimit>>,
}

impl<T> SelvedgeIo<T> {
    /// Wraps a stream.
    pub const fn new(stream: T) -> Self {
        Self {
            stream,
            limit: None,
        }
    }

    /// Returns the stream, for its addresses and options.
    pub const fn inner(&self) -> &T {
        &self.stream
    }

    /// Returns the stream itself.
    ///
    /// ```
    /// use selvedge::net::UnixStream;
    /// use selvedge_hyper::SelvedgeIo;
    ///
    /// selvedge::Runtime::new()?.block_on(async {
    ///     let (near, _far) = UnixStream::pair()?;
    ///     let near: UnixStream = SelvedgeIo::new(near).into_inner();
    /// #   drop(near);
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn into_inner(self) -> T {
        self.stream
    }
}

impl<T> From<T> for SelvedgeIo<T> {
    fn from(stream: T) -> Self {
        Self::new(stream)
    }
}

impl<T: sealed::Stream> rt::Read for SelvedgeIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut to: rt::ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        // SAFETY: `poll_read_uninit` makes no byte uninitialised.
        let unfilled = unsafe { to.as_mut() };
        let count = ready!(self.stream.poll_read_uninit(cx, unfilled))?;
        // SAFETY: the read initialised the first `count` bytes of the unfilled part.
        unsafe { to.advance(count) };
        Poll::Ready(Ok(()))
    }
}

/// The limit holds for all writes from now on, also after an upgrade.
/// [`into_inner`](SelvedgeIo::into_inner) ends it.
impl<T> LimitWrites for SelvedgeIo<T> {
    fn limit_writes(&mut self, limit: Duration) {
        self.limit = Some(Box::new(WriteLimit::new(limit)));
    }
}

impl<T: sealed::Stream> SelvedgeIo<T> {
    /// Applies the time limit to a write's result. When the time is up, tries the write once more
    /// by `send`. This second try succeeds if the client has taken any bytes. The first write stays
    /// pending until the system reports room, which needs about a third of the send buffer to be
    /// free. A slow client may not free that much within the limit.
    #[inline]
    fn limited(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        send: impl FnOnce(SockRef<'_>) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let Some(limit) = &mut self.limit else {
            return written;
        };
        let waits = written.is_pending();
        match limit.apply(cx, written) {
            Poll::Ready(Err(timed_out)) if waits => {
                Poll::Ready(match send(SockRef::from(&self.stream)) {
                    Ok(0) => Err(timed_out),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(timed_out),
                    sent => sent,
                })
            }
            done => done,
        }
    }
}

impl<T: sealed::Stream> rt::Write for SelvedgeIo<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, from);
        self.limited(cx, written, |socket| socket.send(from))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, from);
        self.limited(cx, written, |socket| socket.send_vectored(from))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_close(cx)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::WriteTimedOut;
    use hyper::rt::Write as _;
    use std::{future::poll_fn, io::Read as _, os::unix::net};

    const PIECE: [u8; 1024] = [b'a'; 1024];

    async fn write(io: &mut SelvedgeIo<UnixStream>, vectored: bool) -> io::Result<usize> {
        poll_fn(|cx| match vectored {
            true => Pin::new(&mut *io).poll_write_vectored(cx, &[IoSlice::new(&PIECE)]),
            false => Pin::new(&mut *io).poll_write(cx, &PIECE),
        })
        .await
    }

    // Fails if the limit counts the time until the system reports room. The peer reads so little
    // that the system does not report room.
    #[test]
    fn write_to_a_slow_reader_goes_on_after_the_limit() {
        let builder = selvedge::Builder::new_current_thread();
        let runtime = builder.start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (near, mut far) = net::UnixStream::pair().unwrap();
            let mut io = SelvedgeIo::new(UnixStream::from_std(near).unwrap());
            io.limit_writes(Duration::from_secs(60));
            for vectored in [false, true] {
                let stalled = loop {
                    if let Err(error) = write(&mut io, vectored).await {
                        break error;
                    }
                };
                assert!(WriteTimedOut::of(&stalled).is_some(), "{stalled}");
                for _ in 0..4 {
                    far.read_exact(&mut [0; 4 * PIECE.len()]).unwrap();
                    assert_ne!(write(&mut io, vectored).await.unwrap(), 0);
                }
            }
        });
    }
}
