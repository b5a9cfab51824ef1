//! The two runtimes under the rows.
use std::{future::Future, io, pin::Pin};

/// The future of a sample, which one of the two runtimes runs as a task.
pub(crate) type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The calls of a runtime that workloads make.
pub(crate) trait Rt: 'static {
    /// Spawns a task, and returns a future of its end.
    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> impl Future<Output = ()> + Send;
    /// Lets other tasks run.
    fn yield_now() -> impl Future<Output = ()> + Send;
}

pub(crate) struct OnSelvedge;

impl Rt for OnSelvedge {
    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> impl Future<Output = ()> + Send {
        let task = selvedge::spawn(work);
        async { task.await.expect("a task of a row does not panic") }
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        selvedge::task::yield_now()
    }
}

pub(crate) struct OnTokio;

impl Rt for OnTokio {
    fn spawn(work: impl Future<Output = ()> + Send + 'static) -> impl Future<Output = ()> + Send {
        let task = tokio::spawn(work);
        async { task.await.expect("a task of a row does not panic") }
    }

    fn yield_now() -> impl Future<Output = ()> + Send {
        tokio::task::yield_now()
    }
}

/// Names of the runtimes, in the order of a peer's functions.
pub(crate) const NAMES: [&str; 2] = ["selvedge", "tokio"];

/// Both runtimes, with as many workers. The one that runs no sample sleeps.
pub(crate) struct Pair {
    selvedge: selvedge::Runtime,
    tokio: tokio::runtime::Runtime,
}

impl Pair {
    pub(crate) fn new(workers: usize) -> io::Result<Self> {
        Ok(Self {
            // A task that always finds a message may poll for long where its channel charges no
            // budget.
            selvedge: selvedge::Builder::new()
                .workers(workers)
                .stall_reports_per_minute(0)
                .build()?,
            tokio: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(workers)
                .build()?,
        })
    }

    /// Runs the future as a task of one of the runtimes, until it ends.
    pub(crate) fn run(&self, on: usize, work: Work) {
        match on {
            0 => self
                .selvedge
                .block_on(async { OnSelvedge::spawn(work).await }),
            _ => self.tokio.block_on(async { OnTokio::spawn(work).await }),
        }
    }
}
