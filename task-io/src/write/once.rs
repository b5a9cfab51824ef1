use crate::AsyncWrite;
use bytes::Buf;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io::{self, IoSlice},
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The most slices of a buffer that one write takes.
const SLICES: usize = 64;

pin_project! {
    /// The future of [`AsyncWriteExt::write`](crate::AsyncWriteExt::write).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Write<'a, W: ?Sized> {
        writer: &'a mut W,
        buf: &'a [u8],
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, W: ?Sized> Write<'a, W> {
    pub(crate) fn new(writer: &'a mut W, buf: &'a [u8]) -> Self {
        Self {
            writer,
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for Write<'_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Pin::new(&mut **this.writer).poll_write(cx, this.buf)
    }
}

pin_project! {
    /// The future of [`AsyncWriteExt::write_vectored`](crate::AsyncWriteExt::write_vectored).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct WriteVectored<'a, 'b, W: ?Sized> {
        writer: &'a mut W,
        bufs: &'a [IoSlice<'b>],
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, 'b, W: ?Sized> WriteVectored<'a, 'b, W> {
    pub(crate) fn new(writer: &'a mut W, bufs: &'a [IoSlice<'b>]) -> Self {
        Self {
            writer,
            bufs,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin + ?Sized> Future for WriteVectored<'_, '_, W> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Pin::new(&mut **this.writer).poll_write_vectored(cx, this.bufs)
    }
}

pin_project! {
    /// The future of [`AsyncWriteExt::write_buf`](crate::AsyncWriteExt::write_buf).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct WriteBuf<'a, W, B> {
        writer: &'a mut W,
        buf: &'a mut B,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, W, B> WriteBuf<'a, W, B> {
    pub(crate) fn new(writer: &'a mut W, buf: &'a mut B) -> Self {
        Self {
            writer,
            buf,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, B: Buf> Future for WriteBuf<'_, W, B> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if !this.buf.has_remaining() {
            return Poll::Ready(Ok(0));
        }
        poll_write_buf(Pin::new(&mut **this.writer), cx, this.buf)
    }
}

/// Writes bytes from the front of `buf` and advances it over them. A writer that takes several
/// slices at once gets them.
pub(super) fn poll_write_buf<W: AsyncWrite + ?Sized, B: Buf>(
    writer: Pin<&mut W>,
    cx: &mut Context<'_>,
    buf: &mut B,
) -> Poll<io::Result<usize>> {
    let written = if writer.is_write_vectored() {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let len = buf.chunks_vectored(&mut slices);
        ready!(writer.poll_write_vectored(cx, &slices[..len]))?
    } else {
        ready!(writer.poll_write(cx, buf.chunk()))?
    };
    buf.advance(written);
    Poll::Ready(Ok(written))
}
