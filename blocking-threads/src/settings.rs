//! What a pool's owner decides.
use std::{borrow::Cow, fmt, io, sync::Arc, time::Duration};
use sync_shim::thread;

/// Starts a thread from a builder that has its name and stack size, and runs the closure in it.
pub type Spawn = dyn Fn(thread::Builder, Box<dyn FnOnce() + Send>) -> io::Result<thread::JoinHandle<()>>
    + Send
    + Sync;

/// What a thread without a job does before it sleeps. It may call the look that it is given, which says whether there is a job, or the end, and returns when it has seen
/// enough.
pub type BeforePark = dyn FnMut(&mut dyn FnMut() -> bool);

/// Settings of a [`Pool`](crate::Pool).
///
/// ```
/// let mut settings = blocking_threads::Settings::new();
/// settings.cap = 4;
/// settings.name = "reader".into();
/// ```
///
/// In a constant, the numbers can be set:
///
/// ```
/// use blocking_threads::{Pool, Settings};
///
/// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
/// static POOL: Pool<fn()> = Pool::new({
///     let mut settings = Settings::named("reader");
///     settings.cap = 4;
///     settings
/// });
/// ```
///
/// The hooks are behind [`Arc`]s, which no constant can make: a pool with hooks is made at run
/// time, in a [`LazyLock`](std::sync::LazyLock), say.
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The threads' name, where a thread is started for a job that came by [`Pool::submit`](crate::Pool::submit). It holds no NUL: with one no
    /// thread starts, and jobs are refused.
    pub name: Cow<'static, str>,
    /// Bytes of each thread's stack. `None`: what [`std::thread`] gives.
    pub stack_size: Option<usize>,
    /// The most jobs at a time, of those that came by [`Pool::submit`](crate::Pool::submit): with 0, those are refused. Other jobs are beyond it, and take none of its
    /// room. 512 by default. [`Pool::set_cap`](crate::Pool::set_cap) changes it later.
    pub cap: usize,
    /// So many threads are started at once, each for the job that found no idle one. 4 by default;
    /// 0 counts as 1.
    pub eager: usize,
    /// How often the pool looks whether jobs wait, once it has as many threads as
    /// [`eager`](Self::eager) says and all are busy: a job waits so long before another thread
    /// is started. 1 ms by default. Zero starts a thread for each job that finds no idle one.
    pub grow_after: Duration,
    /// How long a thread waits for its next job before it ends. 10 s by default.
    pub keep_alive: Duration,
    /// Called by each thread when it starts.
    pub on_start: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Called by each thread before it ends.
    pub on_stop: Option<Arc<dyn Fn() + Send + Sync>>,
    /// Gives each thread its way to linger. By default it doesn't.
    pub before_park: Option<Arc<dyn Fn() -> Box<BeforePark> + Send + Sync>>,
    /// How threads are started: for priorities, a sandbox, or a test that is refused one. It either runs the closure in a thread or fails, by an error or a panic,
    /// and leaves the pool alone, as it may be called under its lock. One that does both has the pool miscount its threads.
    pub spawn: Option<Arc<Spawn>>,
}

impl Settings {
    /// The defaults.
    pub const fn new() -> Self {
        Self::named("blocking")
    }

    /// The defaults, with a name for the threads.
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
