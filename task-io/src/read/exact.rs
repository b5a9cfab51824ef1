use crate::{AsyncRead, ReadBuf, coop::Rounds};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncReadExt::read_exact`](crate::AsyncReadExt::read_exact).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadExact<'a, R: ?Sized> {
        reader: &'a mut R,
        buf: ReadBuf<'a>,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadExact<'a, R> {
    pub(crate) fn new(reader: &'a mut R, buf: &'a mut [u8]) -> Self {
        Self {
            reader,
            buf: ReadBuf::new(buf),
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadExact<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        ready!(poll_fill(Pin::new(&mut **this.reader), cx, this.buf))?;
        Poll::Ready(Ok(this.buf.capacity()))
    }
}

/// Reads until `buf` is full.
pub(super) fn poll_fill<R: AsyncRead + ?Sized>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    buf: &mut ReadBuf<'_>,
) -> Poll<io::Result<()>> {
    let mut rounds = Rounds::new();
    while buf.remaining() > 0 {
        ready!(rounds.poll_next(cx));
        let before = buf.remaining();
        match ready!(reader.as_mut().poll_read(cx, buf)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok(()) if buf.remaining() == before => {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            Ok(()) => {}
        }
    }
    Poll::Ready(Ok(()))
}
