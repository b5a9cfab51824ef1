//! The duty that watches the inboxes of busy workers.
use crate::worker::shared::Shared;
use sched_monitor::{Duty, Round, State};
use std::time::Duration;
use sync_shim::sync::Arc;

/// Makes a busy worker look at its inbox if tasks wait there and the worker has taken no task from
/// outside since the last round: [`Remote`](sched_monitor::Remote) watches the injector alone.
///
/// A push into an inbox nudges the worker, but a worker that has just found work ignores nudges.
/// Its next look may be many long polls away. Where workers steal there are no inboxes.
pub(crate) struct Mail {
    shared: Arc<Shared>,
    /// The number of tasks from outside that each worker had taken at the last round. `None` if its
    /// inbox was empty then.
    taken: Vec<Option<u64>>,
}

impl Mail {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let taken = vec![None; shared.remotes.len()];
        Self { shared, taken }
    }
}

impl Duty for Mail {
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        let mut next = None;
        for (worker, before) in self.taken.iter_mut().enumerate() {
            let remote = &self.shared.remotes[worker];
            let is_busy = round.workers[worker].sample.state != State::Idle;
            let waits = is_busy && remote.stealer.has_mail();
            let taken = waits.then(|| remote.counters.injected_tasks.get());
            let is_stuck = taken.is_some() && *before == taken;
            *before = taken;
            if is_stuck {
                self.shared.slices.of(worker).insist();
                next = Some(Duration::ZERO); // The monitor's shortest pause.
            }
        }
        next
    }
}
