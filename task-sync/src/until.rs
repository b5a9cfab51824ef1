//! The future that waits until a condition is met.
//!
//! A condition changes before its notifier locks the queue. The poll looks at the condition, locks
//! the queue, looks once more, and then pushes its waiter. So no wake is lost, as the front page of
//! `waiters.rs` says. A waiter that was released owes nothing: the notifier has released all
//! waiters, and each of them looks at the condition itself.
use crate::{
    coop::poll_proceed,
    waiters::{Waiter, Waiters},
};
use core::{
    future::Future,
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll, ready},
};

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
}

/// Waits until a condition is met.
///
/// The waiter is made where it is first pushed. So the moves of a new future copy little, and a
/// wait that is ready at once never makes one.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub(crate) struct Until<C: Condition> {
    condition: C,
    /// Initialised exactly if `has_waiter`.
    waiter: MaybeUninit<Waiter<()>>,
    has_waiter: bool,
}

impl<C: Condition> Until<C> {
    pub(crate) fn new(condition: C) -> Self {
        Self {
            condition,
            waiter: MaybeUninit::uninit(),
            has_waiter: false,
        }
    }

    /// Returns the condition and the waiter, if there is one. With `make` makes one.
    #[inline]
    fn project(self: Pin<&mut Self>, make: bool) -> (&mut C, Option<Pin<&Waiter<()>>>) {
        // SAFETY: the waiter is not moved out of `this`, and the condition is never pinned.
        let this = unsafe { self.get_unchecked_mut() };
        if make && !this.has_waiter {
            this.waiter.write(Waiter::new(()));
            this.has_waiter = true;
        }
        let waiter = this.has_waiter.then(|| {
            // SAFETY: the waiter is initialised.
            let waiter = unsafe { this.waiter.assume_init_ref() };
            // SAFETY: the waiter is pinned with the future, and nothing moves it.
            unsafe { Pin::new_unchecked(waiter) }
        });
        (&mut this.condition, waiter)
    }

    #[inline]
    fn poll_output(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        match self.as_mut().project(false).0.output() {
            Some(output) => Poll::Ready(output),
            None => self.wait(cx),
        }
    }

    fn wait(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let (condition, Some(waiter)) = self.project(true) else {
            unreachable!("the waiter was made");
        };
        loop {
            if waiter.is_queued() {
                // SAFETY: the waiter is this future's, and it was pushed to this queue.
                ready!(unsafe { condition.queue().poll(waiter, cx.waker()) });
            } else {
                // Declared before the guard, so that it is dropped after the unlock.
                let waker = cx.waker().clone();
                let mut locked = condition.queue().lock();
                if !condition.may_be_met(&locked) {
                    // SAFETY: the waiter is this future's and is not queued. The drop removes it.
                    unsafe { locked.push_back(waiter, waker, ()) };
                    return Poll::Pending;
                }
            }
            if let Some(output) = condition.output() {
                return Poll::Ready(output);
            }
        }
    }
}

impl<C: Condition> Future for Until<C> {
    type Output = C::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<C::Output> {
        let progress = ready!(poll_proceed(cx));
        let output = ready!(self.poll_output(cx));
        progress.made_progress();
        Poll::Ready(output)
    }
}

impl<C: Condition> Drop for Until<C> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the future is dropped where it was pinned, if it ever was.
        let mut this = unsafe { Pin::new_unchecked(self) };
        let (condition, Some(waiter)) = this.as_mut().project(false) else {
            return;
        };
        if waiter.is_queued() {
            // SAFETY: the waiter is this future's, and it was pushed to this queue.
            unsafe { condition.queue().remove(waiter) };
        }
        // SAFETY: nothing is moved out of `this`.
        let this = unsafe { this.get_unchecked_mut() };
        // SAFETY: the waiter is initialised, and not queued.
        unsafe { this.waiter.assume_init_drop() };
    }
}
