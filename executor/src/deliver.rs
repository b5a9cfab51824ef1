//! How a worker delivers the events that its parker has collected: it wakes their tasks, which go
//! to its own queue.
//!
//! A push into a ring notifies a sleeper, which then steals. To wake a thread and to move tasks to
//! its processor costs as much as a dozen short polls. So a worker runs a short batch alone:
//!
//! 1. During a delivery no push notifies. The worker decides at its end.
//! 2. If its queue was empty, the worker notifies nobody of a single task, which it runs next.
//! 3. If its queue was empty, the worker *keeps* a batch whose polls should take at most
//!    [`KEPT`](crate::batches::KEPT) together, by the mean of its polls after the last deliveries:
//!    it leaves the batch to the watcher ([`Idle::rely_on_watcher`]), and notifies nobody.
//! 4. Otherwise it notifies, as it does if no worker watches: the tasks would wait behind others
//!    whose polls may be long. The sleeper that this wakes becomes the watcher when it sleeps
//!    again.
//!
//! The watcher looks at the rings as it does at the LIFO slots ([`watch`](crate::watch)). If one of
//! the polls is long after all, it takes the others, within two looks. Any other push of the worker
//! notifies, also of these tasks. A worker sleeps only with an empty queue.
//!
//! [`Idle::rely_on_watcher`]: worker_idle::Idle::rely_on_watcher
use crate::{core::Core, park::Park};
use std::time::Instant;
#[cfg(feature = "groups")]
use worker_queue::RunQueue;

impl Core {
    /// Delivers the collected events, if there are any. No task may give the core away meanwhile.
    pub(crate) fn deliver(&self, park: &mut impl Park) {
        if !park.has_events() {
            return;
        }
        self.as_worker(|| {
            self.leave_search();
            let was_empty = self.queue.is_empty();
            let schedules = &self.counters().local_schedules;
            let before = schedules.get();
            let delivery = Delivery::begin(self);
            park.deliver();
            drop(delivery);
            let count = schedules.get() - before;
            self.queue.requeue_slot(self);
            let alone = was_empty && (count == 1 || self.keeps(count));
            if count > 0 && !alone {
                self.shared.notify();
            }
            // A driven worker reads no clock: see `interval`. In a model no time passes.
            let is_model = cfg!(any(selvedge_loom, selvedge_shuttle));
            if self.shared.settings.adapts && !is_model {
                let polls = self.counters().polls.get();
                self.batches.begin(Instant::now(), polls);
            }
        });
    }

    /// Returns whether a batch of tasks is kept (rule 3).
    fn keeps(&self, count: u64) -> bool {
        let shared = &self.shared;
        self.batches.is_short(count) && shared.watches_slots() && shared.idle.rely_on_watcher()
    }

    /// Ends the batch in progress: the worker has run out of tasks.
    pub(crate) fn end_batch(&self) {
        self.batches.end(self.counters().polls.get());
    }
}

/// A delivery in progress. If a waker panics, its drop notifies of what was pushed.
struct Delivery<'a>(&'a Core);

impl<'a> Delivery<'a> {
    fn begin(core: &'a Core) -> Self {
        core.batches.set_delivers(true);
        Self(core)
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.0.batches.set_delivers(false);
        if std::thread::panicking() {
            self.0.shared.notify();
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
