//! tokio's conditions for the creation of sleeps and sockets. The package `tokio-facade` asks for
//! them.
//!
//! ```
//! use net_driver::checks::assert_may_sleep;
//!
//! assert!(std::panic::catch_unwind(assert_may_sleep).is_err(), "this thread has no driver");
//! ```
use crate::driver;

/// Checks that a sleep may be made here.
///
/// ```
/// let driver = net_driver::Driver::new(1);
/// let _entered = driver.enter(None);
/// net_driver::checks::assert_may_sleep();
/// ```
///
/// # Panics
/// Without a current driver, or if that one was made without sleeps.
#[inline]
#[track_caller]
pub fn assert_may_sleep() {
    match driver::with_current(|driver, _| driver.left_out.sleeps) {
        Some(false) => {}
        Some(true) => panic!(
            "this runtime has no timers, so a sleep cannot be made here: call enable_time or \
             enable_all on its builder"
        ),
        None => panic!(
            "a sleep was made outside of a runtime, so nothing would wake it: make it in a task, \
             inside the runtime's block_on, or after Handle::enter"
        ),
    }
}

/// Checks that a listener for signals may be made here.
///
/// ```
/// let driver = net_driver::Driver::new(1);
/// let _entered = driver.enter(None);
/// net_driver::checks::assert_may_listen();
/// ```
///
/// # Panics
/// Without a current driver, or if that one was made without sockets.
#[cfg(any(unix, windows))]
#[track_caller]
pub fn assert_may_listen() {
    match driver::with_current(|driver, _| driver.left_out.sockets) {
        Some(left_out) => assert_has_sockets(left_out),
        None => panic!(
            "a listener for signals was made outside of a runtime: make it in a task, inside the \
             runtime's block_on, or after Handle::enter"
        ),
    }
}

#[cfg(any(unix, windows))]
#[track_caller]
pub(crate) fn assert_has_sockets(left_out: bool) {
    assert!(
        !left_out,
        "this runtime has no driver of sockets, which sockets, pipes, child processes and signals \
         need: call enable_io or enable_all on its builder"
    );
}
