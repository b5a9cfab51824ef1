use super::all::poll_write_all;
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
    /// The future of a method such as [`AsyncWriteExt::write_u16`](crate::AsyncWriteExt::write_u16),
    /// which writes a number of the bytes `B`, an array.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct WriteNumber<W, B> {
        writer: W,
        bytes: B,
        written: usize,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<W, const N: usize> WriteNumber<W, [u8; N]> {
    pub(crate) fn new(writer: W, bytes: [u8; N]) -> Self {
        Self {
            writer,
            bytes,
            written: 0,
            _pin: PhantomPinned,
        }
    }
}

impl<W: AsyncWrite + Unpin, const N: usize> Future for WriteNumber<W, [u8; N]> {
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut rest = &this.bytes[*this.written..];
        let polled = poll_write_all(Pin::new(this.writer), cx, &mut rest);
        *this.written = N - rest.len();
        polled
    }
}
