//! futures' `ThreadPool`: one queue under one lock for all threads. Tasks reach the pool through a
//! static. Users would pass a clone of the pool instead.
use super::{Ask, Rt};
use futures::{
    executor::{ThreadPool, ThreadPoolBuilder},
    task::SpawnExt,
};
use std::{future::Future, io, sync::OnceLock};

static POOL: OnceLock<ThreadPool> = OnceLock::new();

pub(crate) struct Pool;

fn pool() -> &'static ThreadPool {
    POOL.get().expect("it was started")
}

fn join<T: Send + 'static>(
    future: impl Future<Output = T> + Send + 'static,
) -> impl Future<Output = T> + Send {
    let task = pool().spawn_with_handle(future);
    task.expect("a pool takes every task")
}

impl Rt for Pool {
    const NAME: &'static str = "futures-threadpool";
    const PACKAGE: &'static str = "futures-executor";
    /// The pool polls a task that wakes itself again at once, even if other tasks wait. So a yield
    /// costs little and lets no other task run: the pool lacks `Fair`. The threads outlive the
    /// pool's drop: it lacks `Stop`.
    const LACKS: &'static [Ask] = &[
        Ask::Net,
        Ask::Http,
        Ask::Hyper,
        Ask::Foreign,
        Ask::Fair,
        Ask::Blocking,
        Ask::Budget,
        Ask::Stop,
        Ask::Timers,
        Ask::Files,
    ];

    fn start(workers: usize) -> io::Result<Self> {
        let pool = ThreadPoolBuilder::new().pool_size(workers).create()?;
        // A process that takes a sample starts one pool. Tests that start several share the first.
        POOL.get_or_init(|| pool);
        Ok(Self)
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        pool().spawn_ok(future);
    }

    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        join(future)
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        pool().spawn_ok(future);
    }

    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        join(future)
    }

    /// futures has no yield, so this is futures-lite's.
    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}
