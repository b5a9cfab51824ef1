//! A counter with one writer.
use std::fmt;
use sync_shim::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread writes and any thread may read.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Makes a counter at 0.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds to the counter. Called by its one writer. No read-modify-write: if two threads add at
    /// the same time, one addition may be lost.
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // Ordering: Relaxed; only this writer stores the value.
        let now = self.0.load(Relaxed);
        // Ordering: Relaxed; the number publishes nothing else.
        self.0.store(now.wrapping_add(n), Relaxed);
    }

    /// The current number.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        // Ordering: Relaxed; a snapshot. A reader that must see an addition has already
        // synchronised with it. The monitor has not (`monitor::report::subject`).
        self.0.load(Relaxed)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter({})", self.get())
    }
}
