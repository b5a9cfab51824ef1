//! How a worker delivers the events that its parker has collected: it wakes their tasks, which go
//! to its own queue.
//!
//! A push into a ring notifies a sleeper, which then steals. To wake a thread and to move tasks to
//! its processor costs as much as a dozen short polls. So a worker runs a short batch alone:
//!
//! 1. During a delivery no push notifies. The worker decides at its end.
//! 2. The worker notifies nobody of a single task, which it runs next.
//! 3. The worker *keeps* a batch whose polls should take at most [`KEPT`] together, by the mean of
//!    its polls after the last deliveries: it leaves the batch to the watcher
//!    ([`Idle::rely_on_watcher`]), and notifies nobody.
//! 4. Otherwise it notifies, as it does if no worker watches. The sleeper that this wakes becomes
//!    the watcher when it sleeps again.
//!
//! The watcher looks at the rings as it does at the LIFO slots ([`watch`](crate::watch)). If one of
//! the polls is long after all, it takes the others, within two looks. Any other push of the worker
//! notifies, also of these tasks. A worker sleeps only with an empty queue.
//!
//! [`Idle::rely_on_watcher`]: worker_idle::Idle::rely_on_watcher
use crate::{core::Core, park::Park};
use std::{
    cell::Cell,
    time::{Duration, Instant},
};
#[cfg(feature = "groups")]
use worker_queue::RunQueue;

/// The length of a batch that a worker runs alone. A sleeper that is woken takes half as long to
/// run its first stolen task, on a processor that slept.
const KEPT: Duration = Duration::from_micros(100);

/// The lengths of polls in a worker's last batches.
pub(crate) struct Batches {
    /// A delivery is in progress (rule 1).
    delivers: Cell<bool>,
    /// When the batch in progress began, and the worker's count of polls then.
    begun: Cell<Option<(Instant, u64)>>,
    /// The mean of a poll, in nanoseconds, once there is one.
    mean: Cell<Option<u64>>,
}

impl Batches {
    pub(crate) const fn new() -> Self {
        Self {
            delivers: Cell::new(false),
            begun: Cell::new(None),
            mean: Cell::new(None),
        }
    }

    /// Returns whether a delivery is in progress: the end of it notifies.
    #[inline]
    pub(crate) fn delivers(&self) -> bool {
        self.delivers.get()
    }

    /// Records the length of a batch. The last batch counts for a quarter, so a poll of a
    /// millisecond makes the mean a long one for the next batches.
    fn record(&self, took: Duration, polls: u64) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if let Some(took) = took.checked_div(polls) {
            let mean = self
                .mean
                .get()
                .map_or(took, |mean| mean - mean / 4 + took / 4);
            self.mean.set(Some(mean));
        }
    }

    /// Returns whether this number of polls should be over soon.
    fn is_short(&self, polls: u64) -> bool {
        let kept = KEPT.as_nanos() as u64;
        let mean = self.mean.get();
        mean.is_some_and(|mean| mean.saturating_mul(polls) <= kept)
    }
}

impl Core {
    /// Wakes what was collected, if anything was. No task may give the core away meanwhile.
    pub(crate) fn deliver(&self, park: &mut impl Park) {
        if !park.has_events() {
            return;
        }
        self.as_worker(|| {
            self.leave_search();
            let schedules = &self.counters().local_schedules;
            let before = schedules.get();
            let delivery = Delivery::begin(self);
            park.deliver();
            drop(delivery);
            let count = schedules.get() - before;
            self.queue.requeue_slot(self);
            if count > 1 && !self.keeps(count) {
                self.shared.notify();
            }
            // A driven worker reads no clock: see `interval`. In a model no time passes.
            let is_model = cfg!(any(selvedge_loom, selvedge_shuttle));
            if self.shared.settings.adapts && !is_model {
                let polls = self.counters().polls.get();
                self.batches.begun.set(Some((Instant::now(), polls)));
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
        if let Some((begun, polls)) = self.batches.begun.take() {
            let polls = self.counters().polls.get() - polls;
            self.batches.record(begun.elapsed(), polls);
        }
    }
}

/// A delivery in progress. If a waker panics, its drop notifies of what was pushed.
struct Delivery<'a>(&'a Core);

impl<'a> Delivery<'a> {
    fn begin(core: &'a Core) -> Self {
        core.batches.delivers.set(true);
        Self(core)
    }
}

impl Drop for Delivery<'_> {
    fn drop(&mut self) {
        self.0.batches.delivers.set(false);
        if std::thread::panicking() {
            self.0.shared.notify();
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
