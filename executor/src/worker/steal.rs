//! How a worker takes tasks from the others.
//!
//! 1. A worker that finds nothing in its own queue and the injector becomes a *searcher*, unless
//!    half of the workers search already. A worker that may not search goes to sleep, and checks
//!    every queue on its way there.
//! 2. A searcher looks at each other worker once, and takes half of the first ring that has tasks
//!    (see [`RunQueue::steal`]). It does not touch the LIFO slots of the other workers (see
//!    [`watch`](crate::worker::watch)).
//! 3. A searcher that stole nothing looks at the injector once more: a push in the meantime
//!    notified no worker, because there was a searcher.
//! 4. A searcher leaves the search before it runs the task that it found. If a worker sleeps, the
//!    last searcher to leave checks whether there are more tasks, or a filled slot while there is
//!    no watcher. If so, it wakes the sleeper, which does the same. So a burst that woke one worker
//!    soon wakes as many workers as it needs.
//! 5. A searcher that finds nothing stays a searcher until it sleeps: it announces its sleep, and
//!    then checks every queue again. Tasks that a thief is copying count as queued. So no task is
//!    missed. If a push notified no worker, because there was a searcher, then its task is found by
//!    that searcher, by rule 4, or by this check. [`worker_idle`] proves this for each order of
//!    events.
//! 6. Before a searcher takes tasks from a ring, it yields its CPU once, if no worker sleeps and
//!    the injector is empty. The other workers are busy or search then, and a thread of the program
//!    may wait for the CPU: for example a client, whose requests the tasks in that ring answer.
//!    While a worker sleeps there is no yield, as pushes wake nobody beside a searcher. A worker
//!    that falls asleep during the yield is not woken until the searcher has its CPU again. After
//!    the yield the searcher looks at the injector first.
use crate::{
    observe::trace::{self, Victim},
    worker::{core::Core, scheduler::Task},
};
use sync_shim::thread;
use worker_queue::RunQueue;

impl Core {
    /// Searches the other workers' rings and the injector, if few enough workers search: rules 1 to
    /// 3, and 6.
    pub(crate) fn search(&self) -> Option<Task> {
        let shared = &self.shared;
        if shared.remotes.len() == 1
            || !self.idle_state.searching.get() && !shared.idle.try_search()
        {
            return None;
        }
        self.idle_state.searching.set(true);
        let counters = self.counters();
        counters.searches.add(1);
        let (others, from) = (&shared.remotes, Victim::new());
        if self.yields_before_steal() {
            thread::yield_now();
            if let Some(task) = self.take_share() {
                return Some(task);
            }
        }
        let stolen = RunQueue::steal(&self.queue, others, |r| from.look(others, r), self);
        let Some(batch) = stolen else {
            return self.take_share();
        };
        counters.steals.add(1);
        counters.stolen_tasks.add(1 + batch.moved as u64);
        trace::steal(self, &from, 1 + batch.moved);
        Some(batch.first)
    }

    /// Rule 6. In a model no searcher yields: the checker would always run another thread next.
    fn yields_before_steal(&self) -> bool {
        let shared = &self.shared;
        let has_tasks = || (shared.remotes.iter()).any(|other| !other.stealer.is_empty());
        cfg!(not(any(selvedge_loom, selvedge_shuttle)))
            && shared.idle.counts().1 == 0
            && !shared.has_injected()
            && has_tasks()
    }

    /// Rule 4: the searcher has found work.
    #[inline]
    pub(crate) fn leave_search(&self) {
        if self.idle_state.searching.get() {
            self.leave_as_searcher();
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_as_searcher(&self) {
        self.idle_state.searching.set(false);
        let (shared, idle) = (&self.shared, &self.shared.idle);
        let wants_watcher = || idle.is_watcher_wanted() && !idle.is_watched();
        if idle.stop_searching()
            && (shared.has_work() || wants_watcher() && shared.has_filled_slot())
        {
            shared.notify();
        }
        shared.notify_standby();
        self.call_unpark_hook();
    }
}
