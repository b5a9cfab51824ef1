//! The checks that a simulation makes of a runtime while no thread can run ([`sync_shim::sim`]).
use crate::worker::shared::Shared;
use std::{sync::Arc, time::Instant};
use sync_shim::sim::Subject;

impl Subject for Shared {
    fn ready(&self) -> Option<String> {
        // A worker that was notified counts as searching. While all threads wait, nobody
        // searches in fact.
        let (searchers, sleepers) = self.idle.counts();
        let sleepers = searchers + sleepers;
        if self.is_closing() || sleepers == 0 {
            return None;
        }
        // A worker that does not sleep is in a poll that blocks. Only that worker may take the
        // task of its slot, until a watcher has looked twice.
        let all_sleep = sleepers == self.remotes.len();
        let what = match (self.has_injected(), self.has_work()) {
            (true, _) => "the injector",
            (_, true) => "the ring of a worker",
            _ if all_sleep && self.has_filled_slot() => "the slot of a worker",
            _ => return None,
        };
        let tasks = self.count_injected();
        Some(format!(
            "{what} has tasks ({tasks} are in the injector), and {sleepers} sleep"
        ))
    }

    fn unserved(&self) -> Option<String> {
        let jobs = self.blocking.count_unserved();
        if jobs > 0 {
            return Some(format!("{jobs} jobs wait for a thread of the pool"));
        }
        let mut remotes = self.remotes.iter();
        if let Some(worker) = remotes.position(|remote| remote.lent.awaits_helper()) {
            return Some(format!("worker {worker} waits for a thread of the pool"));
        }
        let (searchers, sleepers) = self.idle.counts();
        // A searcher may be between two looks.
        let is_left = !self.is_closing() && searchers == 0 && sleepers > 0 && self.has_work();
        is_left.then(|| {
            let tasks = self.count_injected();
            format!("tasks wait ({tasks} are in the injector), and {sleepers} workers sleep")
        })
    }

    fn deadline(&self, epoch: Instant) -> Option<Instant> {
        let since_epoch = self.events.first_deadline()?;
        Some(epoch + since_epoch)
    }

    fn dump(self: Arc<Self>) -> Option<Box<dyn FnOnce() -> Vec<String>>> {
        self.settings
            .lists_tasks
            .then(|| Box::new(move || crate::observe::dump::lines(&self)) as Box<_>)
    }
}
