//! `block_on` with a parker that is made only if the thread has to wait.
//!
//! A parker is an allocation. A future that is ready at its first poll needs none.
//!
//! 1. The waker of the first poll is *borrowed*: its data points to a [`Lazy`] on this thread's
//!    stack. The waker does not outlive the poll, which gets only a reference to the waker.
//! 2. The first clone or wake of the borrowed waker makes the parker, once, under a lock, as
//!    another thread may have the reference too. A clone is a *counted* waker: its data points to
//!    the parker, which the clone keeps alive.
//! 3. After the first `Pending` the thread parks with that parker. If there is no parker yet, no
//!    thread has a waker, and this thread makes a parker. If a wake came before the park, its token
//!    is in the parker.
//! 4. Later polls get a counted waker. The clones of the first waker are equal to it
//!    (`Waker::will_wake`).
use super::{Inner, ThreadPark};
use crate::park::{Park, block_on::poll_until_ready};
use core::{
    future::Future,
    mem::ManuallyDrop,
    pin::pin,
    ptr,
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
};
use sync_shim::sync::{Arc, Mutex};

/// A parker that is made when it is first needed.
struct Lazy(Mutex<Option<ThreadPark>>);

static BORROWED: RawWakerVTable = RawWakerVTable::new(clone_lazy, wake_lazy, wake_lazy, |_| ());

impl Lazy {
    fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns a waker that borrows this `Lazy` (rule 1).
    ///
    /// # Safety
    /// The `Lazy` must outlive the waker, and must not move before the waker is gone.
    unsafe fn waker(&self) -> Waker {
        // SAFETY: the functions keep the contract of a waker: `Lazy` is `Sync`, and the caller
        // keeps this `Lazy` alive and in its place.
        unsafe { Waker::new(ptr::from_ref(self).cast(), &BORROWED) }
    }

    /// Calls `f` with the parker, which is made if there is none (rule 2).
    #[cold]
    fn with_parker<R>(&self, f: impl FnOnce(&Arc<Inner>) -> R) -> R {
        f(&self.0.lock().get_or_insert_with(ThreadPark::new).0)
    }

    /// Returns the parker to wait with (rule 3).
    fn into_park(self) -> ThreadPark {
        self.0.into_inner().unwrap_or_else(ThreadPark::new)
    }
}

unsafe fn clone_lazy(this: *const ()) -> RawWaker {
    // SAFETY: the `Lazy` outlives its waker (`Lazy::waker`).
    let this = unsafe { &*this.cast::<Lazy>() };
    RawWaker::new(Arc::into_raw(this.with_parker(Arc::clone)).cast(), &COUNTED)
}

unsafe fn wake_lazy(this: *const ()) {
    // SAFETY: the `Lazy` outlives its waker (`Lazy::waker`).
    let this = unsafe { &*this.cast::<Lazy>() };
    this.with_parker(|parker| parker.unpark());
}

/// Returns a waker that unparks this parker.
pub(super) fn counted(parker: Arc<Inner>) -> Waker {
    // SAFETY: the functions keep the contract of a waker: the parker is `Send` and `Sync`, and the
    // waker owns the count of `parker`.
    unsafe { Waker::new(Arc::into_raw(parker).cast(), &COUNTED) }
}

static COUNTED: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

unsafe fn clone(parker: *const ()) -> RawWaker {
    // SAFETY: the waker's data is a counted pointer, and the waker keeps its count.
    unsafe { Arc::increment_strong_count(parker.cast::<Inner>()) };
    RawWaker::new(parker, &COUNTED)
}

unsafe fn wake_by_ref(parker: *const ()) {
    // SAFETY: the waker's counted pointer keeps the parker alive.
    unsafe { &*parker.cast::<Inner>() }.unpark();
}

unsafe fn wake(parker: *const ()) {
    // SAFETY: the waker is consumed, so its counted pointer is owned here.
    unsafe { Arc::from_raw(parker.cast::<Inner>()) }.unpark();
}

unsafe fn drop_waker(parker: *const ()) {
    // SAFETY: as in `wake`.
    drop(unsafe { Arc::from_raw(parker.cast::<Inner>()) });
}

impl ThreadPark {
    /// Blocks this thread until a future is ready, and returns its output.
    ///
    /// Like [`block_on`](crate::park::block_on()) with a new parker. The parker, an allocation, is
    /// made when the future first clones or wakes its waker, or first returns `Pending`. A future
    /// that is ready before that needs no allocation and no read-modify-write.
    ///
    /// ```
    /// use std::{future::{poll_fn, ready}, task::Poll};
    /// use worker_idle::park::ThreadPark;
    ///
    /// assert_eq!(ThreadPark::block_on(ready(7)), 7);
    ///
    /// let mut waited = false;
    /// let waits = poll_fn(|cx| {
    ///     if std::mem::replace(&mut waited, true) {
    ///         return Poll::Ready(7);
    ///     }
    ///     let waker = cx.waker().clone();
    ///     std::thread::spawn(move || waker.wake());
    ///     Poll::Pending
    /// });
    /// assert_eq!(ThreadPark::block_on(waits), 7);
    /// ```
    ///
    /// # Panics
    /// If the future panics.
    pub fn block_on<F: Future>(future: F) -> F::Output {
        let mut future = pin!(future);
        let lazy = Lazy::new();
        {
            // SAFETY: `lazy` is moved only after this block, when the waker is gone.
            let waker = unsafe { lazy.waker() };
            let mut cx = Context::from_waker(&waker);
            if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
                return output;
            }
        }
        let mut park = lazy.into_park();
        // SAFETY: the functions keep the contract of a waker: the parker is `Send` and `Sync`. The
        // waker uses the count of `park`, and `park` outlives the waker. `ManuallyDrop` keeps the
        // waker from dropping that count.
        let waker = unsafe { Waker::new(Arc::as_ptr(&park.0).cast(), &COUNTED) };
        let waker = ManuallyDrop::new(waker);
        park.park();
        poll_until_ready(&mut park, &waker, future)
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
