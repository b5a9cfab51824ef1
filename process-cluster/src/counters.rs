//! The counters of a node.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

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
pub(crate) struct Counters {
    dead_letters: AtomicU64,
    invalid: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    pub(crate) fn dead_letter(&self) {
        // Ordering: Relaxed here and below, as they are only counts.
        self.dead_letters.fetch_add(1, Relaxed);
    }

    pub(crate) fn invalid(&self) {
        // Ordering: as above.
        self.invalid.fetch_add(1, Relaxed);
    }

    pub(crate) fn refused(&self) {
        // Ordering: as above.
        self.refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn snapshot(&self) -> ClusterMetrics {
        ClusterMetrics {
            // Ordering: Relaxed, as they are only counts.
            dead_letters: self.dead_letters.load(Relaxed),
            // Ordering: as above.
            invalid: self.invalid.load(Relaxed),
            // Ordering: as above.
            refused: self.refused.load(Relaxed),
        }
    }
}
