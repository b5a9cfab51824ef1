//! The duty that ends the turns of scheduling groups inside a poll.
use crate::worker::shared::Shared;
use sched_monitor::{Duty, Round};
use std::time::Duration;
use sync_shim::sync::Arc;

/// Requests the end of the time slice of each worker on which a group has used up its quota while
/// another group waits.
///
/// A round costs a load for each worker. While a worker has two groups with work, the next round
/// comes when the first turn ends, or after the monitor's shortest pause if that is longer.
pub(super) struct EndTurns(Arc<Shared>);

impl EndTurns {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }
}

impl Duty for EndTurns {
    fn look(&mut self, _: &Round<'_>) -> Option<Duration> {
        self.0.end_overdue_turns()
    }
}
