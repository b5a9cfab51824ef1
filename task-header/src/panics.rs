//! Contains a panic of user code where it happened, and reports it to the task's scheduler.
use crate::cell::{TaskPtr, vtable};

pub(crate) use sync_shim::panics::Payload;
#[cfg(feature = "std")]
pub(crate) use sync_shim::panics::{catch, contain, discard_and};

/// The functions that contain a panic, for builds of this crate without std, where no panic is
/// caught. Such a build uses them even if another package enables std in `sync-shim`.
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

/// Runs `f` as [`contain`] does, and then `rest`, even in a build where nothing is caught and the
/// panic of `f` continues to unwind.
pub(crate) fn contain_then(f: impl FnOnce(), rest: impl FnOnce()) {
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

/// Runs `f` as [`contain`] does, for code of this task, and reports a panic to the task's
/// scheduler.
///
/// # Safety
/// The caller has a reference to the task, during the whole call.
#[inline]
pub(crate) unsafe fn contain_in(task: TaskPtr, f: impl FnOnce()) {
    if let Err(payload) = catch(f) {
        // SAFETY: the caller promises this.
        unsafe { discard_in(task, payload) };
    }
}

/// Reports a panic, and drops its payload, which nothing else will see.
///
/// # Safety
/// As for [`contain_in`].
#[cold]
pub(crate) unsafe fn discard_in(task: TaskPtr, payload: Payload) {
    // SAFETY: the caller promises this.
    unsafe { report(task, &payload) };
    // SAFETY: the caller promises this.
    discard_and(payload, |again| unsafe { report(task, again) });
}

/// Reports a panic to the scheduler.
///
/// # Safety
/// As for [`contain_in`].
#[cold]
pub(crate) unsafe fn report(task: TaskPtr, payload: &Payload) {
    // SAFETY: the caller promises this.
    let vtable = unsafe { vtable(task) };
    // SAFETY: the caller promises this.
    contain(|| unsafe { (vtable.panicked)(task, &**payload) });
}
