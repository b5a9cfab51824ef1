//! The token of a ready process, as the queues carry it and a worker runs it.
use crate::metrics::{self, WorkerCounters};
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

/// The steps of a process before the worker looks for another.
pub(crate) struct RunSlice<'a> {
    pub(crate) steps_left: u32,
    pub(crate) messages: u32,
    pub(crate) counters: &'a WorkerCounters,
}

impl RunSlice<'_> {
    #[inline]
    pub(crate) fn count_step(&self) {
        metrics::add(&self.counters.steps, 1);
    }

    #[inline]
    pub(crate) fn count_delivered(&self, n: u32) {
        if n > 0 {
            metrics::add(&self.counters.delivered, n.into());
        }
    }

    pub(crate) fn count_panic(&self) {
        metrics::add(&self.counters.panics, 1);
    }
}
