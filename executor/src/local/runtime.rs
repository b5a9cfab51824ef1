//! `LocalRuntime`: a runtime of one thread, which also takes futures that are not `Send`.
use crate::{
    EnterGuard, Handle, JoinHandle, LocalSet, Runtime, RuntimeMetrics,
    current_thread::{Progress, TURN},
};
use std::{
    fmt,
    future::Future,
    io,
    marker::PhantomData,
    mem,
    panic::{RefUnwindSafe, UnwindSafe},
    time::Duration,
};

/// Options of [`Builder::build_local`](crate::Builder::build_local). There are none yet.
///
/// ```
/// use selvedge_executor::{Builder, runtime::LocalOptions};
///
/// let runtime = Builder::new_current_thread().build_local(LocalOptions::default())?;
/// assert_eq!(runtime.block_on(async { 7 }), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct LocalOptions {
    /// Like tokio's, the options stay on their thread.
    stays: PhantomData<*mut ()>,
}

/// Runtime of one thread, which also takes futures that are not `Send`.
///
/// This type is a runtime of the flavor [`CurrentThread`](crate::RuntimeFlavor::CurrentThread) with
/// a [`LocalSet`]. The runtime's tasks and those of the set run in the thread that is in
/// [`block_on`](Self::block_on). The methods that tokio's
/// `LocalRuntime` has too have the same names and signatures.
///
/// # Drop
/// The tasks of the set are dropped first, in this thread, inside the runtime. Then the runtime is
/// [dropped](crate::Runtime#drop). In a child made by `fork` the drop does
/// [nothing](crate::Runtime#fork).
///
/// ```
/// use selvedge_executor::{LocalRuntime, spawn_local};
/// use std::rc::Rc;
///
/// let runtime = LocalRuntime::new()?;
/// let three = Rc::new(3);
/// let local = runtime.spawn_local(async move { *three });
/// let remote = runtime.handle().clone();
/// let sum = runtime.block_on(async move {
///     let shared = remote.spawn(async { spawn_local(async { 4 }).await.unwrap() });
///     local.await.unwrap() + shared.await.unwrap()
/// });
/// assert_eq!(sum, 7);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LocalRuntime {
    set: LocalSet,
    runtime: Runtime,
}

// The tasks and the queue are whole after a panic of the future of a `block_on`: no user code runs
// amid a change of them.
impl UnwindSafe for LocalRuntime {}
impl RefUnwindSafe for LocalRuntime {}

impl LocalRuntime {
    pub(crate) fn of(runtime: Runtime) -> Self {
        let mut set = LocalSet::new();
        set.unhandled_panic(runtime.handle().shared().hooks.policy);
        Self { set, runtime }
    }

    /// Makes a runtime with the default settings.
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// assert_eq!(runtime.block_on(async { 7 }), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// None so far. tokio's function can fail.
    pub fn new() -> io::Result<Self> {
        crate::Builder::new_current_thread().build().map(Self::of)
    }

    /// Returns a handle, which can also spawn from other threads.
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// let handle = runtime.handle().clone();
    /// let task = std::thread::spawn(move || handle.spawn(async { 7 })).join().unwrap();
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn handle(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Spawns a task that stays in this thread. It runs inside [`block_on`](Self::block_on).
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// let text = std::rc::Rc::new("text");
    /// let task = runtime.spawn_local(async move { text.len() });
    /// assert_eq!(runtime.block_on(task).unwrap(), 4);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        self.set.spawn_local(future)
    }

    /// Runs a closure on a thread where it may block. See [`Handle::spawn_blocking`].
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
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
        self.runtime.spawn_blocking(f)
    }

    /// Runs a future, and the tasks of this runtime, until the future is ready.
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// let seven = runtime.block_on(async { selvedge_executor::spawn_local(async { 7 }).await.unwrap() });
    /// assert_eq!(seven, 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// As [`Runtime::block_on`].
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        // The guard is for the tasks of the runtime, which may call `spawn_local`.
        let _entered = self.set.enter();
        self.runtime.block_on(self.set.run_until(future))
    }

    /// Runs the tasks of both kinds until none is ready, and does not wait for any. See
    /// [`Runtime::run_until_stalled`].
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// let (answer, question) = tokio::sync::oneshot::channel();
    /// let (local, shared) = (runtime.spawn_local(question), runtime.handle().spawn(async {
    ///     answer.send(42).unwrap();
    /// }));
    /// runtime.run_until_stalled();
    /// assert!(local.is_finished() && shared.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// Where [`block_on`](Self::block_on) does.
    #[track_caller]
    pub fn run_until_stalled(&self) {
        self.run_ready(false);
    }

    /// Runs the tasks of both kinds until one has ended, or none is ready. Returns whether one has
    /// ended. See [`Runtime::try_run_one`].
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// let task = runtime.spawn_local(selvedge_executor::yield_now());
    /// assert!(runtime.try_run_one() && task.is_finished());
    /// assert!(!runtime.try_run_one());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// Where [`block_on`](Self::block_on) does.
    #[track_caller]
    pub fn try_run_one(&self) -> bool {
        self.run_ready(true)
    }

    /// Runs the runtime's tasks and the set's tasks in turns. This is necessary because a task may
    /// yield again and again while it waits for a task of the other kind.
    ///
    /// The runtime's part comes first in each round. It also looks at timers and sockets. Even if
    /// that look makes none of the runtime's tasks ready, it may make tasks of the set ready.
    #[track_caller]
    fn run_ready(&self, one: bool) -> bool {
        let _entered = self.set.enter();
        loop {
            let shared = self.runtime.run_ready(one, TURN);
            if shared == Progress::Ended {
                return true;
            }
            let local = || self.set.run_ready(one);
            match (shared, self.runtime.handle().in_block_on(local)) {
                (_, Progress::Ended) => return true,
                (Progress::None, Progress::None) => return false,
                _ => {}
            }
        }
    }

    /// Makes this runtime and its set the thread's current ones until the guard is dropped.
    ///
    /// ```
    /// use selvedge_executor::{LocalRuntime, spawn, spawn_local};
    ///
    /// let runtime = LocalRuntime::new()?;
    /// let tasks = {
    ///     let _entered = runtime.enter();
    ///     (spawn(async { 3 }), spawn_local(async { 4 }))
    /// };
    /// let sum = async { tasks.0.await.unwrap() + tasks.1.await.unwrap() };
    /// assert_eq!(runtime.block_on(sum), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter().with_set(self.set.entry())
    }

    /// Shuts the runtime down as its drop does, and waits no longer than `limit` for closures that
    /// block.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// runtime.spawn_blocking(|| std::thread::sleep(Duration::from_secs(3)));
    /// runtime.shutdown_timeout(Duration::from_millis(10));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_timeout(mut self, limit: Duration) {
        self.drop_tasks();
        self.runtime.end(Some(limit));
    }

    /// Shuts the runtime down as its drop does, and does not wait for closures that block.
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// runtime.spawn_blocking(|| std::thread::sleep(std::time::Duration::from_secs(3)));
    /// runtime.shutdown_background();
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn shutdown_background(self) {
        self.shutdown_timeout(Duration::ZERO);
    }

    /// Returns a live view of the runtime's counters. They do not count the tasks of
    /// [`spawn_local`](Self::spawn_local).
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// assert_eq!(runtime.metrics().num_workers(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        self.handle().metrics()
    }

    fn drop_tasks(&mut self) {
        if self.handle().shared().is_in_forked_child() {
            return mem::forget(mem::take(&mut self.set));
        }
        let _entered = self.runtime.enter();
        drop(mem::take(&mut self.set));
    }
}

impl Drop for LocalRuntime {
    fn drop(&mut self) {
        self.drop_tasks();
    }
}

impl fmt::Debug for LocalRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalRuntime")
            .field("handle", self.handle())
            .finish_non_exhaustive()
    }
}
