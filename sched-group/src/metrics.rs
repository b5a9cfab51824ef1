//! The counters of a group.
use core::time::Duration;

/// The counters of a group since it was inserted.
///
/// The queue does not read the clock only to count. So if a group gets or loses work while another
/// group runs, `waiting` and `starving` may be wrong by up to the length of the poll in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// How long the group and its descendants ran.
    pub runtime: Duration,
    /// How long the group had no work of its own: it waited for events. (Seastar: `waittime`.)
    pub waiting: Duration,
    /// How long the group had work of its own and did not run. (Seastar: `starvetime`.)
    pub starving: Duration,
    /// How long the group was throttled by its cap.
    pub throttled: Duration,
    /// How many turns the group had for its own work.
    pub picked: u64,
    /// How many turns took more than twice the quota, while another group had work or a cap
    /// applied. In such a turn a poll took longer than the quota.
    pub violations: u64,
    /// How long, in all, turns ran beyond the quota while another group had work or a cap applied.
    pub overrun: Duration,
}

/// The counters of a group, with times in nanoseconds.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) runtime: u64,
    pub(crate) waiting: u64,
    pub(crate) starving: u64,
    pub(crate) throttled: u64,
    pub(crate) picked: u64,
    pub(crate) violations: u64,
    pub(crate) overrun: u64,
}

impl Counts {
    pub(crate) fn metrics(&self) -> Metrics {
        Metrics {
            runtime: Duration::from_nanos(self.runtime),
            waiting: Duration::from_nanos(self.waiting),
            starving: Duration::from_nanos(self.starving),
            throttled: Duration::from_nanos(self.throttled),
            picked: self.picked,
            violations: self.violations,
            overrun: Duration::from_nanos(self.overrun),
        }
    }
}
