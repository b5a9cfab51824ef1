//! Runs user code between the steps of processes. Its panic must neither end a worker nor skip the
//! worker's next actions.
//!
//! One guard covers one value of the user. If the drops of two values panic under one guard, the
//! second panic comes while the first one unwinds, and aborts the program.
use std::{
    mem::ManuallyDrop,
    ops::Deref,
    task::{RawWakerVTable, Waker},
};
use sync_shim::panics::{catch, discard};

/// Runs user code and drops its panic, which nobody waits for. Returns `None` if it panics.
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch(f).map_err(discard).ok()
}

/// Drops a value of the user.
pub(crate) fn drop_guarded<T>(value: T) {
    guarded(|| drop(value));
}

/// A value of the user whose drop is guarded, wherever it is dropped.
pub(crate) struct Guarded<T>(ManuallyDrop<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(ManuallyDrop::new(value))
    }

    /// Returns the value, which is not guarded any more.
    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: nothing uses the value again, and `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Drop for Guarded<T> {
    fn drop(&mut self) {
        guarded(|| {
            // SAFETY: the value is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.0) }
        });
    }
}

impl<T> Deref for Guarded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Wakes a task, whose waker may panic.
pub(crate) fn wake(waker: Waker) {
    guarded(|| waker.wake());
}

/// Names a waker's task as [`Waker::will_wake`] does, as long as a waker of that task exists.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct WakerId(usize, &'static RawWakerVTable);

impl WakerId {
    pub(crate) fn of(waker: &Waker) -> Self {
        Self(waker.data().addr(), waker.vtable())
    }
}
