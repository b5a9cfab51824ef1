use super::{text::Text, to_end::Growth};
use crate::AsyncRead;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io,
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncReadExt::read_to_string`](crate::AsyncReadExt::read_to_string).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadToString<'a, R: ?Sized> {
        reader: &'a mut R,
        text: Text<'a>,
        growth: Growth,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadToString<'a, R> {
    pub(crate) fn new(reader: &'a mut R, buf: &'a mut String) -> Self {
        let mut text = Text::new(buf);
        Self {
            reader,
            growth: Growth::new(text.bytes()),
            text,
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncRead + Unpin + ?Sized> Future for ReadToString<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reader = Pin::new(&mut **this.reader);
        // SAFETY: nothing else changes the vector until the last poll has moved it. A poll after
        // the last one panics in `bytes`.
        ready!(unsafe { this.growth.poll(reader, cx, this.text.bytes()) })?;
        Poll::Ready(this.text.finish())
    }
}
