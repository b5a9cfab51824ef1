//! `Looks`: the memory of the workers' looks and waits in the reactor.
use worker_idle::Backoff;

/// A larger batch counts as one of so many tasks.
const MOST: usize = 64;

/// The memory of the looks and waits of all threads that have had the role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks {
    /// Decides whether to look before a wait.
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
    /// thread has woken between its parks.
    pub(crate) fn record(&mut self, woken: usize, between: usize) {
        self.batch.record(woken);
        let work = u32::try_from(woken + between).unwrap_or(u32::MAX);
        // A park for nothing is work, too: it would be free otherwise.
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
    /// From this average on, in tasks, a worker waits without a look.
    const LARGE: u32 = 4;

    pub(crate) fn record(&mut self, woken: usize) {
        if woken > 0 {
            self.mean = self.mean - self.mean / 8 + woken.min(MOST) as u32;
        }
    }

    pub(crate) fn is_large(self) -> bool {
        self.mean >= 8 * Self::LARGE
    }
}
