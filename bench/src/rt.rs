//! What a runtime must offer to be measured. To add one: a file that implements [`Rt`], and a line in [`ALL`].
use crate::workload::{Sample, sample};
use std::future::Future;

mod async_executor;
mod selvedge;
mod tokio;

/// A runtime with a number of worker threads. Every one makes the same call: spawn, and drop the handle.
pub(crate) trait Rt: Sized {
    /// Starts it.
    fn new(workers: usize) -> Self;

    /// Spawns from a thread that is no worker.
    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static);

    /// Spawns from a task.
    fn spawn(future: impl Future<Output = ()> + Send + 'static);

    /// The runtime's own yield.
    fn yield_now() -> impl Future<Output = ()> + Send;
}

type Measure = fn(&str, usize, u64) -> Option<Sample>;

/// The runtimes by name, ours first.
pub(crate) const ALL: &[(&str, Measure)] = &[
    ("selvedge", sample::<selvedge::Selvedge>),
    ("tokio", sample::<tokio::Tokio>),
    ("async-executor", sample::<async_executor::Static>),
];
