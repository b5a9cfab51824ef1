use super::{poll_read_until, text::Text};
use crate::AsyncBufRead;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncBufReadExt::read_line`](crate::AsyncBufReadExt::read_line).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadLine<'a, R: ?Sized> {
        reader: &'a mut R,
        line: Text<'a>,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadLine<'a, R> {
    pub(crate) fn new(reader: &'a mut R, buf: &'a mut String) -> Self {
        Self {
            reader,
            line: Text::new(buf),
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadLine<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        let read = ready!(poll_read_until(reader, cx, b'\n', this.line.bytes()));
        // The bytes before an error stay in the string, if they are text.
        let finished = this.line.finish();
        Poll::Ready(read.and(finished))
    }
}
