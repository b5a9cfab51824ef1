//! The source of time.

/// A monotonic clock, in nanoseconds.
///
/// A closure that returns the time is a clock. The start of the count is arbitrary. A
/// [`FairQueue`](crate::FairQueue) treats a reading that is less than an earlier one as equal to
/// it.
///
/// ```
/// use sched_group::{Clock, FairQueue};
/// use std::{cell::Cell, time::Instant};
///
/// struct Monotonic(Instant);
///
/// impl Clock for Monotonic {
///     fn now(&self) -> u64 {
///         self.0.elapsed().as_nanos() as u64
///     }
/// }
///
/// let real: FairQueue<(), Monotonic> = FairQueue::new(Monotonic(Instant::now()));
///
/// // A test, or a caller that reads the time itself, sets a virtual clock.
/// let time = Cell::new(0);
/// let virtual_time: FairQueue<(), _> = FairQueue::new(|| time.get());
/// # _ = (real, virtual_time);
/// ```
pub trait Clock {
    /// Returns the nanoseconds since some fixed moment.
    fn now(&self) -> u64;
}

impl<F: Fn() -> u64> Clock for F {
    fn now(&self) -> u64 {
        self()
    }
}
