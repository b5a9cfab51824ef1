use crate::{AsyncRead, ReadBuf};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncReadExt::read`](crate::AsyncReadExt::read).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Read<'a, R: ?Sized> {
        reader: &'a mut R,
        buf: &'a mut [u8],
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> Read<'a, R> {
    pub(crate) fn new(reader: &'a mut R, buf: &'a mut [u8]) -> Self {
        Self {
            reader,
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for Read<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut buf = ReadBuf::new(this.buf);
        ready!(Pin::new(&mut **this.reader).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}
