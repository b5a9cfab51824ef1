//! The future that waits in a queue of waiters, whatever for.
//!
//! A [`Request`] is for something that a notifier grants to one waiter: permits, a lock, room. A
//! [`Condition`] is met for all waiters at once; [`until`] makes it a request.
//!
//! A condition changes before its notifier locks the queue. The poll looks at the condition, locks
//! the queue, looks once more, and then pushes its waiter. So no wake is lost, as the front page of
//! `waiters.rs` says. A waiter that was released owes nothing: the notifier has released all
//! waiters, and each of them looks at the condition itself.
use crate::{
    coop::{WaitsOn, poll_proceed},
    waiters::{Waiter, Waiters},
};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

/// A request to a primitive.
pub(crate) trait Request {
    /// The value of a waiter.
    type Value: Copy;
    /// The value of a waiter that was never pushed.
    const NEW: Self::Value;
    type Output;

    /// Polls for the request. Queues the waiter, if the request must wait.
    ///
    /// # Safety
    /// The caller owns the waiter, and uses it for this request alone, which it does not change.
    /// Before the waiter ends, the caller calls [`cancel`](Self::cancel), or the last poll was
    /// ready.
    unsafe fn poll(
        &mut self,
        waiter: Pin<&Waiter<Self::Value>>,
        waker: &Waker,
    ) -> Poll<Self::Output>;

    /// Ends the request: takes the waiter out of its queue, and gives back what it was granted.
    ///
    /// # Safety
    /// As of `poll`, whose last call was not ready.
    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<Self::Value>>);

    /// Says what the request waits for, to a dump of tasks.
    fn waits_on(&self) -> WaitsOn;
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

    /// # Panics
    /// If it was ready before.
    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<G> {
        let progress = ready!(poll_proceed(cx));
        // SAFETY: the waiter is not moved out of the future; nothing else needs to be pinned.
        let this = unsafe { self.get_unchecked_mut() };
        let request = this.request.as_mut().expect("polled after completion");
        // SAFETY: the future is pinned, and so is its waiter.
        let waiter = unsafe { Pin::new_unchecked(&this.waiter) };
        // SAFETY: the waiter is this future's, which does not change the request. The drop calls
        // `cancel`, except after a poll that was ready.
        let Poll::Ready(output) = (unsafe { request.poll(waiter, cx.waker()) }) else {
            progress.waits_for(|| request.waits_on());
            return Poll::Pending;
        };
        progress.made_progress();
        let request = this.request.take().expect("it was there above");
        Poll::Ready((this.finish)(request, output))
    }
}

impl<R: Request, F> Drop for Wait<R, F> {
    #[inline]
    fn drop(&mut self) {
        let Some(request) = &mut self.request else {
            return;
        };
        // SAFETY: a future that was polled is pinned, and so is its waiter until the end of this
        // drop.
        let waiter = unsafe { Pin::new_unchecked(&self.waiter) };
        if !waiter.is_idle() {
            // SAFETY: the waiter is this future's, and no poll was ready.
            unsafe { request.cancel(waiter) };
        }
    }
}

/// A condition for which tasks wait in a queue.
pub(crate) trait Condition {
    /// The state that the queue's lock protects.
    type Shared;
    /// The output of the future.
    type Output;

    /// The queue of the tasks that wait for the condition.
    fn queue(&self) -> &Waiters<(), Self::Shared>;

    /// Returns the future's output if the condition is met.
    fn output(&mut self) -> Option<Self::Output>;

    /// Returns whether `output` may return something. It runs under the queue's lock, so no user
    /// code runs in it.
    fn may_be_met(&self, shared: &Self::Shared) -> bool;

    /// Says what the condition is, to a dump of tasks.
    fn waits_on(&self) -> WaitsOn;
}

/// Waits until a condition is met.
#[inline]
pub(crate) fn until<C: Condition>(condition: C) -> impl Future<Output = C::Output> {
    Wait::new(Until(condition), |_, output| output)
}

/// The request that a condition is met.
struct Until<C>(C);

impl<C: Condition> Until<C> {
    /// # Safety
    /// As of `Request::poll`.
    unsafe fn wait(&mut self, waiter: Pin<&Waiter<()>>, waker: &Waker) -> Poll<C::Output> {
        loop {
            if waiter.is_queued() {
                // SAFETY: the caller's. The waiter was pushed to this queue.
                ready!(unsafe { self.0.queue().poll(waiter, waker) });
            } else {
                // Declared before the guard, so that it is dropped after the unlock.
                let waker = waker.clone();
                let mut locked = self.0.queue().lock();
                if !self.0.may_be_met(&locked) {
                    // SAFETY: the caller's. The waiter is not queued.
                    unsafe { locked.push_back(waiter, waker, ()) };
                    return Poll::Pending;
                }
            }
            if let Some(output) = self.0.output() {
                return Poll::Ready(output);
            }
        }
    }
}

impl<C: Condition> Request for Until<C> {
    type Value = ();
    const NEW: () = ();
    type Output = C::Output;

    #[inline]
    unsafe fn poll(&mut self, waiter: Pin<&Waiter<()>>, waker: &Waker) -> Poll<C::Output> {
        let Some(output) = self.0.output() else {
            // SAFETY: the caller's.
            return unsafe { self.wait(waiter, waker) };
        };
        // The task may be polled before its wake.
        if !waiter.is_idle() {
            // SAFETY: the caller's.
            unsafe { self.cancel(waiter) };
        }
        Poll::Ready(output)
    }

    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<()>>) {
        // SAFETY: the caller's. The waiter was pushed to this queue.
        unsafe { self.0.queue().remove(waiter) };
    }

    #[cold]
    fn waits_on(&self) -> WaitsOn {
        self.0.waits_on()
    }
}
