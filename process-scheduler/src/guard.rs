//! Runs user code between the steps of processes. Its panic must neither end a worker nor skip the
//! worker's next actions.
use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

/// Runs user code and drops its panic, which nobody waits for. Returns `None` if it panics.
pub(crate) fn guarded<R>(f: impl FnOnce() -> R) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(panic) => {
            // The drop of a panic's payload may panic.
            mem::forget(panic);
            None
        }
    }
}

/// Drops a value of the user.
pub(crate) fn drop_guarded<T>(value: T) {
    guarded(|| drop(value));
}

/// Wakes a task, whose waker may panic.
pub(crate) fn wake(waker: Waker) {
    guarded(|| waker.wake());
}
