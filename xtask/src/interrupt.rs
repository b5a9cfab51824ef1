//! Handles Ctrl-C in commands that keep their finished results.
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CAME: AtomicBool = AtomicBool::new(false);

/// Makes the first SIGINT or SIGTERM only set a flag, which [`came`] reads. The second ends the
/// process.
#[cfg(unix)]
pub(crate) fn watch() {
    extern "C" fn note(_: libc::c_int) {
        // Ordering: the flag publishes nothing; `came` reads it sooner or later.
        if CAME.swap(true, Relaxed) {
            // SAFETY: `_exit` has no premises, and a signal handler may call it.
            unsafe { libc::_exit(130) }
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler does only what a signal handler may do.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Does nothing: on other systems, Ctrl-C ends the process at once.
#[cfg(not(unix))]
pub(crate) fn watch() {}

/// Returns whether a signal has come since [`watch`] was called.
pub(crate) fn came() -> bool {
    // Ordering: as in `watch`.
    CAME.load(Relaxed)
}
