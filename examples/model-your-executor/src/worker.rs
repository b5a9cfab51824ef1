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
    /// The list of waiting tasks, for the end.
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

    /// Finds a task: in its own ring, in the injector, or in another worker's ring, of which it
    /// takes half.
    pub(crate) fn find(&mut self) -> Option<Task> {
        self.ring
            .pop()
            .or_else(|| self.take_share())
            .or_else(|| self.steal())
    }

    /// Takes tasks from the injector: one to run at once, and the others for the ring, which is
    /// empty. There other workers may steal them.
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
                // `has_work` sees the tasks that are left, so no worker goes to sleep over them.
                Steal::Retry | Steal::Empty => None,
            },
        )
    }

    /// Wakes another worker if there are tasks to steal here, as this worker is about to poll.
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
        // The notifier that chose this worker relies on it to look for the pushed task. If there is
        // work, another worker is woken too, as this one may take a different task.
        if shared.has_work() {
            shared.sleep.notify();
        }
    }

    /// Drops the queued and the waiting tasks.
    ///
    /// Another thread may hold a task of this worker's list. That task is dropped by the worker
    /// that finds it, and the list's waker then opens this worker's gate.
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
