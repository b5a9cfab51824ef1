//! The settings of a pool.
use std::{borrow::Cow, fmt, io, sync::Arc, time::Duration};
use sync_shim::thread;

/// Starts a thread from a builder, which holds its name and stack size, and runs the closure in it.
pub type Spawn =
    dyn Fn(thread::Builder, ThreadMain) -> io::Result<thread::JoinHandle<()>> + Send + Sync;

/// The main function of a thread of the pool.
type ThreadMain = Box<dyn FnOnce() + Send>;

/// A hook that waits a little for the next job before a thread parks.
///
/// The hook's argument is a function that returns true once there is a job or the pool is closed.
/// The hook may call this function any number of times, and chooses when to return. After the
/// hook's return the thread takes a job if there is one, and parks otherwise.
pub type BeforePark = dyn FnMut(&mut dyn FnMut() -> bool);

/// Settings of a [`Pool`](crate::Pool).
///
/// ```
/// let mut settings = blocking_threads::Settings::new();
/// settings.cap = 4;
/// settings.name = "reader".into();
/// ```
///
/// A constant can hold settings without hooks:
///
/// ```
/// use blocking_threads::{Settings, StaticPool};
///
/// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
/// static POOL: StaticPool<fn()> = StaticPool::new({
///     let mut settings = Settings::named("reader");
///     settings.cap = 4;
///     settings
/// });
/// ```
///
/// The hooks are in [`Arc`]s, which a constant cannot make. A pool with hooks is made at run time,
/// for example in a [`LazyLock`](std::sync::LazyLock).
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The name of the threads that are started for jobs of [`Pool::submit`](crate::Pool::submit).
    /// If the name contains a NUL, no such thread starts, and the pool refuses these jobs.
    pub name: Cow<'static, str>,
    /// The size of each thread's stack in bytes. `None` leaves the size to [`std::thread`].
    pub stack_size: Option<usize>,
    /// The most jobs of [`Pool::submit`](crate::Pool::submit) that run at a time. With 0 the pool
    /// refuses such jobs. The cap does not bound other jobs. 512 by default.
    /// [`Pool::set_cap`](crate::Pool::set_cap) changes the cap later.
    pub cap: usize,
    /// The number of threads that start without a delay, each for a job that found no idle thread.
    /// 4 by default; 0 counts as 1.
    pub eager: usize,
    /// How long jobs wait before another thread is started, once [`eager`](Self::eager) threads are
    /// busy. 1 ms by default.
    ///
    /// The pool checks at this interval whether jobs wait. With zero, the pool starts a thread at
    /// once for each job that finds no idle thread.
    pub grow_after: Duration,
    /// How long an idle thread waits for its next job before it ends. 10 s by default.
    pub keep_alive: Duration,
    /// A hook that each thread calls when it starts.
    pub on_start: Option<Arc<dyn Fn() + Send + Sync>>,
    /// A hook that each thread calls before it ends.
    pub on_stop: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Makes the [`BeforePark`] hook of each thread. None by default.
    pub before_park: Option<Arc<dyn Fn() -> Box<BeforePark> + Send + Sync>>,
    /// Starts the threads in place of [`std::thread`]: for priorities, a sandbox, or a test in
    /// which no thread starts.
    ///
    /// If the hook returns an error or panics, it must not have run the closure; otherwise the pool
    /// miscounts its threads. If the hook returns a handle, a thread must run the closure. The hook
    /// must not call a method of the pool, as the pool may call the hook under its lock. The same
    /// holds for the drop of the payload of its panic.
    pub spawn: Option<Arc<Spawn>>,
}

impl Settings {
    /// Returns the default settings.
    pub const fn new() -> Self {
        Self::named("blocking")
    }

    /// Returns the default settings, with a name for the threads.
    pub const fn named(name: &'static str) -> Self {
        Self {
            name: Cow::Borrowed(name),
            stack_size: None,
            cap: 512,
            eager: 4,
            grow_after: Duration::from_millis(1),
            keep_alive: Duration::from_secs(10),
            on_start: None,
            on_stop: None,
            before_park: None,
            spawn: None,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .field("cap", &self.cap)
            .field("eager", &self.eager)
            .field("grow_after", &self.grow_after)
            .field("keep_alive", &self.keep_alive)
            .finish_non_exhaustive()
    }
}
