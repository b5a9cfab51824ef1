//! The parts of a restart, which a supervisor and the cell of its child keep.
use crate::{ExitReason, Input, Pid, Policy};
use std::{panic::Location, sync::Arc};

/// How a supervisor keeps a child.
pub(crate) struct Supervised<P> {
    pub(crate) supervisor: Pid,
    pub(crate) policy: Policy,
    pub(crate) keep_mail: bool,
    pub(crate) make: Arc<dyn Fn() -> P + Send + Sync>,
    /// The place in the code where the child was made.
    pub(crate) at: &'static Location<'static>,
}

/// How a child is restarted: the supervisor's part, and what the child was spawned with.
pub(crate) struct Restart<P> {
    pub(crate) child: Supervised<P>,
    pub(crate) method: String,
    pub(crate) input: Option<Arc<dyn Fn() -> Input + Send + Sync>>,
    /// The reason for which the last incarnation ended.
    pub(crate) last: ExitReason,
}
