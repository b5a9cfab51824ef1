//! Functions that catch the panics of user code: of a task, a waker, a hook, a destructor.
//!
//! The payload of a panic is user code too: its drop may panic. So a payload that nobody waits for
//! is dropped by [`discard`], which also catches the panic of that drop.
//!
//! Without the feature `std` nothing can be caught, and a panic continues to unwind. The process
//! then often aborts, as a `no_std` program does at each panic.
use alloc_crate::boxed::Box;
use core::any::Any;

/// The payload of a panic.
///
/// ```
/// use sync_shim::panics::{Payload, catch};
///
/// let payload: Payload = catch(|| panic!("oh no")).unwrap_err();
/// assert_eq!(payload.downcast_ref(), Some(&"oh no"));
/// ```
pub type Payload = Box<dyn Any + Send>;

/// Runs `f` and catches its panic.
///
/// As with [`AssertUnwindSafe`](core::panic::AssertUnwindSafe), the caller must ensure that a state
/// that `f` leaves half changed does no harm.
///
/// ```
/// use sync_shim::panics::catch;
///
/// assert_eq!(catch(|| 7).unwrap(), 7);
/// assert!(catch(|| panic!("oh no")).is_err());
/// ```
///
/// # Errors
/// The payload of the panic.
#[inline]
pub fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Payload> {
    #[cfg(feature = "std")]
    return std::panic::catch_unwind(std::panic::AssertUnwindSafe(f));
    #[cfg(not(feature = "std"))]
    return Ok(f());
}

/// Runs `f` and drops the payload of its panic: for user code whose panic nobody waits for.
///
/// ```
/// use std::task::{Wake, Waker};
/// use sync_shim::panics::contain;
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

/// Drops a payload that nobody waits for.
///
/// If the drop of the payload panics, the payload of that second panic is leaked. Its drop could
/// panic as well, and so on forever.
///
/// ```
/// use sync_shim::panics::{catch, discard};
/// use std::panic::panic_any;
///
/// struct Bomb;
///
/// impl Drop for Bomb {
///     fn drop(&mut self) {
///         panic_any(Bomb);
///     }
/// }
///
/// discard(catch(|| panic_any(Bomb)).unwrap_err()); // No panic comes out of it.
/// ```
pub fn discard(payload: Payload) {
    // This does not call `discard_and`, and is not `#[cold]`: so the compiler makes the completion
    // of a task five instructions shorter.
    if let Err(again) = catch(move || drop(payload)) {
        core::mem::forget(again);
    }
}

/// Drops a payload as [`discard`] does. If the drop panics, passes the payload of that second panic
/// to `report`, and then leaks it. `report` must not panic.
///
/// ```
/// use sync_shim::panics::{catch, discard_and};
/// use std::panic::panic_any;
///
/// struct Bomb;
///
/// impl Drop for Bomb {
///     fn drop(&mut self) {
///         panic!("again");
///     }
/// }
///
/// let mut second = None;
/// let bomb = catch(|| panic_any(Bomb)).unwrap_err();
/// discard_and(bomb, |again| second = again.downcast_ref::<&str>().copied());
/// assert_eq!(second, Some("again"));
/// ```
#[cold]
pub fn discard_and(payload: Payload, report: impl FnOnce(&Payload)) {
    if let Err(again) = catch(move || drop(payload)) {
        report(&again);
        core::mem::forget(again);
    }
}
