//! A way into a runtime that is cheap to clone and outlives it harmlessly.
use crate::{
    Snapshot, block_on,
    blocking::Pool,
    context::{self, with_worker},
    shared::{Scheduler, Shared},
};
use std::{fmt, future::Future};
use sync_shim::sync::Arc;
use task_header::JoinHandle;

/// Spawns tasks on a runtime from anywhere. It doesn't keep the runtime running: a spawn after its
/// end gives a handle whose task is cancelled.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

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
    /// # Panics
    /// Outside a runtime. [`try_current`](Self::try_current) doesn't.
    pub fn current() -> Self {
        Self::try_current().expect("no runtime here: call this in a task or inside block_on")
    }

    /// The runtime that this thread is in, if any.
    pub fn try_current() -> Option<Self> {
        context::current()
    }

    /// Spawns a task; see [`Runtime::spawn`](crate::Runtime::spawn).
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let mut future = Some(future);
        self.on_own_worker(|local| local.spawn(future.take().expect("spawned once")))
            .unwrap_or_else(|| {
                let future = future.take().expect("spawned once");
                let (task, join) = task_header::new(future, Scheduler::of(&self.shared));
                self.shared.inject(task);
                join
            })
    }

    /// Spawns a task that nobody waits for; see [`Runtime::spawn`](crate::Runtime::spawn).
    pub fn spawn_detached<F>(&self, future: F)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let mut future = Some(future);
        self.on_own_worker(|local| local.spawn_detached(future.take().expect("spawned once")))
            .unwrap_or_else(|| {
                let future = future.take().expect("spawned once");
                self.shared.inject(task_header::new_detached(
                    future,
                    Scheduler::of(&self.shared),
                ));
            });
    }

    fn on_own_worker<R>(&self, f: impl FnOnce(&context::Local) -> R) -> Option<R> {
        with_worker(|local| Arc::ptr_eq(&local.shared, &self.shared).then(|| f(local))).flatten()
    }

    /// Runs `f` on a thread for blocking work; see [`Runtime::spawn_blocking`](crate::Runtime::spawn_blocking).
    pub fn spawn_blocking<F, R>(&self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let handle = self.clone();
        Pool::spawn(&self.shared.blocking, move || {
            context::enter_blocking(handle, f)
        })
    }

    /// Waits on this thread for a future; see [`Runtime::block_on`](crate::Runtime::block_on).
    ///
    /// # Panics
    /// When the thread is in a runtime already, or the future panics.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        context::enter(self, || block_on::block_on(future))
    }

    /// What the runtime has done so far.
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
