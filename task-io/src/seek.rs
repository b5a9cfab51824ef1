//! The future that seeks.
use crate::AsyncSeek;
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io::{self, SeekFrom},
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncSeekExt::seek`](crate::AsyncSeekExt::seek).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct Seek<'a, S: ?Sized> {
        seeker: &'a mut S,
        // `None` once the seek has started.
        position: Option<SeekFrom>,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, S: ?Sized> Seek<'a, S> {
    pub(crate) fn new(seeker: &'a mut S, position: SeekFrom) -> Self {
        Self {
            seeker,
            position: Some(position),
            _pin: PhantomPinned,
        }
    }
}

impl<S: AsyncSeek + Unpin + ?Sized> Future for Seek<'_, S> {
    type Output = io::Result<u64>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut seeker = Pin::new(&mut **this.seeker);
        if let Some(position) = *this.position {
            // A seek whose future was dropped may not have completed.
            ready!(seeker.as_mut().poll_complete(cx))?;
            seeker.as_mut().start_seek(position)?;
            *this.position = None;
        }
        seeker.poll_complete(cx)
    }
}
