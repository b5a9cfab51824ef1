//! A view of a waiting task, for dumps of tasks.
use core::{fmt, task::Waker};

/// A task that waits for a primitive of this crate, as a `for_each_waiter` reports it.
///
/// The closure of a `for_each_waiter` runs under the primitive's internal lock. It must not use the
/// primitive that it was called from, nor wake, clone or drop a waker: each of these may deadlock.
/// It may compare the waker ([`Waker::will_wake`], [`Waker::data`]) and copy what it finds.
pub struct Waiting<'a> {
    waker: &'a Waker,
    needed: usize,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(waker: &'a Waker, needed: usize) -> Self {
        Self { waker, needed }
    }

    /// Returns the waker that the task registered in its last poll.
    pub fn waker(&self) -> &'a Waker {
        self.waker
    }

    /// Returns how many units the task still waits for: the permits that it lacks, or 1 where the
    /// primitive has no units.
    pub fn needed(&self) -> usize {
        self.needed
    }
}

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("needed", &self.needed)
            .finish_non_exhaustive()
    }
}
