use super::once::poll_write_buf;
use crate::{AsyncWrite, coop::Rounds};
use bytes::Buf;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncWriteExt::write_all`](crate::AsyncWriteExt::write_all).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct WriteAll<'a, W: ?Sized> {
        writer: &'a mut W,
        buf: &'a [u8],
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, W: ?Sized> WriteAll<'a, W> {
    pub(crate) fn new(writer: &'a mut W, buf: &'a [u8]) -> Self {
        Self {
            writer,
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteAll<'_, W> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        poll_write_all(Pin::new(&mut **this.writer), cx, this.buf)
    }
}

/// Writes until `buf` is empty, and takes off it what was written.
pub(super) fn poll_write_all<W: AsyncWrite + ?Sized>(
    mut writer: Pin<&mut W>,
    cx: &mut Context<'_>,
    buf: &mut &[u8],
) -> Poll<io::Result<()>> {
    let mut rounds = Rounds::new();
    while !buf.is_empty() {
        ready!(rounds.poll_next(cx));
        match ready!(writer.as_mut().poll_write(cx, buf)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(error)),
            Ok(0) => return Poll::Ready(Err(write_zero())),
            Ok(written) => *buf = &buf[written..],
        }
    }
    Poll::Ready(Ok(()))
}

/// Returns the error of a writer that takes no more bytes.
pub(crate) fn write_zero() -> io::Error {
    io::ErrorKind::WriteZero.into()
}

pin_project! {
    /// The future of [`AsyncWriteExt::write_all_buf`](crate::AsyncWriteExt::write_all_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct WriteAllBuf<'a, W, B> {
        writer: &'a mut W,
        buf: &'a mut B,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, W, B> WriteAllBuf<'a, W, B> {
    pub(crate) fn new(writer: &'a mut W, buf: &'a mut B) -> Self {
        Self {
            writer,
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteAllBuf<'_, W, B> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut rounds = Rounds::new();
        while this.buf.has_remaining() {
            ready!(rounds.poll_next(cx));
            let writer = Pin::new(&mut **this.writer);
            match ready!(poll_write_buf(writer, cx, &mut **this.buf)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
                Ok(0) => return Poll::Ready(Err(write_zero())),
                Ok(_) => {}
            }
        }
        Poll::Ready(Ok(()))
    }
}
