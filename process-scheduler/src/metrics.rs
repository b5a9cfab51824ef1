//! Counters: each worker has a cache line that it alone writes, and all threads add to a few shared
//! counters.
use crate::ExitReason;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use sync_shim::CachePadded;

/// The counters of one worker.
#[derive(Default)]
pub(crate) struct WorkerCounters {
    pub(crate) steps: AtomicU64,
    pub(crate) delivered: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) steals: AtomicU64,
    pub(crate) parks: AtomicU64,
}

/// The worker itself calls these.
impl WorkerCounters {
    #[inline]
    pub(crate) fn count_step(&self) {
        add(&self.steps, 1);
    }

    #[inline]
    pub(crate) fn count_delivered(&self, messages: u32) {
        if messages > 0 {
            add(&self.delivered, messages.into());
        }
    }

    pub(crate) fn count_panic(&self) {
        add(&self.panics, 1);
    }

    pub(crate) fn count_steal(&self) {
        add(&self.steals, 1);
    }

    pub(crate) fn count_park(&self) {
        add(&self.parks, 1);
    }
}

/// Adds to a counter that only this thread writes.
fn add(counter: &AtomicU64, n: u64) {
    // Ordering: Relaxed here and at all counters, since a count publishes nothing else. If a thread
    // learns of an event from a process, the event was counted before that thread's `snapshot`, so
    // the snapshot includes the event.
    let now = counter.load(Relaxed);
    // Ordering: as above.
    counter.store(now.wrapping_add(n), Relaxed);
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) workers: Vec<CachePadded<WorkerCounters>>,
    refused: AtomicU64,
    exited: AtomicU64,
    abnormal: AtomicU64,
    restarts: AtomicU64,
    dead_letters: AtomicU64,
    /// Messages that code received from an inbox while its process was in no step.
    received_outside: AtomicU64,
}

impl Counters {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| CachePadded::default()).collect(),
            ..Self::default()
        }
    }

    /// Counts a spawn that has begun, and failed.
    pub(crate) fn refused(&self) {
        // Ordering: Relaxed, as in `add`.
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn exited(&self, reason: &ExitReason) {
        // Ordering: Relaxed, as in `add`.
        self.exited.fetch_add(1, Relaxed);
        if reason.is_abnormal() {
            // Ordering: as above.
            self.abnormal.fetch_add(1, Relaxed);
        }
    }

    pub(crate) fn restarted(&self) {
        // Ordering: Relaxed, as in `add`.
        self.restarts.fetch_add(1, Relaxed);
    }

    pub(crate) fn dead_letter(&self) {
        // Ordering: Relaxed, as in `add`.
        self.dead_letters.fetch_add(1, Relaxed);
    }

    /// Counts a message that code received from an inbox while its process was in no step.
    pub(crate) fn received_outside(&self) {
        // Ordering: Relaxed, as in `add`.
        self.received_outside.fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self, begun: u64, live: usize) -> Metrics {
        let sum = |counter: fn(&WorkerCounters) -> &AtomicU64| {
            // Ordering: Relaxed, as in `add`.
            let each = self.workers.iter().map(|w| counter(w).load(Relaxed));
            each.sum()
        };
        Metrics {
            workers: self.workers.len(),
            processes: live,
            // Ordering: Relaxed, as in `add`.
            spawned: begun.saturating_sub(self.refused.load(Relaxed)),
            exited: self.exited.load(Relaxed),
            abnormal: self.abnormal.load(Relaxed),
            // Ordering: as above.
            restarts: self.restarts.load(Relaxed),
            dead_letters: self.dead_letters.load(Relaxed),
            steps: sum(|w| &w.steps),
            // Ordering: as above.
            delivered: sum(|w| &w.delivered) + self.received_outside.load(Relaxed),
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
/// assert_eq!((metrics.spawned, metrics.exited), (1, 1));
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
    /// Abnormal ends among `exited`.
    pub abnormal: u64,
    /// Restarts by supervisors.
    pub restarts: u64,
    /// Messages that were accepted, and dropped undelivered.
    pub dead_letters: u64,
    /// Steps.
    pub steps: u64,
    /// Messages that were received: by steps, or from an inbox while its process was in no step.
    pub delivered: u64,
    /// Steps that panicked.
    pub panics: u64,
    /// Successful steals.
    pub steals: u64,
    /// Times that a worker parked.
    pub parks: u64,
}
