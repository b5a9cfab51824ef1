//! A runtime, its worker threads and their end; beside it what else tokio has in a module of this name.
//!
//! ```
//! use selvedge::runtime::{Builder, Handle, Runtime};
//!
//! let runtime: Runtime = Builder::new_multi_thread().worker_threads(2).build()?;
//! let handle: &Handle = runtime.handle();
//! assert_eq!(runtime.block_on(handle.spawn(async { 7 })).unwrap(), 7);
//! # Ok::<(), std::io::Error>(())
//! ```
pub use crate::{
    builder::Builder,
    handle::{EnterGuard, Handle, TryCurrentError},
    hooks::UnhandledPanic,
    local::LocalRuntime,
};

use crate::{Snapshot, scope, shared::Shared};
use std::{fmt, future::Future, io, time::Duration};
use sync_shim::sync::Arc;
use task_header::JoinHandle;

/// Worker threads that run tasks.
///
/// Dropping it refuses further spawns, drops the future of every task that is left, on a worker or on the thread whose wake or spawn comes last,
/// and waits for the threads, which first run all closures of [`spawn_blocking`](Self::spawn_blocking) that were spawned before.
/// It does the same without waiting, as [`shutdown_background`](Self::shutdown_background), where waiting would hold up a
/// future (dropped by a task of whatever runtime or local set, or inside `block_on`), in its own threads, and in a wake, which may drop a task that owns it. What blocks in a thread of another runtime does wait (a blocking closure, [`block_in_place`](crate::block_in_place()), a hook for
/// threads that start or stop): two runtimes, each dropped in such a place of the other, wait for ever.
///
/// A child of `fork`, by a thread from outside, has a runtime without threads: what it spawns there never runs, and its drop does nothing. (If a thread of the runtime held a lock meanwhile,
/// the child may wait for it for ever, as for any lock.)
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
/// let sum = runtime.block_on(async {
///     let tasks: Vec<_> = (0..10).map(|i| selvedge::spawn(async move { i * i })).collect();
///     let mut sum = 0;
///     for task in tasks {
///         sum += task.await.expect("no task panicked");
///     }
///     sum
/// });
/// assert_eq!(sum, 285);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Runtime {
    handle: Handle,
    /// Whether its end was seen to.
    over: bool,
}

impl Runtime {
    /// A runtime with as many workers as the machine has processors for this process. Their threads are started as they are needed, but for the first one.
    ///
    /// # Errors
    /// When that can't be started.
    pub fn new() -> io::Result<Self> {
        Builder::new().build()
    }

    pub(crate) fn new_of(shared: Arc<Shared>) -> Self {
        Self {
            handle: Handle::new(shared),
            over: false,
        }
    }

    /// A way in for other threads and other owners.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let handle = runtime.handle().clone();
    /// let seven = std::thread::spawn(move || handle.spawn(async { 7 })).join().unwrap();
    /// assert_eq!(runtime.block_on(seven).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Spawns a task, which runs whether its handle is awaited or not.
    ///
    /// A panic of the task goes to the handle as a [`JoinError`](crate::JoinError); dropping the handle
    /// detaches the task. What it costs, [`Handle::spawn`] says.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let task = runtime.spawn(async { 7 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// Spawns a task that nobody waits for.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// runtime.spawn_detached(async move { sender.send(7).unwrap() });
    /// assert_eq!(receiver.recv().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn spawn_detached<F>(&self, future: F)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn_detached(future);
    }

    /// Runs `f` on a thread where it may block. Threads are started as needed, up to the builder's
    /// cap, beyond which closures wait for one; idle ones end after a while. A closure that is spawned before
    /// the runtime's end runs, also if it has to wait for a thread until after that. Once the runtime has ended, or if
    /// no thread at all can be started, the handle says that it was cancelled. A closure that has begun can't be aborted.
    /// What such a thread inherits [`Builder::prestart`](crate::Builder::prestart) says.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let read = runtime.spawn_blocking(|| std::fs::read("/dev/null"));
    /// assert_eq!(runtime.block_on(read).unwrap()?, []);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    /// Waits on this thread for a future, which may spawn tasks on this runtime.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let seven = runtime.block_on(async { selvedge::spawn(async { 7 }).await.unwrap() });
    /// assert_eq!(seven, 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// On any thread that may wait: one that is in a runtime by a guard of [`enter`](Self::enter) only, one that runs a closure of
    /// [`spawn_blocking`](Self::spawn_blocking), of this runtime or another, and a task inside [`block_in_place`](crate::block_in_place()). The future is polled on
    /// this thread, which sleeps while it waits. After the runtime's end that works as well, but what it spawns is cancelled.
    ///
    /// A future that is ready at its first poll costs no allocation and no read-modify-write. Another one
    /// costs an allocation, for the parker, which its waker keeps.
    ///
    /// # Panics
    /// When the future panics; and where to wait would hold up others, of whatever runtime: in a task, in a hook for tasks or for parking, inside another `block_on`,
    /// while a local set is polled.
    ///
    /// Also when the future waits, and the runtime is or was shut down by a panic: see [`UnhandledPanic::Shutdown`].
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.handle.block_on(future)
    }

    /// Makes this thread one that is in the runtime, for [`spawn`](crate::spawn()) and the like, until the guard is dropped.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let _entered = runtime.enter();
    /// let task = selvedge::spawn(async { 7 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// What the runtime has done so far.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// runtime.block_on(runtime.spawn(async {})).unwrap();
    /// assert_eq!(runtime.metrics().spawned, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> Snapshot {
        self.handle.metrics()
    }

    /// As a drop, but waits no longer than `limit`, and then for the destructors of the threads' own thread-locals, if all threads have ended their work by then: which it says. Those that have not
    /// go on until they have, and keep what they need.
    ///
    /// ```
    /// # use std::time::Duration;
    /// let runtime = selvedge::Builder::new().workers(1).build()?;
    /// runtime.spawn_blocking(|| std::thread::sleep(Duration::from_secs(3)));
    /// # std::thread::sleep(Duration::from_millis(50));
    /// assert!(!runtime.shutdown_timeout(Duration::from_millis(10)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(mut self, limit: Duration) -> bool {
        self.end(Some(limit))
    }

    /// As a drop, but waits for nothing. Closures that were spawned before run all the same, unless the process ends first.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// runtime.spawn_blocking(|| std::thread::sleep(std::time::Duration::from_secs(3)));
    /// runtime.shutdown_background();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_background(mut self) {
        self.end(Some(Duration::ZERO));
    }

    fn end(&mut self, limit: Option<Duration>) -> bool {
        self.over = true;
        let shared = self.handle.shared();
        if shared.process != std::process::id() {
            return false; // A fork's copy: its threads, and whoever held a lock, are the parent's.
        }
        shared.close();
        // Each thread has what it needs to end alone.
        let waits = scope::may_wait_for_end_of(shared);
        let limit = if waits { limit } else { Some(Duration::ZERO) };
        // Without a limit the joins are the wait.
        let ended = limit.is_none() || shared.blocking.wait(limit);
        if ended && waits {
            shared.blocking.join();
        }
        ended
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if !self.over {
            self.end(None);
        }
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
