//! The present time.
//!
//! Under the cfg `selvedge_sim`, a thread of a simulation sees the simulation's virtual time.
use std::time::{Duration, Instant};

/// Returns the present time.
#[inline]
pub fn now() -> Instant {
    #[cfg(selvedge_sim)]
    if let Some(now) = crate::sim::with_host(|host, _| host.now()) {
        return now;
    }
    Instant::now()
}

/// Returns the time that has passed since `then`.
#[inline]
pub fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Returns the time at which the thread's simulation began. Elsewhere returns what `real` returns.
///
/// A clock that rounds times, and so depends on its start, repeats if it starts here.
#[inline]
pub fn epoch_or(real: impl FnOnce() -> Instant) -> Instant {
    #[cfg(selvedge_sim)]
    if let Some(epoch) = crate::sim::with_host(|host, _| host.epoch()) {
        return epoch;
    }
    real()
}
