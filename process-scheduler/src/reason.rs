//! The reasons for which processes are cancelled, and for which they end.
use std::{fmt, sync::Arc};

/// The source of a request that a process should end.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CancelReason {
    /// A call of [`Handle::cancel`](crate::Handle::cancel).
    Requested,
    /// The shutdown of the scheduler.
    Shutdown,
    /// The supervisor of the process.
    Supervisor,
}

/// The reason for which a process ended, or for which it was not found.
///
/// ```
/// use process_scheduler::ExitReason;
///
/// assert!(!ExitReason::Normal.is_abnormal());
/// assert!(ExitReason::Killed.is_abnormal());
/// assert_eq!(ExitReason::failed("no route").to_string(), "failed: no route");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// It completed.
    Normal,
    /// It completed after it was cancelled.
    Cancelled,
    /// It was killed, or ignored the cancel of a shutdown.
    Killed,
    /// It failed. The text is the process's own description of the failure.
    Failed(Arc<str>),
    /// It panicked. The text is the panic's message.
    Panicked(Arc<str>),
    /// There was no such process.
    NoProcess,
    /// Its node cannot be reached.
    NodeDown,
}

impl ExitReason {
    /// Makes the reason of a failure.
    pub fn failed(why: impl fmt::Display) -> Self {
        Self::Failed(why.to_string().into())
    }

    /// Returns whether, after an end for this reason, linked processes end too and a transient
    /// child is restarted.
    pub fn is_abnormal(&self) -> bool {
        !matches!(self, Self::Normal | Self::Cancelled)
    }

    pub(crate) fn panicked(panic: &(dyn std::any::Any + Send)) -> Self {
        let said = panic.downcast_ref::<String>().map(String::as_str);
        let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
        Self::Panicked(said.unwrap_or("a value that is not a string").into())
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Normal => f.write_str("normal"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::Killed => f.write_str("killed"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Panicked(why) => write!(f, "panicked: {why}"),
            Self::NoProcess => f.write_str("no such process"),
            Self::NodeDown => f.write_str("node down"),
        }
    }
}
