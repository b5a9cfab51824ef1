//! The checks that a simulation makes of a scheduler ([`sync_shim::sim`]). Without a simulation
//! nothing is left of this.
use crate::shared::Shared;
use std::sync::Arc;

/// Lets the simulator of this thread, if there is one, check the scheduler while all threads wait.
#[inline(always)]
pub(crate) fn watch(shared: &Arc<Shared>) {
    #[cfg(selvedge_sim)]
    sync_shim::sim::watch(|| Box::new(checks::Processes(Arc::downgrade(shared))));
    let _ = shared;
}

#[cfg(selvedge_sim)]
mod checks {
    use crate::shared::Shared;
    use std::{sync::Weak, time::Instant};
    use sync_shim::{atomic::Ordering::Relaxed, sim::Subject};

    pub(super) struct Processes(pub(super) Weak<Shared>);

    impl Subject for Processes {
        fn ready(&self) -> Option<String> {
            let shared = self.0.upgrade()?;
            // A worker that was notified counts as searching.
            let (searchers, sleepers) = shared.idle.counts();
            let sleepers = searchers + sleepers;
            // Ordering: Relaxed, as all threads wait.
            let is_open = !shared.stop.load(Relaxed);
            let is_left = is_open && sleepers == shared.stealers.len() && shared.has_ready();
            is_left.then(|| format!("a process is ready, and {sleepers} workers sleep"))
        }

        fn deadline(&self, _: Instant) -> Option<Instant> {
            self.0.upgrade()?.timer.first_deadline()
        }

        fn exists(&self) -> bool {
            self.0.strong_count() > 0
        }
    }
}
