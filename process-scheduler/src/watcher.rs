//! The processes and threads that are notified of the end of a process.
use crate::{ExitReason, Pid, oneshot};

/// A process or thread that is notified when the process of a cell ends.
pub(crate) enum Watcher {
    Process(Pid),
    Thread(oneshot::Sender<ExitReason>),
}

impl Watcher {
    pub(crate) fn is_abandoned(&self) -> bool {
        matches!(self, Self::Thread(sender) if sender.is_abandoned())
    }
}
