//! Ours.
use super::Rt;
use std::future::Future;

pub(crate) struct Selvedge(selvedge::Runtime);

impl Rt for Selvedge {
    fn new(workers: usize) -> Self {
        Self(
            selvedge::Builder::new()
                .workers(workers)
                .build()
                .expect("threads start"),
        )
    }

    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.0.spawn(future));
    }

    fn spawn(future: impl Future<Output = ()> + Send + 'static) {
        drop(selvedge::spawn(future));
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        selvedge::yield_now()
    }
}
