//! Closures that block, in the shape of `blocking`: `unblock(closure).await`.
//!
//! A job is a task cell whose only poll calls the closure. So its handle, its result and its panic
//! are those of any task. The threads belong to a [`Pool`]: they start as jobs need them, up to a
//! cap, and end when they have been idle for a while.
use crate::tasks::Task;
use blocking_threads::{Closure, Once, Pool, Settings, StaticPool};

static POOL: StaticPool<Closure> = StaticPool::new(settings(500));

/// Runs `f` on a thread where it may block.
///
/// ```
/// use adopt::blocking::unblock;
///
/// let read = unblock(|| std::fs::read("/dev/null"));
/// assert!(futures_lite::future::block_on(read)?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If there is no thread and none can be started.
pub fn unblock<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Task<T> {
    submit(&POOL.handle(), f)
}

/// Sets the most threads that [`unblock`] may have: at least one, and 500 by default.
///
/// ```
/// adopt::blocking::set_max_threads(4);
/// ```
pub fn set_max_threads(threads: usize) {
    POOL.handle().set_cap(threads.max(1));
}

/// A pool of your own, beside the static pool of [`unblock`]. The drop of a `Blocking` cancels the
/// jobs that have not begun; the other jobs run to their end.
pub struct Blocking {
    pool: Pool<Closure>,
}

impl Blocking {
    /// Makes a pool of up to `max_threads` threads, or of one if that is 0.
    pub fn new(max_threads: usize) -> Self {
        let pool = Pool::new(settings(max_threads.max(1)));
        Self { pool }
    }

    /// Runs `f` on one of the threads.
    ///
    /// # Panics
    /// If there is no thread and none can be started.
    pub fn unblock<T: Send + 'static>(&self, f: impl FnOnce() -> T + Send + 'static) -> Task<T> {
        submit(&self.pool, f)
    }
}

const fn settings(cap: usize) -> Settings {
    let mut settings = Settings::new();
    settings.cap = cap;
    settings
}

fn submit<F, T>(pool: &Pool<Closure>, f: F) -> Task<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    let (job, join) = Closure::new(Once::new(f));
    if let Err(refused) = pool.submit(job) {
        panic!("{refused}");
    }
    Task::new(join)
}

impl Drop for Blocking {
    fn drop(&mut self) {
        drop(self.pool.close());
    }
}
