//! Runs user code between the steps of processes. Its panic must neither end a worker nor skip the
//! worker's next actions.
use std::task::{RawWakerVTable, Waker};
use sync_shim::panics::{catch, discard};

/// Runs user code and drops its panic, which nobody waits for. Returns `None` if it panics.
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Option<R> {
    catch(f).map_err(discard).ok()
}

/// Drops a value of the user.
pub(crate) fn drop_guarded<T>(value: T) {
    guarded(|| drop(value));
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
