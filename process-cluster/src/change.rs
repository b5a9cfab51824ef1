//! The changes that a node sees: nodes that come and go, and names that are lost.
use process_scheduler::Pid;
use std::fmt;

/// A change that [`Builder::on_change`](crate::Builder::on_change) tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeChange {
    /// A node is reached.
    Up {
        /// Its number in pids on this node.
        node: u32,
        /// Its name.
        name: String,
    },
    /// A node is not reached any more.
    Down {
        /// Its number in pids on this node.
        node: u32,
        /// The reason.
        why: NodeLoss,
    },
    /// A process of this node has lost its name to one of a node with an older incarnation: both
    /// had registered it at once, or on two sides of a split.
    NameLost {
        /// The name.
        name: String,
        /// The process that had it here.
        pid: Pid,
    },
}

/// Why a node is not reached any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NodeLoss {
    /// It has left.
    Left,
    /// Its transport has ended.
    Disconnected,
    /// It was not heard for the time of a lease.
    Lease,
    /// A frame was lost on the way.
    Gap,
    /// It began a new session, or was started again.
    Restarted,
    /// Too much is on its way to it.
    Overflow,
    /// This node has left.
    Here,
}

impl fmt::Display for NodeLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "it has left",
            Self::Disconnected => "its transport has ended",
            Self::Lease => "it was not heard for the time of a lease",
            Self::Gap => "a frame was lost on the way",
            Self::Restarted => "it began a new session",
            Self::Overflow => "too much is on its way to it",
            Self::Here => "this node has left",
        })
    }
}
