//! The future of a reservation.
use super::chan::Chan;
use super::error::TrySendError;
use super::room::Need;
use crate::coop::WaitsOn;
use crate::wait::{Request, Wait};
use crate::waiters::Waiter;
use core::{
    future::Future,
    pin::Pin,
    task::{Poll, Waker},
};

/// Reserves room. The error says that the channel is closed, or smaller than the reservation.
#[inline]
pub(super) fn reserve<T>(
    chan: &Chan<T, true>,
    count: usize,
) -> impl Future<Output = Result<(), ()>> {
    Wait::new(Reserve { chan, count }, |_, reserved| reserved)
}

/// The request for room.
struct Reserve<'a, T> {
    chan: &'a Chan<T, true>,
    count: usize,
}

impl<T> Reserve<'_, T> {
    /// Queues a waiter.
    ///
    /// # Safety
    /// As of `Request::poll`, and the waiter is idle.
    #[cold]
    unsafe fn wait(&self, waiter: Pin<&Waiter<Need>>, waker: &Waker) -> Poll<Result<(), ()>> {
        // SAFETY: the caller's.
        let is_queued = unsafe { self.chan.room.queue(waiter, waker.clone(), self.count) };
        if !is_queued {
            return Poll::Ready(Err(()));
        }
        // SAFETY: the caller's. The waiter is queued.
        unsafe { self.chan.room.poll(waiter, waker) }
    }
}

impl<T> Request for Reserve<'_, T> {
    type Value = Need;
    const NEW: Need = Need::of(0);
    type Output = Result<(), ()>;

    #[inline]
    unsafe fn poll(&mut self, waiter: Pin<&Waiter<Need>>, waker: &Waker) -> Poll<Result<(), ()>> {
        let room = &self.chan.room;
        if !waiter.is_idle() {
            // SAFETY: the caller's. The waiter is not idle, so it was queued.
            return unsafe { room.poll(waiter, waker) };
        }
        if self.count > room.max_capacity() {
            return Poll::Ready(Err(()));
        }
        match room.try_reserve(self.count) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(TrySendError::Closed(())) => Poll::Ready(Err(())),
            // SAFETY: the caller's. The waiter is idle.
            Err(TrySendError::Full(())) => unsafe { self.wait(waiter, waker) },
        }
    }

    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<Need>>) {
        // SAFETY: the caller's. The waiter is not idle, so it was queued.
        if unsafe { self.chan.room.cancel(waiter) } {
            self.chan.wake_receiver();
        }
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("room in an mpsc channel", self.chan)
    }
}
