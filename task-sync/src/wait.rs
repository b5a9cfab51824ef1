//! The future that waits in a queue of waiters, whatever for.
use crate::{coop::poll_proceed, waiters::Waiter};
use core::{
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

/// A request to a primitive: permits of a semaphore, or a lock.
pub(crate) trait Request {
    /// The value of a waiter.
    type Value: Copy;
    /// The value of a waiter that was never pushed.
    const NEW: Self::Value;
    type Output;

    /// Polls for the request. Queues the waiter, if the request must wait.
    ///
    /// # Safety
    /// The caller owns the waiter, and uses it for this request alone. The request does not change.
    /// Before the waiter ends, the caller calls [`cancel`](Self::cancel), or the last poll was
    /// ready.
    unsafe fn poll(&self, waiter: Pin<&Waiter<Self::Value>>, waker: &Waker) -> Poll<Self::Output>;

    /// Ends the request: takes the waiter out of its queue, and gives back what it was granted.
    ///
    /// # Safety
    /// As of `poll`, whose last call was not ready.
    unsafe fn cancel(&self, waiter: Pin<&Waiter<Self::Value>>);
}

/// Waits until a request is granted, and makes it into a guard.
pub(crate) struct Wait<R: Request, F> {
    /// `None` once the future is ready.
    request: Option<R>,
    waiter: Waiter<R::Value>,
    finish: F,
}

impl<R: Request, F> Wait<R, F> {
    #[inline]
    pub(crate) fn new<G>(request: R, finish: F) -> Self
    where
        F: Fn(R, R::Output) -> G,
    {
        Self {
            request: Some(request),
            waiter: Waiter::new(R::NEW),
            finish,
        }
    }
}

impl<R: Request, F, G> Future for Wait<R, F>
where
    F: Fn(R, R::Output) -> G,
{
    type Output = G;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<G> {
        let progress = ready!(poll_proceed(cx));
        // SAFETY: the waiter is not moved out of the future; nothing else needs to be pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let request = this.request.as_ref().expect("polled after completion");
        // SAFETY: the future is pinned, and so is its waiter.
        let waiter = unsafe { Pin::new_unchecked(&this.waiter) };
        // SAFETY: the waiter is this future's, which does not change the request. The drop calls
        // `cancel`, except after a poll that was ready.
        let output = ready!(unsafe { request.poll(waiter, cx.waker()) });
        progress.made_progress();
        let request = this.request.take().expect("it was there above");
        Poll::Ready((this.finish)(request, output))
    }
}

impl<R: Request, F> Drop for Wait<R, F> {
    #[inline]
    fn drop(&mut self) {
        let Some(request) = &self.request else { return };
        // SAFETY: a future that was polled is pinned, and so is its waiter until the end of this
        // drop.
        let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
        if !waiter.is_idle() {
            // SAFETY: the waiter is this future's, and no poll was ready.
            unsafe { request.cancel(waiter) };
        }
    }
}
