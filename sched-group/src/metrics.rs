//! What a queue counts of a group.
use core::time::Duration;

/// What a group has done since it was inserted.
///
/// Counting costs no reading of the clock. So where a group gets work while another one runs,
/// `waiting` and `starving` may be wrong by as much as the poll under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// How long the group ran, its descendants with it.
    pub runtime: Duration,
    /// How long the group had no work of its own: it waited for events. (Seastar: `waittime`.)
    pub waiting: Duration,
    /// How long the group had work of its own and didn't run. (Seastar: `starvetime`.)
    pub starving: Duration,
    /// How long the group was throttled by its cap.
    pub throttled: Duration,
    /// How many turns the group had for work of its own.
    pub picked: u64,
    /// How many of these took more than twice the quota while another group had work: a poll took
    /// longer than a whole turn.
    pub violations: u64,
    /// How long these turns ran beyond the quota, with those that ran over by less.
    pub overrun: Duration,
}

/// The same in nanoseconds.
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
