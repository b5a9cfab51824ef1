//! Ctrl-C, in commands that keep what they have found when it comes.
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static CAME: AtomicBool = AtomicBool::new(false);

/// Makes the first SIGINT or SIGTERM one that only [`came`] reports. The second ends the process.
#[cfg(unix)]
pub(crate) fn watch() {
    extern "C" fn note(_: libc::c_int) {
        // Ordering: the flag hands nothing over; `came` reads it sooner or later.
        if CAME.swap(true, Relaxed) {
            // SAFETY: it has no premises, and may be called in a signal handler.
            unsafe { libc::_exit(130) }
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let handler = note as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler does nothing but what a signal handler may.
        unsafe { libc::signal(signal, handler) };
    }
}

/// Elsewhere Ctrl-C ends the process at once.
#[cfg(not(unix))]
pub(crate) fn watch() {}

/// Whether such a signal came.
pub(crate) fn came() -> bool {
    // Ordering: as in `watch`.
    CAME.load(Relaxed)
}
