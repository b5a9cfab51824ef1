//! A closure as a task: its handle is awaited, and is told of its panic or that it never began.
use crate::Job;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use task_header::{Builder, JoinHandle, Notified, Ran, Schedule, WakeKind};

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

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        let f = self
            .0
            .take()
            .expect("a future that is done is polled no more");
        Poll::Ready(f())
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
pub struct Closure(Notified<Never>);

/// The scheduler of closures: they are queued once, and never woken.
#[derive(Debug)]
struct Never;

impl Schedule for Never {
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        // Only an abort gets here, and only after the closure's one run has begun or ended.
        drop(task);
    }
}

impl Closure {
    /// A job, and the handle to wait for it.
    pub fn new<F>(future: F) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (task, join) = task_header::new(future, Never);
        (Self(task), join)
    }

    /// As [`new`](Self::new), of a task with a name, spawned somewhere.
    pub fn named<F>(
        name: std::borrow::Cow<'static, str>,
        at: &'static std::panic::Location<'static>,
        future: F,
    ) -> (Self, JoinHandle<F::Output>)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (task, join) = Builder::new().name(name).location(at).spawn(future, Never);
        (Self(task), join)
    }
}

impl Job for Closure {
    fn run(self) {
        // The future is done in one poll, and its panic caught there.
        let (Ran::Complete | Ran::Pending | Ran::Notified(_)) = self.0.run();
    }
}
