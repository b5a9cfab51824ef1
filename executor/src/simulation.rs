//! The checks that a simulation makes of a runtime ([`sync_shim::sim`]). Without a simulation
//! nothing is left of this.
use crate::worker::shared::Shared;
use sync_shim::sync::Arc;

/// Lets the simulator of this thread, if there is one, check the runtime while all threads wait.
#[inline(always)]
pub(crate) fn watch(shared: &Arc<Shared>) {
    #[cfg(selvedge_sim)]
    sync_shim::sim::watch(|| Box::new(checks::Runtime(Arc::downgrade(shared))));
    let _ = shared;
}

#[cfg(selvedge_sim)]
mod checks {
    use crate::worker::shared::Shared;
    use std::{sync::Weak, time::Instant};
    use sync_shim::sim::Subject;

    pub(super) struct Runtime(pub(super) Weak<Shared>);

    impl Subject for Runtime {
        fn ready(&self) -> Option<String> {
            let shared = self.0.upgrade()?;
            // A worker that was notified counts as searching. While all threads wait, nobody
            // searches in fact.
            let (searchers, sleepers) = shared.idle.counts();
            let sleepers = searchers + sleepers;
            if shared.is_closing() || sleepers == 0 {
                return None;
            }
            // A worker that does not sleep is in a poll that blocks. Only that worker may take the
            // task of its slot, until a watcher has looked twice.
            let all_sleep = sleepers == shared.remotes.len();
            let what = match (shared.has_injected(), shared.has_work()) {
                (true, _) => "the injector",
                (_, true) => "the ring of a worker",
                _ if all_sleep && shared.has_filled_slot() => "the slot of a worker",
                _ => return None,
            };
            let tasks = shared.count_injected();
            Some(format!(
                "{what} has tasks ({tasks} are in the injector), and {sleepers} sleep"
            ))
        }

        fn deadline(&self, epoch: Instant) -> Option<Instant> {
            let since_epoch = self.0.upgrade()?.events.first_deadline()?;
            Some(epoch + since_epoch)
        }

        fn exists(&self) -> bool {
            self.0.strong_count() > 0
        }
    }
}
