//! What a runtime must offer to be measured. To add one: a file that implements [`Rt`], and a line in [`ALL`].
use crate::workload::{Sample, sample};
use std::{future::Future, io, time::Duration};

mod async_executor;
mod selvedge;
mod tokio;

/// A runtime with a number of worker threads.
///
/// Every runtime makes the same calls: a spawn whose handle is dropped so that the task goes on, or one whose
/// handle is awaited. Whoever has a cheaper way that other runtimes lack doesn't take it here.
pub(crate) trait Rt: Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;

    /// The package that it comes from.
    const PACKAGE: &'static str;

    /// Starts it.
    fn start(workers: usize) -> io::Result<Self>;

    /// Spawns from a thread that is no worker, and drops the handle.
    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static);

    /// Spawns from a thread that is no worker, and gives the handle.
    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// Spawns from a task, and drops the handle.
    fn spawn(future: impl Future<Output = ()> + Send + 'static);

    /// Spawns from a task, and gives the handle.
    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// The yield that its users are told to use.
    fn yield_now() -> impl Future<Output = ()> + Send;
}

/// A runtime by name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    /// Measures the named row with so many workers for so long; `None` if there is no such row.
    pub(crate) sample: fn(&str, usize, Duration) -> io::Result<Option<Sample>>,
}

impl Entry {
    const fn of<R: Rt>() -> Self {
        Self {
            name: R::NAME,
            package: R::PACKAGE,
            sample: sample::<R>,
        }
    }
}

/// The runtime that the others are compared with.
pub(crate) type Ours = selvedge::Selvedge;

/// All of them, ours first.
pub(crate) const ALL: &[Entry] = &[
    Entry::of::<Ours>(),
    Entry::of::<tokio::MultiThread>(),
    Entry::of::<async_executor::Plain>(),
    Entry::of::<async_executor::Static>(),
];
