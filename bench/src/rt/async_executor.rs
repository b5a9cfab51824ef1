//! async-executor's static executor, with as many threads as asked for.
use super::Rt;
use async_executor::StaticExecutor;
use std::{future::Future, thread};

static EXECUTOR: StaticExecutor = StaticExecutor::new();

pub(crate) struct Static;

impl Rt for Static {
    fn new(workers: usize) -> Self {
        for _ in 0..workers {
            // They run as long as the process, which is one sample's.
            thread::spawn(|| {
                futures_lite::future::block_on(EXECUTOR.run(std::future::pending::<()>()))
            });
        }
        Self
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(future).detach();
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        EXECUTOR.spawn(future).detach();
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        futures_lite::future::yield_now()
    }
}
