//! Signals: the events of a process that are not messages.
use crate::{CancelReason, ExitReason, Pid};

/// A signal to a process: an event that is not a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Clean up and end.
    Cancel(CancelReason),
    /// End before the next step.
    Kill,
    /// A process has ended.
    Exit {
        /// The process that ended.
        pid: Pid,
        /// The reason of its end.
        reason: ExitReason,
        /// Whether the process that ended was linked, and not only monitored.
        linked: bool,
    },
    /// Notify another process when this one ends.
    Monitor {
        /// The process to notify.
        by: Pid,
    },
    /// No longer notify another process of this one's end.
    Demonitor {
        /// The process that is not notified any more.
        by: Pid,
    },
    /// Monitor another process. A node sends this signal if it is asked to make a process of
    /// another node a monitor.
    Watch {
        /// The process to monitor.
        target: Pid,
    },
    /// No longer monitor another process.
    Unwatch {
        /// The process that is not monitored any more.
        target: Pid,
    },
    /// Link this process to another. Each of the two gets such a signal.
    Link {
        /// The other process.
        with: Pid,
    },
    /// End a link.
    Unlink {
        /// The other process.
        with: Pid,
    },
}
