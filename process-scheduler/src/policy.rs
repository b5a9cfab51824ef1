//! When a supervisor restarts a child.
use crate::ExitReason;

/// When a child is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Policy {
    /// Whenever the child ends.
    Permanent,
    /// When the child ends abnormally.
    Transient,
    /// Never.
    Temporary,
}

impl Policy {
    pub(crate) fn restarts(self, reason: &ExitReason) -> bool {
        match self {
            Self::Permanent => true,
            Self::Transient => reason.is_abnormal(),
            Self::Temporary => false,
        }
    }
}
