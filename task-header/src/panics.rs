//! Functions that *contain* panics of user code, such as a future's drop or a waker's wake. To
//! contain a panic is to catch it at the call of the user code, and to drop its payload. The
//! functions that take a task also report the panic to the task's scheduler.
//!
//! The *code of a task* is the code of its future, its output and its join waker, and the drops of
//! the payloads of their panics.
use crate::cell::TaskPtr;

pub(crate) use sync_shim::panics::Payload;
#[cfg(feature = "std")]
pub(crate) use sync_shim::panics::{catch, contain, discard_and};

/// The same functions for builds of this crate without `std`. They catch nothing: a panic continues
/// to unwind.
///
/// Another package may enable `std` in `sync-shim`, whose functions then catch panics. This crate
/// uses the functions below nevertheless, so that its behaviour depends only on its own features.
#[cfg(not(feature = "std"))]
mod without_std {
    use super::Payload;

    pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
        Ok(f())
    }

    pub(crate) fn contain(f: impl FnOnce()) {
        f();
    }

    pub(crate) fn discard_and(payload: Payload, _: impl FnOnce(&Payload)) {
        drop(payload);
    }
}

#[cfg(not(feature = "std"))]
pub(crate) use without_std::{catch, contain, discard_and};

/// Runs `f` as [`contain`] does, and then runs `rest`. In a build that catches nothing, `rest` runs
/// while a panic of `f` unwinds.
pub(crate) fn contain_then(f: impl FnOnce(), rest: impl FnOnce()) {
    /// Runs the closure in its drop.
    struct Then<R: FnOnce()>(Option<R>);
    impl<R: FnOnce()> Drop for Then<R> {
        fn drop(&mut self) {
            if let Some(rest) = self.0.take() {
                rest();
            }
        }
    }
    let _then = Then(Some(rest));
    contain(f);
}

/// Runs `f` as [`contain`] does, and also reports a panic of `f` to the scheduler of `task`.
///
/// # Safety
/// `f` is code of the task, and the caller has a reference to the task for the whole call.
#[inline]
pub(crate) unsafe fn contain_in(task: TaskPtr, f: impl FnOnce()) {
    if let Err(payload) = catch(f) {
        // SAFETY: the caller has a reference, and `f` is code of the task.
        unsafe { discard_in(task, payload) };
    }
}

/// Reports a panic to the scheduler of `task`, and drops its payload. If that drop panics too,
/// reports the second panic as well.
///
/// # Safety
/// Code of the task has panicked with `payload`, and the caller has a reference to the task for the
/// whole call.
#[cold]
pub(crate) unsafe fn discard_in(task: TaskPtr, payload: Payload) {
    // SAFETY: the caller promises both.
    unsafe { report(task, &payload) };
    // SAFETY: the caller has a reference, and the drop of the payload is code of the task.
    discard_and(payload, |again| unsafe { report(task, again) });
}

/// Reports a panic to the scheduler of `task`. Contains a panic of the scheduler's own method.
///
/// # Safety
/// As for [`discard_in`].
#[cold]
pub(crate) unsafe fn report(task: TaskPtr, payload: &Payload) {
    // SAFETY: the caller has a reference.
    let vtable = unsafe { task.as_ref() }.vtable;
    // SAFETY: code of the task has panicked, and the caller has a reference. The vtable is the
    // task's own, so its `panicked` expects a task of this `cell::Kind`.
    contain(|| unsafe { (vtable.panicked)(task, &**payload) });
}
