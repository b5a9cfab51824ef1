//! Counters: one line a worker, which it alone writes; one line for all other threads, who add to it
//! by read-modify-writes; and a few rare ones that all threads add to.
//!
//! # The live processes
//!
//! Their number is the sum of `began` less the sum of `ended`. A process that ends was counted as
//! begun before, by a thread whose count the end's thread has seen. So a reader who first adds up
//! `ended` and then `began` never finds too few; and if it finds none, then there was none when it
//! began to read `began`.
use crate::{ExitReason, scheduler::Shared, worker};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use sync_shim::CachePadded;

/// The counters of one worker.
#[derive(Default)]
pub(crate) struct WorkerCounters {
    began: AtomicU64,
    ended: AtomicU64,
    spawned: AtomicU64,
    exited: AtomicU64,
    pub(crate) steps: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) steals: AtomicU64,
    pub(crate) parks: AtomicU64,
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    // Ordering: Relaxed: one thread writes it, and readers take it as it is. The Release pairs with
    // the Acquire of `snapshot`, so that a reader who knows of an event finds it counted.
    let now = counter.load(Relaxed);
    counter.store(now.wrapping_add(n), Release);
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) workers: Vec<CachePadded<WorkerCounters>>,
    /// The counters of all threads that are no workers.
    others: CachePadded<WorkerCounters>,
    abnormal: AtomicU64,
    restarts: AtomicU64,
    dead_letters: AtomicU64,
}

impl Counters {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| CachePadded::default()).collect(),
            ..Self::default()
        }
    }

    /// Adds one to a counter: without a read-modify-write on a worker of this scheduler.
    fn count(shared: &Shared, counter: fn(&WorkerCounters) -> &AtomicU64) {
        let counters = &shared.counters;
        match worker::index_in(shared) {
            Some(index) => add(counter(&counters.workers[index]), 1),
            None => {
                // Ordering: Release, as in `add`.
                counter(&counters.others).fetch_add(1, Release);
            }
        }
    }

    /// Counts a process that becomes live.
    pub(crate) fn began(shared: &Shared) {
        Self::count(shared, |counters| &counters.began);
    }

    /// Counts a process that is live no longer.
    pub(crate) fn ended(shared: &Shared) {
        Self::count(shared, |counters| &counters.ended);
    }

    pub(crate) fn spawned(shared: &Shared) {
        Self::count(shared, |counters| &counters.spawned);
    }

    /// The sum of a counter over all threads.
    fn sum(&self, counter: fn(&WorkerCounters) -> &AtomicU64) -> u64 {
        let all = self.workers.iter().chain([&self.others]);
        // Ordering: Acquire pairs with `add` and `count`.
        let each = all.map(|counters| counter(counters).load(Acquire));
        each.fold(0, u64::wrapping_add)
    }

    /// The number of live processes: see the top.
    pub(crate) fn live(&self) -> usize {
        let ended = self.sum(|counters| &counters.ended);
        let began = self.sum(|counters| &counters.began);
        began.wrapping_sub(ended) as usize
    }

    pub(crate) fn exited(shared: &Shared, reason: &ExitReason) {
        Self::count(shared, |counters| &counters.exited);
        shared.counters.abnormal(reason);
    }

    fn abnormal(&self, reason: &ExitReason) {
        // Ordering: Release pairs with the Acquire of `snapshot`, as all below.
        if reason.is_abnormal() {
            self.abnormal.fetch_add(1, Release);
        }
    }

    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Release);
    }

    pub(crate) fn dead_letter(&self) {
        // Ordering: Release pairs with the Acquire load of the snapshot.
        self.dead_letters.fetch_add(1, Release);
    }

    pub(crate) fn snapshot(&self) -> Metrics {
        let sum = |counter| self.sum(counter);
        Metrics {
            workers: self.workers.len(),
            processes: self.live(),
            spawned: sum(|w| &w.spawned),
            exited: sum(|w| &w.exited),
            abnormal: self.abnormal.load(Acquire),
            // Ordering: Acquire pairs with the Release of the counts.
            restarts: self.restarts.load(Acquire),
            dead_letters: self.dead_letters.load(Acquire),
            steps: sum(|w| &w.steps),
            delivered: sum(|w| &w.delivered),
            panics: sum(|w| &w.panics),
            steals: sum(|w| &w.steals),
            parks: sum(|w| &w.parks),
        }
    }
}

/// The counts of a scheduler since its start. See [`Handle::metrics`](crate::Handle::metrics).
///
/// ```
/// use process_scheduler::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let sink = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
/// sink.try_send(1).unwrap();
/// sink.try_send(2).unwrap();
/// scheduler.cancel(sink.pid());
/// scheduler.wait(sink.pid());
/// let metrics = scheduler.metrics();
/// assert_eq!(metrics.delivered + metrics.dead_letters, 2);
/// assert_eq!((metrics.spawned, metrics.exited, metrics.processes), (1, 1, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Workers.
    pub workers: usize,
    /// Live processes, including those that wait for a restart.
    pub processes: usize,
    /// Processes that were spawned.
    pub spawned: u64,
    /// Ends of processes, including those before a restart.
    pub exited: u64,
    /// Abnormal ends among them.
    pub abnormal: u64,
    /// Restarts by supervisors.
    pub restarts: u64,
    /// Messages that were accepted, and dropped undelivered.
    pub dead_letters: u64,
    /// Steps.
    pub steps: u64,
    /// Messages that steps took.
    pub delivered: u64,
    /// Steps that panicked.
    pub panics: u64,
    /// Successful steals.
    pub steals: u64,
    /// Times that a worker parked.
    pub parks: u64,
}
