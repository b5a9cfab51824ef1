//! `Handle`: a reference to a runtime that is cheap to clone and may outlive it.
use crate::{
    Snapshot, blocking,
    current_thread::CurrentThread,
    observe::listed_future::ListedFuture,
    scope::{self, In, OneThread},
    settings::unhandled,
    worker::{
        context::{self, with_core},
        driven::Worker,
        identity::RuntimeId,
        park::Park,
        shared::Shared,
    },
};
use std::{
    borrow::Cow,
    cell::Cell,
    fmt,
    future::{Future, poll_fn},
    marker::PhantomData,
    panic::{Location, RefUnwindSafe, UnwindSafe},
    pin::pin,
    task::Context,
};
use sync_shim::sync::Arc;
use task_header::JoinHandle;

/// Reference to a runtime. A handle spawns tasks on the runtime, from any thread.
///
/// A handle does not keep the runtime running. After the runtime's end the handle still spawns, but
/// each task is cancelled at once.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let handle = runtime.handle().clone();
/// let other = std::thread::spawn(move || {
///     let (six, seven) = (handle.spawn(async { 6 }), handle.spawn_blocking(|| 7));
///     handle.block_on(async { six.await.unwrap() * seven.await.unwrap() })
/// });
/// assert_eq!(other.join().unwrap(), 42);
///
/// let handle = runtime.handle().clone();
/// drop(runtime);
/// let late = handle.spawn(async {});
/// handle.spawn_detached(async { unreachable!("dropped by now") });
/// assert!(handle.block_on(late).unwrap_err().is_cancelled());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

// A panic cannot leave the shared state broken. That state consists of atomics, and of values
// behind locks. No panic poisons these locks, and no user code runs within them.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the runtime that this thread is in.
    ///
    /// A thread is in a runtime while it runs a task, a `block_on`, or a closure of
    /// `spawn_blocking`, or holds an [`EnterGuard`].
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let handle = runtime.block_on(async { selvedge_executor::Handle::current() });
    /// assert_eq!(runtime.block_on(handle.spawn(async { 7 })).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If this thread is in no runtime. A [`LocalSet`](crate::LocalSet) is no runtime.
    /// [`try_current`](Self::try_current) returns an error instead.
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// Returns the runtime that this thread is in, if there is one.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// assert!(selvedge_executor::Handle::try_current().is_err());
    /// assert!(runtime.block_on(async { selvedge_executor::Handle::try_current().is_ok() }));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If this thread is in no runtime.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        scope::current()
            .map(Self::new)
            .ok_or_else(|| TryCurrentError {
                in_local_set: scope::local_set().is_some(),
            })
    }

    /// Makes the handle's runtime this thread's current one until the guard is dropped.
    ///
    /// [`spawn`](crate::spawn()) and similar functions then use this runtime, even where the thread
    /// is in another runtime already, as in a task. If a thread holds several guards, the newest
    /// one counts, in whatever order the guards are dropped. If a guard is leaked, the thread stays
    /// in the runtime.
    ///
    /// While a thread of a runtime has a guard, held or leaked, the other tasks that the thread
    /// runs are in the guard's runtime, too, and so are the hooks around their polls. Where
    /// `block_on` or a driven worker runs the tasks, each tick is in its own runtime again, but the
    /// rest of the future of `block_on` is in the guard's. The hooks around a park, and the wakers
    /// that a worker calls for timers and sockets, are in the worker's own runtime. The set of a
    /// leaked guard of a [`LocalRuntime`](crate::LocalRuntime) stays the thread's set everywhere.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let task = {
    ///     let _entered = runtime.enter();
    ///     selvedge_executor::spawn(async { 7 })
    /// };
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            _local: None,
            _guard: context::Entered::enter(self.shared.clone()),
            handle: PhantomData,
            stays: PhantomData,
        }
    }

    /// Runs `f` on a thread where it may block.
    ///
    /// The runtime starts threads as needed, up to the builder's cap. Above the cap closures wait
    /// for a thread. Idle threads end after a while. A closure that is spawned before the runtime's
    /// end runs, even if a thread takes it only after the end. A closure that is spawned later is
    /// cancelled. So is a closure for which the runtime has no thread and can start none. A closure
    /// that has begun cannot be aborted. [`Builder::prestart`](crate::Builder::prestart) says what
    /// such a thread inherits.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let read = runtime.spawn_blocking(|| std::fs::read("/dev/null"));
    /// assert_eq!(runtime.block_on(read).unwrap()?, []);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// In a child made by [`fork`](crate::Runtime#fork).
    #[track_caller]
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        self.spawn_blocking_as(None, f, Location::caller())
    }

    #[track_caller]
    pub(crate) fn spawn_blocking_as<F, R>(
        &self,
        name: Option<Cow<'static, str>>,
        f: F,
        at: &'static Location<'static>,
    ) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let handle = self.clone();
        let f = crate::groups::within(&self.shared, f);
        let f = move || scope::within(In::Closure(&handle.shared), f);
        blocking::spawn(&self.shared, name, f, at)
    }

    /// Blocks this thread on a future, which may spawn tasks on this runtime.
    ///
    /// This thread polls the future, and sleeps between the polls. The thread must be one that may
    /// block:
    /// - a thread in no runtime, or in one only by a guard of [`enter`](Self::enter);
    /// - a thread that runs a closure of [`spawn_blocking`](Self::spawn_blocking), of any runtime;
    /// - a thread that runs a closure of [`block_in_place`](crate::block_in_place()).
    ///
    /// `block_on` also works after the runtime's end. The tasks that the future then spawns are
    /// cancelled.
    ///
    /// A future that is ready at its first poll costs no allocation, and two read-modify-writes of
    /// the runtime's reference count. Any other future also costs one allocation, for the parker
    /// that the future's waker unparks. In a runtime without a monitor, where this thread may have
    /// to serve timers and sockets, each future costs two allocations and two locks.
    ///
    /// # Panics
    /// - If the future panics.
    /// - Where `block_on` would hold up other tasks, of any runtime: in a task, in a hook for tasks
    ///   or for parking, inside another `block_on`, or while a local set is polled.
    /// - If the future waits, and a panic shuts the runtime down or has done so: see
    ///   [`UnhandledPanic::Shutdown`](crate::UnhandledPanic::Shutdown).
    /// - In a child made by [`fork`](crate::Runtime#fork).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.block_on_in(None, future)
    }

    /// Blocks this thread on a future. With `driven`, the thread may run the runtime's tasks
    /// meanwhile.
    #[track_caller]
    pub(crate) fn block_on_in<F: Future>(
        &self,
        driven: Option<&CurrentThread>,
        future: F,
    ) -> F::Output {
        scope::assert_may_block_on(&self.shared);
        self.shared.assert_is_not_in_forked_child("block_on");
        let (budget, at) = (self.shared.settings.budget, Location::caller());
        let part = match driven {
            None => OneThread::Other,
            Some(_) => OneThread::Waits,
        };
        scope::within(In::BlockOn(self.shared.clone(), Cell::new(part)), || {
            let mut future = pin!(future);
            let listed = ListedFuture::block_on(&self.shared, at);
            // The budget of an outer poll would not be renewed before this `block_on` returns. So
            // the future has a budget of its own.
            let polls = poll_fn(|cx| {
                let mut poll = |cx: &mut Context<'_>| future.as_mut().poll(cx);
                let polled = coop_budget::Scope::own(budget).run(|| match &listed {
                    None => poll(cx),
                    Some(listed) => listed.poll(cx, poll),
                });
                if polled.is_pending() {
                    // The future itself may have called `fork`.
                    self.shared
                        .assert_is_not_in_forked_child("a poll of block_on's future");
                }
                polled
            });
            let polls = pin!(polls);
            let polls = unhandled::or_panic(&self.shared, polls);
            match driven {
                None => self.shared.events.block_on(polls),
                Some(driven) => driven.block_on(&self.shared, pin!(polls)),
            }
        })
    }

    /// Runs `f` in the scope of a `block_on`. Panics where `block_on` may not be called.
    #[track_caller]
    pub(crate) fn in_block_on<R>(&self, f: impl FnOnce() -> R) -> R {
        scope::assert_may_block_on(&self.shared);
        self.shared.assert_is_not_in_forked_child("block_on");
        let part = Cell::new(OneThread::Waits);
        scope::within(In::BlockOn(self.shared.clone(), part), f)
    }

    /// Requests the end of a worker's time slice.
    ///
    /// The task that the worker is polling yields at its next operation, and the tasks behind it
    /// have their turn. A task that does no operation goes on to the end of its poll. A monitor
    /// makes such a request for a worker whose slice is long. A request costs one exchange.
    ///
    /// A time slice lasts until a request ends it. The worker begins another slice when it looks
    /// for its next task. A request may also come while the worker is idle, or in a poll without
    /// operations. The request then stays until the worker begins a slice. If any task of the
    /// worker does an operation before that, the request refuses the operation.
    ///
    /// ```
    /// use selvedge_executor::{Budget, Builder};
    ///
    /// let runtime = Builder::new().workers(1).budget(Budget::UNLIMITED).build()?;
    /// let handle = runtime.handle().clone();
    /// let task = runtime.spawn(async move {
    ///     handle.preempt(0);
    ///     coop_budget::consume().await; // The task yields here.
    /// });
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.snapshot().ended_slices, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no worker of that index, counted from 0.
    #[track_caller]
    pub fn preempt(&self, worker: usize) {
        let workers = self.shared.remotes.len();
        assert!(
            worker < workers,
            "a runtime of {workers} workers has no worker {worker}"
        );
        self.shared.slices.of(worker).request();
    }

    /// Returns the runtime's id, which no other runtime of this process has or had.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// assert_eq!(runtime.handle().id(), runtime.handle().clone().id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn id(&self) -> RuntimeId {
        self.shared().id
    }

    /// Returns the runtime's name, if [`Builder::name`](crate::Builder::name) gave it one.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().name("requests").build()?;
    /// assert_eq!(runtime.handle().name(), Some("requests"));
    /// assert_eq!(selvedge_executor::Runtime::new()?.handle().name(), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.shared().settings.name.as_deref()
    }

    /// Returns on which threads the runtime runs its tasks.
    ///
    /// ```
    /// use selvedge_executor::{Handle, RuntimeFlavor};
    ///
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let flavor = runtime.block_on(async { Handle::current().runtime_flavor() });
    /// assert_eq!(flavor, RuntimeFlavor::MultiThread);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        match self.shared().settings.current_thread {
            true => RuntimeFlavor::CurrentThread,
            false => RuntimeFlavor::MultiThread,
        }
    }

    /// Returns all of the runtime's counters so far. [`metrics`](Self::metrics) has those of tokio,
    /// one by one.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let handle = runtime.handle().clone();
    /// runtime.spawn_detached(async {});
    /// drop(runtime);
    /// assert_eq!((handle.snapshot().spawns, handle.snapshot().live_tasks), (1, 0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.shared)
    }
}

impl<P: Park> Worker<P> {
    /// Returns a handle of the worker's runtime.
    ///
    /// ```
    /// let park = selvedge_executor::park::ThreadPark::new();
    /// let (runtime, workers) = selvedge_executor::Builder::new().build_driven([park]);
    /// let task = workers[0].handle().spawn(async { 7 });
    /// let thread = std::thread::spawn(|| workers.into_iter().for_each(selvedge_executor::Worker::run));
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// drop(runtime);
    /// thread.join().unwrap();
    /// ```
    pub fn handle(&self) -> Handle {
        Handle::new(self.core.shared.clone())
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("workers", &self.shared.remotes.len())
            .finish_non_exhaustive()
    }
}

/// Error of [`Handle::try_current`]: this thread is in no runtime. The message says what to do.
///
/// ```
/// let error = selvedge_executor::Handle::try_current().unwrap_err();
/// assert!(error.to_string().starts_with("this thread is in no runtime"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryCurrentError {
    in_local_set: bool,
}

impl TryCurrentError {
    /// Returns whether the thread was in no runtime.
    ///
    /// ```
    /// let error = selvedge_executor::Handle::try_current().unwrap_err();
    /// assert!(error.is_missing_context() && !error.is_thread_local_destroyed());
    /// ```
    pub fn is_missing_context(&self) -> bool {
        true
    }

    /// Returns whether the thread's locals were destroyed, which never happens: this runtime's
    /// locals have no destructor, so a thread is in its runtime until the thread's end.
    ///
    /// ```
    /// let error = selvedge_executor::Handle::try_current().unwrap_err();
    /// assert!(!error.is_thread_local_destroyed());
    /// ```
    pub fn is_thread_local_destroyed(&self) -> bool {
        false
    }
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.in_local_set {
            "this thread is in no runtime, only in a LocalSet: call `spawn_local` to spawn a task \
             there, or enter a runtime by `Handle::enter` first"
        } else {
            "this thread is in no runtime of selvedge (one of another crate, such as tokio, does \
             not count): call this in a task of selvedge, inside a runtime's block_on, or while a \
             guard of `Handle::enter` is held"
        })
    }
}

impl std::error::Error for TryCurrentError {}

/// Guard of [`Handle::enter`]: the thread is in the runtime until the guard is dropped.
///
/// ```
/// use selvedge_executor::Handle;
///
/// let runtime = selvedge_executor::Runtime::new()?;
/// let guard: selvedge_executor::EnterGuard<'_> = runtime.enter();
/// assert!(Handle::try_current().is_ok());
/// drop(guard);
/// assert!(Handle::try_current().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// The guard stays on the thread that entered, and that thread drops it. Another thread may have a
/// reference to the guard, but does not enter the runtime by that reference.
#[must_use = "the thread leaves the runtime when this is dropped"]
pub struct EnterGuard<'a> {
    _local: Option<scope::Entry>,
    _guard: context::Entered,
    handle: PhantomData<&'a Handle>,
    /// Keeps the guard on its thread: it is not `Send`.
    stays: PhantomData<*mut ()>,
}

// SAFETY: the only operation on a shared guard is `Debug`, which reads none of the guard's fields.
// Only the drop uses the guard's scope. A guard is not `Send`, so the thread that entered drops it.
unsafe impl Sync for EnterGuard<'_> {}

impl EnterGuard<'_> {
    /// Adds a local set. When the guard is dropped, the thread leaves the set, then the runtime.
    pub(crate) fn with_set(mut self, entered: scope::Entry) -> Self {
        self._local = Some(entered);
        self
    }
}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnterGuard")
    }
}

/// The threads on which a runtime runs its tasks.
///
/// ```
/// use selvedge_executor::{Builder, RuntimeFlavor};
///
/// let runtime = Builder::new_current_thread().build()?;
/// assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
/// let runtime = Builder::new().build()?;
/// assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::MultiThread);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// The thread in `block_on`.
    CurrentThread,
    /// Threads of the runtime's own, or the callers of its driven workers.
    MultiThread,
}

/// Returns the index of the worker that this thread runs, if it runs one.
///
/// Returns `None` outside of tasks and hooks of a worker, for example in the future of `block_on`.
/// Only in a runtime of one thread does the future of `Runtime::block_on` have an index, which is
/// 0, while its thread runs the tasks. Also returns `None` inside
/// [`block_in_place`](crate::block_in_place()) and [`syscall`](crate::syscall()), and in the rest of
/// a poll that has lost its worker in one of these calls. Indexes count from 0, as in
/// [`Snapshot::per_worker`](crate::Snapshot::per_worker).
///
/// ```
/// use selvedge_executor::{Builder, worker_index};
///
/// let runtime = Builder::new().workers(1).build()?;
/// assert_eq!(runtime.block_on(runtime.spawn(async { worker_index() })).unwrap(), Some(0));
/// assert_eq!(runtime.block_on(async { worker_index() }), None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn worker_index() -> Option<usize> {
    with_core(|core| core.index).or_else(|| scope::drives().then_some(0))
}
