//! The names that tokio has for the settings, so that a program of its ports by renaming the crate.
use super::Builder;
use std::time::Duration;

/// The names that tokio has. Each takes the builder and gives it back: who keeps one in a variable assigns what it gives.
///
/// ```
/// use std::time::Duration;
///
/// let mut builder = selvedge::runtime::Builder::new_multi_thread();
/// builder = builder.worker_threads(2).max_blocking_threads(4).thread_stack_size(1 << 20);
/// builder = builder.thread_keep_alive(Duration::from_secs(1)).global_queue_interval(31).enable_all();
/// assert_eq!(builder.build()?.metrics().workers, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Builder {
    /// [`new`](Self::new).
    pub fn new_multi_thread() -> Self {
        Self::new()
    }

    /// [`workers`](Self::workers).
    ///
    /// # Panics
    /// When it is 0.
    #[track_caller]
    pub fn worker_threads(self, workers: usize) -> Self {
        self.workers(workers)
    }

    /// [`blocking_threads`](Self::blocking_threads).
    ///
    /// # Panics
    /// When it is 0.
    #[track_caller]
    pub fn max_blocking_threads(self, threads: usize) -> Self {
        self.blocking_threads(threads)
    }

    /// [`blocking_keep_alive`](Self::blocking_keep_alive).
    pub fn thread_keep_alive(self, limit: Duration) -> Self {
        self.blocking_keep_alive(limit)
    }

    /// [`stack_size`](Self::stack_size).
    pub fn thread_stack_size(self, bytes: usize) -> Self {
        self.stack_size(bytes)
    }

    /// [`global_interval`](Self::global_interval).
    ///
    /// # Panics
    /// When it is 0.
    #[track_caller]
    pub fn global_queue_interval(self, ticks: u32) -> Self {
        self.global_interval(ticks)
    }

    /// Nothing: there is no I/O driver and no timer to enable. What a program does with tokio's still has to find another way.
    pub fn enable_all(self) -> Self {
        self
    }
}
