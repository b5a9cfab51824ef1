//! Contains a panic of user code where it happened, and reports it to the task's scheduler.
use crate::{
    cell::{TaskPtr, vtable},
    error::Payload,
};

/// Runs `f` and catches its panic. Without `std` nothing can be caught: the panic unwinds on.
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    #[cfg(feature = "std")]
    return std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    #[cfg(not(feature = "std"))]
    return Ok(f());
}

/// Runs `f` and drops the payload of its panic: for user code whose panic nobody waits for.
///
/// A payload whose own drop panics is leaked, with the second payload, since that could repeat
/// forever. Without the feature `std` nothing can be caught, and the panic unwinds on.
///
/// ```
/// use std::task::{Wake, Waker};
/// use task_header::panics::contain;
///
/// struct Broken;
///
/// impl Wake for Broken {
///     fn wake(self: std::sync::Arc<Self>) {
///         panic!("in a wake");
///     }
/// }
///
/// let wakers = [Waker::from(std::sync::Arc::new(Broken)), Waker::noop().clone()];
/// let mut woken = 0;
/// for waker in wakers {
///     contain(|| waker.wake());
///     woken += 1;
/// }
/// assert_eq!(woken, 2);
/// ```
pub fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch(f) {
        discard(payload);
    }
}

/// Runs `f` as [`contain`] does, and then `rest`, even where nothing can be contained and the panic
/// of `f` unwinds on.
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

fn discard(payload: Payload) {
    if let Err(again) = catch(move || drop(payload)) {
        core::mem::forget(again);
    }
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
    if let Err(again) = catch(move || drop(payload)) {
        // SAFETY: the caller promises this.
        unsafe { report(task, &again) };
        core::mem::forget(again);
    }
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
