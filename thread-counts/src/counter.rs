//! A number with one writer.
use core::fmt;
use sync_shim::atomic::{AtomicU64, Ordering::Relaxed};

/// A number that one thread writes and any may read.
///
/// ```
/// use thread_counts::Counter;
///
/// let polls = Counter::new();
/// polls.add(2);
/// polls.add(1);
/// assert_eq!(polls.get(), 3);
/// ```
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One that says 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// By the one writer. No read-modify-write: of two threads that add at the same time one may do so in vain.
    #[inline]
    pub fn add(&self, n: u64) {
        // Ordering: Relaxed, its only writer's own value.
        let now = self.0.load(Relaxed);
        // Ordering: Relaxed, a number that publishes nothing else.
        self.0.store(now.wrapping_add(n), Relaxed);
    }

    /// How much it is by now.
    #[inline]
    pub fn get(&self) -> u64 {
        // Ordering: Relaxed, a snapshot: who has to see some addition has synchronised with it already.
        self.0.load(Relaxed)
    }
}

impl fmt::Debug for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counter({})", self.get())
    }
}
