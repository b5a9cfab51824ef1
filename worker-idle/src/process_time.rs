//! The processor time of the process.
use std::time::Duration;

/// Returns the processor time that all threads of the process have used so far.
#[cfg(all(unix, not(any(selvedge_loom, selvedge_shuttle))))]
pub(crate) fn now() -> Duration {
    if sync_shim::sim::is_simulated() {
        return sync_shim::time::since(sync_shim::time::epoch_or(sync_shim::time::now));
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is valid for a write of a `timespec`.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    debug_assert_eq!(result, 0, "each process has this clock");
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_nanos(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// Where the system does not tell, or in a model, waits and parks cost the same.
#[cfg(any(not(unix), selvedge_loom, selvedge_shuttle))]
pub(crate) fn now() -> Duration {
    Duration::ZERO
}
