//! The counters of a node.
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counters of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClusterMetrics {
    /// Messages of other nodes that no process took: it had ended, its mailbox was full, or this
    /// node has no such codec; and messages of this node that were too large when they were
    /// encoded.
    pub dead_letters: u64,
    /// Frames that are no frames of this version, and messages that did not decode.
    pub invalid: u64,
    /// Nodes and signals that were not admitted or allowed.
    pub refused: u64,
}

#[derive(Default)]
pub(crate) struct Counters(Mutex<ClusterMetrics>);

impl Counters {
    fn lock(&self) -> MutexGuard<'_, ClusterMetrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn dead_letter(&self) {
        self.lock().dead_letters += 1;
    }

    pub(crate) fn invalid(&self) {
        self.lock().invalid += 1;
    }

    pub(crate) fn refused(&self) {
        self.lock().refused += 1;
    }

    pub(crate) fn snapshot(&self) -> ClusterMetrics {
        *self.lock()
    }
}
