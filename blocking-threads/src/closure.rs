//! Jobs with a result that a join handle returns. Each job is a task that is polled once.
use crate::Job;
use std::{
    any::Any,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use task_header::{Builder, JoinHandle, Notified, Ran, Schedule, TaskRef, WakeKind};

/// A future that runs a closure in its first poll. The closure may block.
#[derive(Debug)]
pub struct Once<F>(Option<F>);

impl<F> Once<F> {
    /// Creates the future of `f`.
    pub fn new(f: F) -> Self {
        Self(Some(f))
    }
}

impl<F> Unpin for Once<F> {}

impl<F: FnOnce() -> R, R> Future for Once<F> {
    type Output = R;

    /// # Panics
    /// If it is polled a second time. If the closure panics, the panic unwinds out of the first
    /// poll.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        match self.0.take() {
            Some(f) => Poll::Ready(f()),
            None => panic!("the future of a closure was polled after it gave its output"),
        }
    }
}

/// A job for a [`Pool`](crate::Pool). It polls a future once, and a join handle returns the output.
///
/// If the job is dropped before it has run, its task is cancelled. If the one poll returns
/// `Pending`, the next wake or abort cancels the task, and without one the join handle waits
/// forever.
///
/// ```
/// use blocking_threads::{Closure, Once, Pool, Settings};
///
/// let pool = Pool::new(Settings::default());
/// let (job, join) = Closure::new(Once::new(|| 6 * 7));
/// pool.submit(job).expect("the pool is open");
/// pool.close();
/// pool.wait(None);
/// assert!(join.is_finished()); // An `await` of it returns 42.
/// ```
#[derive(Debug)]
pub struct Closure<H: OnPanic = ()>(Notified<Never<H>>);

/// A hook for the panics of a closure.
///
/// The hook is called after a panic of the closure, of the drop of a closure that never ran, of the
/// drop of the output, or of the join waker. If the closure or its drop panicked, the payload goes
/// to the join handle after the call of the hook.
pub trait OnPanic: Send + Sync + 'static {
    /// Handles a panic, on the thread that caught the panic: a thread of the pool, the thread that
    /// closes the pool, or the thread that has the join handle. If this function panics, its panic
    /// is caught and dropped.
    fn panicked(&self, payload: &(dyn Any + Send));
}

/// Ignores the panic.
impl OnPanic for () {
    fn panicked(&self, _: &(dyn Any + Send)) {}
}

impl<H: OnPanic> OnPanic for Option<H> {
    fn panicked(&self, payload: &(dyn Any + Send)) {
        if let Some(hook) = self {
            hook.panicked(payload);
        }
    }
}

/// The scheduler of closures. A closure is queued once.
#[derive(Debug)]
struct Never<H>(H);

impl<H: OnPanic> Schedule for Never<H> {
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        // An abort calls this, or a wake of a future that was not ready, and only after the one run
        // has begun or ended.
        drop(task);
    }

    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        task.scheduler().0.panicked(payload);
    }
}

impl Closure {
    /// Creates a job, and the join handle that returns its output.
    pub fn new<F>(future: F) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Self::with_hook((), future)
    }
}

impl<H: OnPanic> Closure<H> {
    /// Creates a job like [`new`](Closure::new), with a hook for its panics.
    pub fn with_hook<F>(hook: H, future: F) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (task, join) = task_header::new(future, Never(hook));
        (Self(task), join)
    }

    /// Creates a job like [`with_hook`](Self::with_hook), whose task has a name and a location.
    pub fn named<F>(
        name: std::borrow::Cow<'static, str>,
        at: &'static std::panic::Location<'static>,
        hook: H,
        future: F,
    ) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let builder = Builder::new().name(name).location(at);
        let (task, join) = builder.spawn(future, Never(hook));
        (Self(task), join)
    }
}

impl<H: OnPanic> Job for Closure<H> {
    fn run(self) {
        // This polls the future once, and catches the panic of that poll.
        let (Ran::Complete | Ran::Pending | Ran::Notified(_)) = self.0.run();
    }
}
