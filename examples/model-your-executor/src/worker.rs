//! What a worker does: finds a task, polls it, sleeps, and at the end drops what is left.
use crate::{Shared, Task};
use coop_budget::{Budget, Scope};
use queue_spmc::{
    StealLimit,
    ring::{self, Steal},
};
use sync_shim::sync::Arc;
use task_header::{Owned, Ran};

/// One thread's share of the executor.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    index: usize,
    ring: ring::Worker<Task>,
    /// The tasks that wait, to be found again at the end.
    owned: Owned<crate::Scheduler>,
}

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, ring: ring::Worker<Task>) -> Self {
        let waker = waker_vtable::from_arc(shared.sleep.gate(index).clone());
        Self {
            shared,
            index,
            ring,
            owned: Owned::new(waker),
        }
    }

    /// Until the executor ends.
    pub(crate) fn run(mut self) {
        while !self.shared.injector.is_closed() {
            match self.find() {
                Some(task) => self.poll(task),
                None => self.sleep(),
            }
        }
        self.end();
    }

    /// Own ring, injector, half of another's ring.
    pub(crate) fn find(&mut self) -> Option<Task> {
        self.ring
            .pop()
            .or_else(|| self.take_share())
            .or_else(|| self.steal())
    }

    /// One to run at once, more to the ring, which is empty, and where others may have them.
    fn take_share(&mut self) -> Option<Task> {
        let mut batch = self.shared.injector.pop_n(self.ring.capacity());
        let first = batch.pop_front()?;
        for task in batch {
            self.ring.push_or_overflow(task, &self.shared.injector);
        }
        self.share();
        Some(first)
    }

    fn steal(&mut self) -> Option<Task> {
        let (ring, index) = (&mut self.ring, self.index);
        let (before, rest) = self.shared.stealers.split_at(index);
        let mut others = rest[1..].iter().chain(before);
        others.find_map(
            |other| match other.steal_into_and_pop(ring, StealLimit::Half) {
                Steal::Success { first, .. } => Some(first),
                // `has_work` sees what is left, so that nobody sleeps over it.
                Steal::Retry | Steal::Empty => None,
            },
        )
    }

    /// Calls another worker if there is something to steal here: this one is about to poll.
    fn share(&self) {
        if !self.ring.is_empty() {
            self.shared.sleep.notify();
        }
    }

    pub(crate) fn poll(&mut self, task: Task) {
        let ran = Scope::new(Budget::DEFAULT).run(|| self.owned.run(task));
        if let Ran::Notified(again) = ran {
            self.share();
            self.ring.push_or_overflow(again, &self.shared.injector);
        }
        self.owned.drain();
    }

    fn sleep(&mut self) {
        let shared = &self.shared;
        let has_work = || shared.has_work() || shared.injector.is_closed();
        shared.sleep.sleep(self.index, has_work);
        // Whoever chose this worker relies on it; it may have found another task than was pushed.
        if shared.has_work() {
            shared.sleep.notify();
        }
    }

    /// Drops what is queued and what waits. A task of this worker's list that is in another's hand by now is dropped where it turns
    /// up, and the list's waker opens this worker's gate.
    pub(crate) fn end(&mut self) {
        self.owned.close();
        loop {
            self.owned.cancel_all();
            while let Some(task) = self.find() {
                self.owned.cancel(task);
            }
            self.owned.drain();
            if self.owned.is_empty() {
                return;
            }
            let (shared, owned) = (&self.shared, &self.owned);
            let has_work = || shared.has_work() || owned.has_releases();
            shared.sleep.sleep(self.index, has_work);
        }
    }
}
