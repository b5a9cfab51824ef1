//! A way into a runtime that is cheap to clone and outlives it harmlessly.
use crate::{
    Snapshot, blocking,
    park::ThreadPark,
    scope::{self, In},
    shared::Shared,
    unhandled,
};
use std::{
    borrow::Cow,
    fmt,
    future::{Future, poll_fn},
    marker::PhantomData,
    panic::{Location, RefUnwindSafe, UnwindSafe},
    pin::pin,
};
use sync_shim::sync::Arc;
use task_header::JoinHandle;

/// Spawns tasks on a runtime from anywhere. It doesn't keep the runtime running: a spawn after its
/// end gives a handle whose task is cancelled.
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
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

// What threads share is kept by atomics and by locks that no panic poisons, and user code runs outside of them.
impl UnwindSafe for Handle {}
impl RefUnwindSafe for Handle {}
impl UnwindSafe for crate::Runtime {}
impl RefUnwindSafe for crate::Runtime {}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The runtime that this thread is in: a worker's, or that of `block_on` or of a closure of
    /// `spawn_blocking`.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let handle = runtime.block_on(async { selvedge::Handle::current() });
    /// assert_eq!(runtime.block_on(handle.spawn(async { 7 })).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// Outside a runtime, and so in a [`LocalRuntime`](crate::LocalRuntime).
    /// [`try_current`](Self::try_current) doesn't.
    #[track_caller]
    pub fn current() -> Self {
        match Self::try_current() {
            Ok(handle) => handle,
            Err(error) => panic!("{error}"),
        }
    }

    /// The runtime that this thread is in.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// assert!(selvedge::Handle::try_current().is_err());
    /// assert!(runtime.block_on(async { selvedge::Handle::try_current().is_ok() }));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Outside a runtime.
    pub fn try_current() -> Result<Self, TryCurrentError> {
        scope::current().ok_or_else(|| TryCurrentError {
            in_local_set: scope::local_set().is_some(),
        })
    }

    /// Makes this thread one that is in the runtime, for [`spawn`](crate::spawn()) and the like, until the guard is dropped.
    /// Also where it is in another already, as in a task. Of several guards the one that was taken last counts, in whatever order they are dropped. One that is
    /// leaked leaves the thread in the runtime, and what else a worker's thread runs with it.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let task = {
    ///     let _entered = runtime.enter();
    ///     selvedge::spawn(async { 7 })
    /// };
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn enter(&self) -> EnterGuard<'_> {
        EnterGuard {
            _guard: scope::Guard::enter(self.clone()),
            handle: PhantomData,
            stays: PhantomData,
        }
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
        self.spawn_blocking_as(None, f, Location::caller())
    }

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
        let f = move || scope::within(In::Closure(&handle.shared), f);
        blocking::spawn(self, name, f, at)
    }

    /// Waits on this thread for a future, which may spawn tasks on this runtime.
    ///
    /// On any thread that may wait: one that is in a runtime by a guard of [`enter`](Self::enter) only, one that runs a closure of
    /// [`spawn_blocking`](Self::spawn_blocking), of this runtime or another, and a task inside [`block_in_place`](crate::block_in_place()). The future is polled on
    /// this thread, which sleeps while it waits. After the runtime's end that works as well, but what it spawns is cancelled.
    ///
    /// A future that is ready at its first poll costs no allocation, and two read-modify-writes on the runtime's
    /// count. Another one costs an allocation, for the parker, which its waker keeps.
    ///
    /// # Panics
    /// When the future panics; and where to wait would hold up others, of whatever runtime: in a task, in a hook for tasks or for parking, inside another `block_on`,
    /// while a local set is polled.
    ///
    /// Also when the future waits, and the runtime is or was shut down by a panic: see [`UnhandledPanic::Shutdown`](crate::UnhandledPanic::Shutdown).
    #[track_caller]
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        scope::assert_may_block_on();
        let budget = self.shared.settings.budget;
        scope::within(In::BlockOn(self.shared.clone()), || {
            let mut future = pin!(future);
            // Its own: a budget around this is not renewed before this returns.
            let polls =
                poll_fn(|cx| coop_budget::Scope::own(budget).run(|| future.as_mut().poll(cx)));
            let polls = pin!(polls);
            ThreadPark::block_on(unhandled::or_panic(&self.shared, polls))
        })
    }

    /// The value of a type that [`Builder::extend`](crate::Builder::extend) has put into the
    /// runtime. One read-modify-write, on the value's count.
    ///
    /// ```
    /// struct Region(&'static str);
    ///
    /// let runtime = selvedge::Builder::new().extend(Region("eu")).build()?;
    /// let region = runtime.spawn(async {
    ///     let region = selvedge::Handle::current().extension::<Region>();
    ///     region.unwrap().0
    /// });
    /// assert_eq!(runtime.block_on(region).unwrap(), "eu");
    /// assert!(runtime.handle().extension::<u32>().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<std::sync::Arc<T>> {
        self.shared.extensions.get()
    }

    /// Asks the time slice of a worker to end: the next operation of the task that it polls is
    /// refused, and the tasks behind that one have their turn. A task that asks for no operation
    /// goes on to the end of its poll. A monitor calls this for a worker whose slice is long. One
    /// exchange.
    ///
    /// Each time slice is of the tasks that a worker runs until a request; it then begins another.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).budget(selvedge::Budget::UNLIMITED).build()?;
    /// let handle = runtime.handle().clone();
    /// let task = runtime.spawn(async move {
    ///     handle.preempt(0);
    ///     selvedge::task::consume_budget().await; // It waits behind the others.
    /// });
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(runtime.metrics().slices_ended, 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// When there is no worker of that index: they are counted from 0.
    #[track_caller]
    pub fn preempt(&self, worker: usize) {
        let workers = self.shared.remotes.len();
        assert!(
            worker < workers,
            "a runtime of {workers} workers has no worker {worker}"
        );
        self.shared.slices.of(worker).request();
    }

    /// What the runtime has done so far.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let handle = runtime.handle().clone();
    /// runtime.spawn_detached(async {});
    /// drop(runtime);
    /// assert_eq!((handle.metrics().spawned, handle.metrics().live), (1, 0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> Snapshot {
        Snapshot::of(&self.shared)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("workers", &self.shared.remotes.len())
            .finish_non_exhaustive()
    }
}

/// There is no runtime here; see [`Handle::try_current`]. Its text says what to do.
///
/// ```
/// let error = selvedge::Handle::try_current().unwrap_err();
/// assert!(error.to_string().starts_with("this thread is in no runtime"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryCurrentError {
    in_local_set: bool,
}

impl fmt::Display for TryCurrentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.in_local_set {
            "this thread is in no runtime with workers, only in a LocalSet or LocalRuntime: \
             call `spawn_local` for a task of that, or enter a runtime by `Handle::enter` first"
        } else {
            "this thread is in no runtime: call this in a task, inside a runtime's block_on, \
             or while a guard of `Handle::enter` is held"
        })
    }
}

impl std::error::Error for TryCurrentError {}

/// A thread in a runtime; see [`Handle::enter`].
///
/// ```
/// use selvedge::Handle;
///
/// let runtime = selvedge::Runtime::new()?;
/// let guard: selvedge::EnterGuard<'_> = runtime.enter();
/// assert!(Handle::try_current().is_ok());
/// drop(guard);
/// assert!(Handle::try_current().is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// It is dropped by the thread that entered. A reference to it may go to other threads, where it
/// has no effect: they don't enter the runtime by it.
#[must_use = "the thread leaves the runtime when this is dropped"]
pub struct EnterGuard<'a> {
    _guard: scope::Guard,
    handle: PhantomData<&'a Handle>,
    /// It is to be dropped by its thread.
    stays: PhantomData<*mut ()>,
}

// SAFETY: a shared guard has no operation but `Debug`, which reads nothing of it. Its scope, which
// is of the thread that entered, is touched by the drop alone, and a guard is not `Send`.
unsafe impl Sync for EnterGuard<'_> {}

impl fmt::Debug for EnterGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EnterGuard")
    }
}
