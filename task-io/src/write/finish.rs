use crate::AsyncWrite;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll},
};

pin_project! {
    /// The future of [`AsyncWriteExt::flush`](crate::AsyncWriteExt::flush).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Flush<'a, W: ?Sized> {
        writer: &'a mut W,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Flush<'a, W> {
    pub(crate) fn new(writer: &'a mut W) -> Self {
        Self {
            writer,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Flush<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut **self.project().writer).poll_flush(cx)
    }
}

pin_project! {
    /// The future of [`AsyncWriteExt::shutdown`](crate::AsyncWriteExt::shutdown).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Shutdown<'a, W: ?Sized> {
        writer: &'a mut W,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Shutdown<'a, W> {
    pub(crate) fn new(writer: &'a mut W) -> Self {
        Self {
            writer,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Shutdown<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut **self.project().writer).poll_shutdown(cx)
    }
}
