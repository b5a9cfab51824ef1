//! How a worker takes tasks from the others.
//!
//! 1. Who has found nothing in its own queue, nor in the injector, becomes a *searcher*, unless half of the workers are already. One that isn't let search goes to
//!    sleep, and looks at every queue on its way there.
//! 2. A searcher looks at each other worker once, and takes half of the first ring that has any: as [`WorkerQueue::steal`](worker_queue::WorkerQueue::steal) does. The others' slots it
//!    leaves alone: see [`watch`](crate::watch).
//! 3. After the last door it looks at the injector once more: what came meanwhile told nobody, as there was a searcher.
//! 4. A searcher stops to be one before it runs what it has found. The last one to do so looks whether there is more, or a slot is filled that nobody
//!    watches, and then wakes another, who does the same: so a burst that woke one worker has soon woken as many as it takes.
//! 5. A searcher that has found nothing stays one until it sleeps: it announces that, and then looks at every queue again; what is left in a ring in mid-copy counts. So
//!    no task is missed: one that told nobody, since there was a searcher, is found by that searcher, or by rule 4, or by this look. Why that holds for each
//!    order of events, [`worker_idle`] proves.
use crate::{core::Core, shared::Task};

impl Core {
    /// Looks through the other workers, if few enough do: rules 1, 2 and 3.
    pub(crate) fn search(&self) -> Option<Task> {
        let shared = &self.shared;
        if shared.remotes.len() == 1 || !self.searching.get() && !shared.idle.try_search() {
            return None;
        }
        self.searching.set(true);
        let counters = self.counters();
        counters.searches.add(1);
        let others = &shared.remotes;
        let Some(batch) = self.queue.steal(others, |remote| &remote.stealer) else {
            return self.take_share();
        };
        counters.steals.add(1);
        counters.stolen.add(1 + batch.moved as u64);
        Some(batch.first)
    }

    /// Rule 4: the searcher has found work.
    #[inline]
    pub(crate) fn leave_search(&self) {
        if self.searching.get() {
            self.leave_as_searcher();
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_as_searcher(&self) {
        self.searching.set(false);
        let (shared, idle) = (&self.shared, &self.shared.idle);
        let wants_watcher = || idle.is_watcher_wanted() && !idle.is_watched();
        if idle.stop_searching()
            && (shared.has_work() || wants_watcher() && shared.has_filled_slot())
        {
            shared.notify();
        }
        self.tell_unpark();
    }
}
