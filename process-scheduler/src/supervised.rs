//! The values that a restart of a child needs. The supervisor has some of them, and the child's
//! cell has all.
use crate::{ExitReason, Input, Pid, Policy};
use std::{panic::Location, sync::Arc};

/// The settings by which a supervisor restarts a child.
pub(crate) struct RestartSettings<P> {
    pub(crate) supervisor: Pid,
    pub(crate) policy: Policy,
    /// Whether the messages in the mailbox outlast a restart.
    pub(crate) keep_mail: bool,
    /// Makes the process of an incarnation.
    pub(crate) make: Arc<dyn Fn() -> P + Send + Sync>,
    /// The place in the code where the child was made.
    pub(crate) made_at: &'static Location<'static>,
}

/// All that a restart needs: the supervisor's settings, and the values with which the child was
/// spawned.
pub(crate) struct Restart<P> {
    pub(crate) child: RestartSettings<P>,
    pub(crate) method: String,
    pub(crate) input: Option<Arc<dyn Fn() -> Input + Send + Sync>>,
    /// The reason for which the last incarnation ended.
    pub(crate) last_exit: ExitReason,
}
