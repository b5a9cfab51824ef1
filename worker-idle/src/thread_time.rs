//! The processor time that a call takes of this thread.
use std::time::Duration;

/// Whether the system tells the processor time. Otherwise [`of`] returns the time of the call.
pub(crate) const EXISTS: bool = cfg!(all(unix, not(any(selvedge_loom, selvedge_shuttle))));

/// Runs `f`. Returns its result and the processor time that it took of this thread.
pub(crate) fn of<R>(f: impl FnOnce() -> R) -> (R, Duration) {
    let begun = now();
    let result = f();
    (result, now().saturating_sub(begun))
}

/// The processor time of this thread so far.
#[cfg(all(unix, not(any(selvedge_loom, selvedge_shuttle))))]
fn now() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for a write of a `timespec`.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    debug_assert_eq!(result, 0, "each thread has this clock");
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(all(not(unix), not(any(selvedge_loom, selvedge_shuttle))))]
fn now() -> Duration {
    use std::{sync::OnceLock, time::Instant};
    static BEGUN: OnceLock<Instant> = OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed()
}

/// In a model no time passes.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
fn now() -> Duration {
    Duration::ZERO
}
