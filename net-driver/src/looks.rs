//! `Looks`: what earlier looks and waits in the reactor found. It decides whether the next park
//! looks before it waits.
use worker_idle::Backoff;

/// A batch of more tasks than this counts as this many.
const MAX_COUNTED: usize = 64;

/// Keeps what the looks and waits of all threads that have been the poller found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    /// Decides whether a park looks before it waits, by what such looks cost and find.
    pub(crate) backoff: Backoff,
    pub(crate) batch: Batch,
}

impl Looks {
    pub(crate) const fn new() -> Self {
        Self {
            backoff: Backoff::new().with_trials(),
            batch: Batch { mean: 0 },
        }
    }

    /// Records how many tasks the looks and the wait of a park have woken, and how many tasks the
    /// thread has woken since its park before.
    pub(crate) fn record(&mut self, woken: usize, woken_before: usize) {
        self.batch.record(woken);
        let work = u32::try_from(woken + woken_before).unwrap_or(u32::MAX);
        // A park that wakes nothing counts as one piece of work, as its time counts in the round.
        // Otherwise a round with many such parks would seem costly, with looks and without.
        self.backoff.add_work(work.max(1));
    }
}

/// The average number of tasks that the events of one wait, or of one look, wake. The newest number
/// counts for an eighth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// The average, in eighths of a task.
    mean: u32,
}

impl Batch {
    /// If the average is this many tasks or more, a worker waits without a look.
    const LARGE: u32 = 4;

    pub(crate) fn record(&mut self, woken: usize) {
        if woken > 0 {
            self.mean = self.mean - self.mean / 8 + woken.min(MAX_COUNTED) as u32;
        }
    }

    pub(crate) fn is_large(self) -> bool {
        self.mean >= 8 * Self::LARGE
    }
}
