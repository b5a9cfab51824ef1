//! tokio's multi-thread runtime.
use super::Rt;
use std::future::Future;

pub(crate) struct Tokio(tokio::runtime::Runtime);

impl Rt for Tokio {
    fn new(workers: usize) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        Self(
            builder
                .worker_threads(workers)
                .build()
                .expect("threads start"),
        )
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(future));
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        drop(tokio::spawn(future));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}
