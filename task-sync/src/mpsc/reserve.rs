//! The future of a reservation.
use super::chan::Chan;
use super::error::TrySendError;
use super::room::Need;
use crate::coop::poll_proceed;
use crate::waiters::Waiter;
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Reserves room. The error says that the channel is closed, or smaller than the reservation.
pub(super) struct Reserve<'a, T> {
    chan: &'a Chan<T, true>,
    count: usize,
    /// There is a waiter from the poll that queued it until the future is ready. Before that the
    /// making of a waiter would take longer than the attempt to reserve.
    waiter: Option<Waiter<Need>>,
}

impl<'a, T> Reserve<'a, T> {
    #[inline]
    pub(super) fn new(chan: &'a Chan<T, true>, count: usize) -> Self {
        Self {
            chan,
            count,
            waiter: None,
        }
    }

    /// Returns the waiter.
    fn waiter(self: Pin<&Self>) -> Option<Pin<&Waiter<Need>>> {
        // SAFETY: the waiter is pinned as the future is: nobody moves it, and it is dropped in
        // place.
        unsafe { self.map_unchecked(|this| &this.waiter) }.as_pin_ref()
    }

    /// Returns the place of the waiter.
    fn place(self: Pin<&mut Self>) -> Pin<&mut Option<Waiter<Need>>> {
        // SAFETY: as in `waiter`.
        unsafe { self.map_unchecked_mut(|this| &mut this.waiter) }
    }

    #[inline]
    fn poll_first(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        if self.count > self.chan.room.max_capacity() {
            return Poll::Ready(Err(()));
        }
        match self.chan.room.try_reserve(self.count) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TrySendError::Closed(())) => Poll::Ready(Err(())),
            Err(TrySendError::Full(())) => self.poll_full(cx),
        }
    }

    /// Queues a waiter.
    #[cold]
    fn poll_full(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let waker = cx.waker().clone();
        let need = Need::of(self.count);
        self.as_mut().place().set(Some(Waiter::new(need)));
        let (chan, count) = (self.chan, self.count);
        if let Some(waiter) = self.as_ref().waiter() {
            // SAFETY: this future owns the waiter, which is new, and its drop calls `cancel`.
            let is_queued = unsafe { chan.room.queue(waiter, waker, count) };
            if is_queued {
                return self.poll_queued(cx);
            }
        }
        self.place().set(None);
        Poll::Ready(Err(()))
    }

    fn poll_queued(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), ()>> {
        let chan = self.chan;
        let Some(waiter) = self.as_ref().waiter() else {
            return Poll::Pending;
        };
        // SAFETY: this future owns the waiter, and has queued it.
        let reserved = ready!(unsafe { chan.room.poll(waiter, cx.waker()) });
        self.as_mut().place().set(None);
        Poll::Ready(reserved)
    }
}

impl<T> Future for Reserve<'_, T> {
    type Output = Result<(), ()>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let progress = ready!(poll_proceed(cx));
        let reserved = match self.waiter.is_none() {
            true => ready!(self.poll_first(cx)),
            false => ready!(self.poll_queued(cx)),
        };
        progress.made_progress();
        Poll::Ready(reserved)
    }
}

impl<T> Drop for Reserve<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let chan = self.chan;
        if self.waiter.is_none() {
            return;
        }
        // SAFETY: the future was pinned when it queued the waiter, and is not moved any more.
        let this = unsafe { Pin::new_unchecked(&*self) };
        let Some(waiter) = this.waiter() else { return };
        // SAFETY: this future owns the waiter, and has queued it.
        if unsafe { chan.room.cancel(waiter) } {
            chan.wake_receiver();
        }
    }
}
