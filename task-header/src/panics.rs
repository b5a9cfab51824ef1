//! Keeps a panic of a user's code where it happened, and reports it to the task's scheduler.
use crate::{
    cell::{TaskPtr, vtable},
    error::Payload,
};

/// Runs `f` and catches its panic. Without `std` nothing can be caught: the panic goes on.
pub(crate) fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    #[cfg(feature = "std")]
    return std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    #[cfg(not(feature = "std"))]
    return Ok(f());
}

/// Runs `f`, and drops what its panic carries: for code of a user whose panic has nowhere to go.
///
/// A payload whose own drop panics is leaked from there on, since that could repeat for ever.
/// Without the feature `std` nothing can be caught, and the panic goes on.
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

/// As [`contain`], and then runs `rest`, also where nothing can be contained and the panic of `f`
/// goes on.
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

/// As [`contain`], for code of this task, whose scheduler hears of the panic.
///
/// # Safety
/// The caller has a reference to the task, and keeps it.
#[inline]
pub(crate) unsafe fn contain_in(task: TaskPtr, f: impl FnOnce()) {
    if let Err(payload) = catch(f) {
        // SAFETY: passed on.
        unsafe { discard_in(task, payload) };
    }
}

/// Tells of a panic, and drops what it carried, which nobody else will see.
///
/// # Safety
/// As for [`contain_in`].
#[cold]
pub(crate) unsafe fn discard_in(task: TaskPtr, payload: Payload) {
    // SAFETY: passed on.
    unsafe { tell(task, &payload) };
    if let Err(again) = catch(move || drop(payload)) {
        // SAFETY: passed on.
        unsafe { tell(task, &again) };
        core::mem::forget(again);
    }
}

/// Tells the scheduler of a panic.
///
/// # Safety
/// As for [`contain_in`].
#[cold]
pub(crate) unsafe fn tell(task: TaskPtr, payload: &Payload) {
    // SAFETY: passed on.
    let vtable = unsafe { vtable(task) };
    // SAFETY: passed on.
    contain(|| unsafe { (vtable.panicked)(task, &**payload) });
}
