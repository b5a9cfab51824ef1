use super::exact::poll_fill;
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
    /// The future of a method such as [`AsyncReadExt::read_u16`](crate::AsyncReadExt::read_u16),
    /// which reads a number of the bytes `B`, an array.
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadNumber<R, T, B> {
        reader: R,
        bytes: B,
        filled: usize,
        decode: fn(B) -> T,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<R, T, const N: usize> ReadNumber<R, T, [u8; N]> {
    pub(crate) fn new(reader: R, decode: fn([u8; N]) -> T) -> Self {
        Self {
            reader,
            bytes: [0; N],
            filled: 0,
            decode,
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin, T, const N: usize> Future for ReadNumber<R, T, [u8; N]> {
    type Output = io::Result<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut buf = ReadBuf::new(this.bytes);
        buf.set_filled(*this.filled);
        let polled = poll_fill(Pin::new(this.reader), cx, &mut buf);
        *this.filled = buf.filled().len();
        ready!(polled)?;
        Poll::Ready(Ok((this.decode)(*this.bytes)))
    }
}
