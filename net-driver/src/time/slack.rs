//! The timer slack of a thread: how late the system may end a wait with a limit.
//!
//! Linux may end a wait up to 50 µs late, so that one interrupt ends several waits. This delay
//! would be most of the lateness of a short sleep on an idle worker.
use std::cell::Cell;

thread_local! {
    static IS_SET: Cell<bool> = const { Cell::new(false) };
}

/// Sets the slack of this thread to a microsecond, once.
pub(crate) fn shorten() {
    if !IS_SET.get() && !sync_shim::sim::is_simulated() {
        IS_SET.set(true);
        set();
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
#[cold]
fn set() {
    const NANOS: libc::c_ulong = 1_000;
    // SAFETY: this call takes a number, and uses no memory. An error leaves the slack as it was.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, NANOS) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn set() {}
