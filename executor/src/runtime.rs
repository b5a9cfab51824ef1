//! Runtimes: one with worker threads, and one of a single thread that also takes tasks which stay
//! on that thread.
//!
//! ```
//! use selvedge_executor::runtime::{LocalRuntime, Runtime};
//!
//! let (threads, here) = (Runtime::new()?, LocalRuntime::new()?);
//! let seven = here.block_on(threads.spawn(async { 7 }));
//! assert_eq!(seven.unwrap(), 7);
//! # Ok::<(), std::io::Error>(())
//! ```
pub use crate::local::runtime::{LocalOptions, LocalRuntime};

use crate::{
    EnterGuard, Handle, RuntimeMetrics, Snapshot,
    current_thread::{CurrentThread, Progress},
    events::EventsPark,
    scope,
    worker::{driven::Worker, shared::Shared},
};
use std::{
    fmt,
    future::Future,
    io,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sync_shim::sync::Arc;
use task_header::JoinHandle;

/// Async runtime with worker threads that run tasks.
///
/// # Drop
/// The drop of a runtime shuts the runtime down:
/// 1. The runtime refuses further spawns. If there are futures of [`at_exit`](Self::at_exit), the
///    drop waits until they have run.
/// 2. The future of each task that is left is dropped, on a worker, or on the thread whose wake or
///    spawn comes last.
/// 3. The drop waits for the runtime's threads. The threads first run all closures of
///    [`spawn_blocking`](Self::spawn_blocking) that were spawned before.
///
/// In these places the drop does not wait, as if by
/// [`shutdown_background`](Self::shutdown_background):
/// - where it would hold up a future: in a task of any runtime or local set, or inside `block_on`;
/// - in the runtime's own threads;
/// - in a wake, which may drop a task that owns the runtime.
///
/// The drop does wait where a thread of another runtime may block: in a blocking closure, in
/// [`block_in_place`](crate::block_in_place()), and in a hook for threads that start or stop. If
/// each of two runtimes is dropped in such a place of the other one, both drops wait forever.
///
/// # Fork
/// After a `fork` the child process has a copy of the runtime: without the runtime's threads, and
/// with sockets that are those of the parent. So in the child, build another runtime after the
/// `fork`, or call `exec`. With the copy,
/// - `block_on` panics, also if its future has called `fork` and then waits;
/// - a spawn by a thread that is not a worker panics, and so does `spawn_blocking`;
/// - [`run_until_stalled`](Self::run_until_stalled), [`try_run_one`](Self::try_run_one) and the
///   park of a driven [`Worker`] panic;
/// - the drop does nothing: it drops no task, and leaks the memory.
///
/// A task or a closure may itself call `fork`. If it then returns in the child, the thread of the
/// runtime ends the child by `abort`, with a message: when the closure returns, or before the
/// worker waits or looks at its sockets. Until then, up to 61 polls, the worker may run its copies
/// of tasks that were queued at the `fork`. If another thread of the runtime held a lock at the
/// `fork`, the child may wait for that lock forever, as for any lock. A child that was made by the
/// bare system call, without the C library, is not noticed.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let sum = runtime.block_on(async {
///     let tasks: Vec<_> = (0..10).map(|i| selvedge_executor::spawn(async move { i * i })).collect();
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
    pub(crate) handle: Handle,
    /// The worker, if the thread in `block_on` is to drive it.
    pub(crate) current_thread: Option<CurrentThread>,
    /// Whether the user's own loops drive the workers.
    pub(crate) is_driven: bool,
    /// Whether `end` was called.
    pub(crate) over: bool,
}

impl Runtime {
    /// Starts a runtime with a worker for each CPU that this process may use.
    ///
    /// The environment variable `SELVEDGE_WORKERS` overrides the number of workers. The first
    /// worker's thread starts at once, and the other threads start when they are needed.
    ///
    /// # Errors
    /// If the first thread cannot be started, or `SELVEDGE_WORKERS` is not a number from 1 to
    /// 65,535.
    pub fn new() -> io::Result<Self> {
        crate::Builder::new().build()
    }

    pub(crate) fn new_of(shared: Arc<Shared>) -> Self {
        Self {
            handle: Handle::new(shared),
            current_thread: None,
            is_driven: false,
            over: false,
        }
    }

    /// Lets the threads in `block_on` drive the worker, one at a time.
    pub(crate) fn be_driven_by_block_on(&mut self, worker: Worker<EventsPark>) {
        self.current_thread = Some(CurrentThread::new(worker));
    }

    /// Returns a handle, which can be cloned for other threads and owners.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
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
    /// A panic of the task goes to the handle as a [`JoinError`](crate::JoinError). Dropping the
    /// handle detaches the task. [`Handle::spawn`] says what a spawn costs.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let task = runtime.spawn(async { 7 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn(future)
    }

    /// Spawns a task without a join handle.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// runtime.spawn_detached(async move { sender.send(7).unwrap() });
    /// assert_eq!(receiver.recv().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_detached<F>(&self, future: F)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.handle.spawn_detached(future);
    }

    /// Runs `f` on a thread where it may block.
    ///
    /// The runtime starts threads as needed, up to the builder's cap. Above the cap closures wait
    /// for a thread. Idle threads end after a while. A closure that was spawned before the
    /// runtime's end runs, even if it waits for a thread until after the end. A closure is
    /// cancelled if the runtime has ended, or if no thread at all can be started. A closure that
    /// has begun cannot be aborted. [`Builder::prestart`](crate::Builder::prestart) says what such
    /// a thread inherits.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let read = runtime.spawn_blocking(|| std::fs::read("/dev/null"));
    /// assert_eq!(runtime.block_on(read).unwrap()?, []);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.handle.spawn_blocking(f)
    }

    /// Blocks this thread on a future, which may spawn tasks on this runtime.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let seven = runtime.block_on(async { selvedge_executor::spawn(async { 7 }).await.unwrap() });
    /// assert_eq!(seven, 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// [`Handle::block_on`] says where `block_on` may be called, and what it costs.
    ///
    /// # Panics
    /// - If the future panics.
    /// - Where `block_on` would hold up other tasks, of any runtime: in a task, in a hook for tasks
    ///   or for parking, inside another `block_on`, or while a local set is polled.
    /// - If the future waits, and a panic shuts the runtime down or has done so: see
    ///   [`UnhandledPanic::Shutdown`](crate::UnhandledPanic::Shutdown).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let driven = self.current_thread.as_ref();
        self.handle.block_on_in(driven, future)
    }

    /// Runs the tasks of a runtime of one thread until none is ready, and does not wait for any.
    ///
    /// This method also looks for timers that are due and sockets that are ready. A loop of your
    /// own, such as a game's, can call it once a frame. If a task is always ready, the call does
    /// not return. The call does nothing while another thread is in `block_on`: that thread runs
    /// the tasks.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new_current_thread().build()?;
    /// let (answer, question) = tokio::sync::oneshot::channel();
    /// let task = runtime.spawn(async { question.await.unwrap() });
    /// runtime.run_until_stalled(); // The task waits by now.
    /// answer.send(42).unwrap();
    /// assert!(!task.is_finished());
    /// runtime.run_until_stalled();
    /// assert_eq!(runtime.block_on(task).unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// - If the runtime has threads of its own, or is [driven](crate::Builder::build_driven).
    /// - Where [`block_on`](Self::block_on) would hold up other tasks.
    #[track_caller]
    pub fn run_until_stalled(&self) {
        while self.run_ready(false, usize::MAX) != Progress::None {}
    }

    /// Runs the tasks of a runtime of one thread until one has ended, or none is ready. Returns
    /// whether one has ended.
    ///
    /// After the end of that task, the call may run up to three more tasks, which come through the
    /// LIFO slot.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new_current_thread().build()?;
    /// runtime.spawn(std::future::pending::<()>());
    /// let task = runtime.spawn(selvedge_executor::yield_now());
    /// assert!(runtime.try_run_one() && task.is_finished());
    /// assert!(!runtime.try_run_one()); // The first task waits forever.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// As [`run_until_stalled`](Self::run_until_stalled).
    #[track_caller]
    pub fn try_run_one(&self) -> bool {
        loop {
            match self.run_ready(true, usize::MAX) {
                Progress::Ended => return true,
                Progress::Ran => {}
                Progress::None => return false,
            }
        }
    }

    #[track_caller]
    pub(crate) fn run_ready(&self, one: bool, ticks: usize) -> Progress {
        scope::assert_may_block_on(self.handle.shared());
        self.handle
            .shared()
            .assert_is_not_in_forked_child("a call that runs tasks");
        match &self.current_thread {
            Some(driven) => driven.run_ready(one, ticks),
            None => panic!(
                "the tasks of {} run in threads of their own: only a runtime of \
                 Builder::new_current_thread runs them in its caller's thread",
                self.handle.shared().title(),
            ),
        }
    }

    /// Makes this runtime the thread's current one until the guard is dropped. See
    /// [`Handle::enter`].
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let _entered = runtime.enter();
    /// let task = selvedge_executor::spawn(async { 7 });
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }

    /// Returns all of the runtime's counters so far, as [`Handle::snapshot`] does.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// runtime.block_on(runtime.spawn(async {})).unwrap();
    /// assert_eq!(runtime.snapshot().spawns, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.handle.snapshot()
    }

    /// Returns the runtime's counters under tokio's names, as [`Handle::metrics`] does.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(3).build()?;
    /// assert_eq!(runtime.metrics().num_workers(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle.metrics()
    }
}

// As for `Handle`: a panic cannot leave the shared state broken.
impl UnwindSafe for Runtime {}
impl RefUnwindSafe for Runtime {}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
