//! What a pool's owner decides.
use std::{fmt, io, sync::Arc, time::Duration};
use sync_shim::thread;

/// Starts a thread from a builder that has its name and stack size, and runs the closure in it.
pub type Spawn = dyn Fn(thread::Builder, Box<dyn FnOnce() + Send>) -> io::Result<thread::JoinHandle<()>>
    + Send
    + Sync;

/// What a thread without a job does before it sleeps. It may call the look that it is given, which says whether there is a job, or the end, and returns when it has seen
/// enough.
pub type Linger = dyn FnMut(&mut dyn FnMut() -> bool);

/// Settings of a [`Pool`](crate::Pool).
///
/// ```
/// let mut settings = blocking_threads::Settings::default();
/// settings.cap = 4;
/// settings.name = "reader".into();
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct Settings {
    /// The threads' name, where a thread is started for a job that came by [`Pool::submit`](crate::Pool::submit). It holds no NUL: with one no
    /// thread starts, and jobs are refused.
    pub name: String,
    /// Bytes of each thread's stack. `None`: what [`std::thread`] gives.
    pub stack_size: Option<usize>,
    /// The most jobs at a time, of those that came by [`Pool::submit`](crate::Pool::submit): with 0, those are refused. Other jobs are beyond it, and take none of its
    /// room. 512 by default.
    pub cap: usize,
    /// How long a thread waits for its next job before it ends. 10 s by default.
    pub keep_alive: Duration,
    /// Called by each thread when it starts.
    pub on_start: Arc<dyn Fn() + Send + Sync>,
    /// Called by each thread before it ends.
    pub on_stop: Arc<dyn Fn() + Send + Sync>,
    /// Gives each thread its way to linger. By default it doesn't.
    pub linger: Arc<dyn Fn() -> Box<Linger> + Send + Sync>,
    /// How threads are started: for priorities, a sandbox, or a test that is refused one. It either runs the closure in a thread or fails, by an error or a panic,
    /// and leaves the pool alone, as it may be called under its lock. One that does both has the pool miscount its threads.
    pub spawn: Arc<Spawn>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            name: "blocking".into(),
            stack_size: None,
            cap: 512,
            keep_alive: Duration::from_secs(10),
            on_start: Arc::new(|| ()),
            on_stop: Arc::new(|| ()),
            linger: Arc::new(|| Box::new(|_| ())),
            spawn: Arc::new(|builder, run| builder.spawn(run)),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("stack_size", &self.stack_size)
            .field("cap", &self.cap)
            .field("keep_alive", &self.keep_alive)
            .finish_non_exhaustive()
    }
}
