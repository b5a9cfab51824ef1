//! What a runtime must offer to be measured. To add one: a file that implements [`Rt`], a line in [`ALL`], and its name in `names.rs`.
use crate::workload::{Sample, sample};
use std::{
    future::Future,
    io,
    task::{Context, Poll},
    time::Duration,
};

mod async_executor;
mod futures;
mod nexosim;
mod selvedge;
mod smol;
mod tokio;
mod tokio_current;

/// What a row may ask of a runtime beside spawning from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Spawning from a task.
    Inside,
    /// Handles to await.
    Join,
    /// A yield that lets the tasks run that wait.
    Fair,
    /// Workers of its own, which run tasks while the measuring thread does something else.
    Background,
    /// Threads for work that blocks.
    Blocking,
    /// A budget of operations a poll.
    Budget,
    /// A drop that ends its threads.
    Stop,
}

/// A runtime with a number of worker threads.
///
/// Every runtime makes the same calls: a spawn whose handle is dropped so that the task goes on, or one whose
/// handle is awaited. Whoever has a cheaper way that other runtimes lack doesn't take it here.
pub(crate) trait Rt: Sized + 'static {
    /// Its name on the command line.
    const NAME: &'static str;

    /// The package that it comes from.
    const PACKAGE: &'static str;

    /// Whether it uses as many processors as it is given. One that doesn't is no rival in a row for two, but shows
    /// what one costs.
    const PARALLEL: bool = true;

    /// What it can't do, at least not through what it publishes. Rows that ask for it leave it out.
    const LACKS: &'static [Ask] = &[];

    /// Starts it.
    fn start(workers: usize) -> io::Result<Self>;

    /// Spawns from a thread that is no worker, and drops the handle.
    fn spawn_outside(&self, future: impl Future<Output = ()> + Send + 'static);

    /// Runs what was spawned, on this thread if the runtime has none of its own.
    fn drive(&self) {}

    /// [`Ask::Join`]: spawns from a thread that is no worker, and gives the handle.
    fn join_outside<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// [`Ask::Inside`]: spawns from a task, and drops the handle.
    fn spawn(future: impl Future<Output = ()> + Send + 'static);

    /// [`Ask::Join`]: spawns from a task, and gives the handle.
    fn join<T: Send + 'static>(
        future: impl Future<Output = T> + Send + 'static,
    ) -> impl Future<Output = T> + Send;

    /// The yield that its users are told to use.
    fn yield_now() -> impl Future<Output = ()> + Send;

    /// [`Ask::Blocking`]: runs what blocks on a thread for that.
    fn blocking<T: Send + 'static>(
        work: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + Send {
        drop(work);
        lacking()
    }

    /// [`Ask::Budget`]: takes one operation of the budget, pending if none is left.
    fn proceed(_: &mut Context<'_>) -> Poll<()> {
        unreachable!("{} says that it has no budget", Self::NAME)
    }
}

/// In place of what a runtime says that it lacks.
async fn lacking<T>() -> T {
    unreachable!("a row that asks for it leaves the runtime out")
}

/// A runtime by name.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) parallel: bool,
    pub(crate) lacks: &'static [Ask],
    /// Measures the named row with so many workers for so long; `None` if there is no such row, or the runtime lacks
    /// what it asks for.
    pub(crate) sample: fn(&str, usize, Duration) -> io::Result<Option<Sample>>,
}

impl Entry {
    const fn of<R: Rt>() -> Self {
        Self {
            name: R::NAME,
            package: R::PACKAGE,
            parallel: R::PARALLEL,
            lacks: R::LACKS,
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
    Entry::of::<tokio_current::CurrentThread>(),
    Entry::of::<async_executor::Plain>(),
    Entry::of::<async_executor::Static>(),
    Entry::of::<smol::Smol>(),
    Entry::of::<futures::Pool>(),
    Entry::of::<nexosim::NeXosim>(),
];
