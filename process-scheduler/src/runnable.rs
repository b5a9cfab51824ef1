//! The token of a ready process, as the queues carry it and a worker runs it.
use crate::metrics::WorkerCounters;
use std::sync::Arc;

/// A process that a worker can run, whatever its types are.
pub(crate) trait Run: Send + Sync {
    /// Runs the process until it waits, ends, or has used up the slice of steps. Returns the token
    /// if the process must run again: it has used up the slice, or an event came as it began to
    /// wait.
    fn run(self: Arc<Self>, slice: &mut RunSlice<'_>) -> Option<Runnable>;
}

/// The right to run a process: its token (`core.rs`). Each process has one.
pub(crate) struct Runnable(pub(crate) Arc<dyn Run>);

impl Runnable {
    /// The address of the process, to be compared.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// The steps that a process may make before its worker looks for another process.
pub(crate) struct RunSlice<'a> {
    pub(crate) steps_left: u32,
    /// How many messages a step gets.
    pub(crate) messages: u32,
    /// The counters of the worker.
    pub(crate) counters: &'a WorkerCounters,
}
