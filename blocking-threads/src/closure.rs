//! A closure as a task: its handle is awaited, and is told of its panic or that it never began.
use crate::Job;
use std::{
    any::Any,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use task_header::{Builder, JoinHandle, Notified, Ran, Schedule, TaskRef, WakeKind};

/// A closure as a future that is done in one poll, which blocks.
#[derive(Debug)]
pub struct Once<F>(Option<F>);

impl<F> Once<F> {
    /// The future of `f`.
    pub fn new(f: F) -> Self {
        Self(Some(f))
    }
}

impl<F> Unpin for Once<F> {}

impl<F: FnOnce() -> R, R> Future for Once<F> {
    type Output = R;

    /// # Panics
    /// When polled again after it gave its output; and when the closure does.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        match self.0.take() {
            Some(f) => Poll::Ready(f()),
            None => panic!("the future of a closure was polled after it gave its output"),
        }
    }
}

/// A job that is the one poll of a task, for [`Pool`](crate::Pool)s. One that is dropped before it has begun cancels its task.
///
/// ```
/// use blocking_threads::{Closure, Once, Pool, Settings};
/// use sync_shim::sync::Arc;
///
/// let pool = Arc::new(Pool::new(Settings::default()));
/// let (job, join) = Closure::new(Once::new(|| 6 * 7));
/// Pool::submit(&pool, job).expect("it is open");
/// pool.close();
/// pool.wait(None);
/// assert!(join.is_finished()); // To be awaited, for 42.
/// ```
#[derive(Debug)]
pub struct Closure<H: OnPanic = ()>(Notified<Never<H>>);

/// Who hook of the panics of a closure: of its run, of its drop if it never began, of its output's drop, and of the waker that waits for it. What the first
/// two carry goes to the handle after that.
pub trait OnPanic: Send + Sync + 'static {
    /// Called by the thread that has caught it: one of the pool, the one that closes it, or the handle's. A panic of this is dropped.
    fn panicked(&self, payload: &(dyn Any + Send));
}

/// Nobody.
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

/// The scheduler of closures: they are queued once, and never woken.
#[derive(Debug)]
struct Never<H>(H);

impl<H: OnPanic> Schedule for Never<H> {
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        // Only an abort gets here, and only after the closure's one run has begun or ended.
        drop(task);
    }

    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        task.scheduler().0.panicked(payload);
    }
}

impl Closure {
    /// A job, and the handle to wait for it.
    pub fn new<F>(future: F) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Self::with_hook((), future)
    }
}

impl<H: OnPanic> Closure<H> {
    /// As [`new`](Closure::new), with somebody who hook of its panics.
    pub fn with_hook<F>(hook: H, future: F) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (task, join) = task_header::new(future, Never(hook));
        (Self(task), join)
    }

    /// As [`with_hook`](Self::with_hook), of a task with a name, spawned somewhere.
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
        // The future is done in one poll, and its panic caught there.
        let (Ran::Complete | Ran::Pending | Ran::Notified(_)) = self.0.run();
    }
}
