//! The worker: it finds a task, polls it, sleeps, and at the end drops the tasks that are left.
use crate::{Shared, Task};
use coop_budget::{Budget, Scope};
use queue_spmc::{
    StealLimit,
    ring::{self, Steal},
};
use sync_shim::sync::Arc;
use task_header::{Owned, Ran};

/// A worker, which one thread runs.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    index: usize,
    ring: ring::Worker<Task>,
    /// The worker's list of live tasks, which `end` cancels.
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

    /// Runs tasks until the executor ends.
    pub(crate) fn run(mut self) {
        while !self.shared.injector.is_closed() {
            match self.find() {
                Some(task) => self.poll(task),
                None => self.sleep(),
            }
        }
        self.end();
    }

    /// Finds a task in this worker's ring, in the injector, or in another worker's ring. From
    /// another worker's ring it takes half of the tasks.
    pub(crate) fn find(&mut self) -> Option<Task> {
        self.ring
            .pop()
            .or_else(|| self.take_share())
            .or_else(|| self.steal())
    }

    /// Takes tasks from the injector, and returns one to run at once. The others go to this
    /// worker's ring, which was empty. Other workers may steal them from the ring.
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
                // If tasks are left in a ring, `has_work` sees them. So this worker does not sleep
                // while they wait.
                Steal::Retry | Steal::Empty => None,
            },
        )
    }

    /// Wakes another worker if this worker's ring has tasks to steal: this worker runs only one
    /// task at a time.
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
        // The notifier that chose this worker relies on this worker to find the pushed task. But
        // this worker may find a different task first. So it wakes another worker if there is work.
        if shared.has_work() {
            shared.sleep.notify();
        }
    }

    /// Drops the queued and the waiting tasks.
    ///
    /// Another thread may have queued a task of this worker's list, or may run such a task. If the
    /// task ends on another worker, the waker of this worker's list opens this worker's gate.
    pub(crate) fn end(&mut self) {
        self.owned.watch_releases();
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
