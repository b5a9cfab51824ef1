//! The state of a process, as `inspect` returns it.
use crate::{Phase, Pid};

/// The state of any process. See [`Handle::inspect`](crate::Handle::inspect).
///
/// ```
/// use process_scheduler::{Phase, Scheduler, Spawn};
///
/// let scheduler = Scheduler::new();
/// let spawn = Spawn::new().name("clerk");
/// let clerk = scheduler.spawn_with(spawn, |_: u8, _| ()).unwrap();
/// let info = scheduler.inspect(clerk.pid()).unwrap();
/// assert_eq!(info.names, ["clerk"]);
/// assert_ne!(info.phase, Phase::Done);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// The pid.
    pub pid: Pid,
    /// The phase of its life.
    pub phase: Phase,
    /// The name of its type, before upgrades.
    pub kind: &'static str,
    /// Its names.
    pub names: Vec<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// The processes that it is linked to.
    pub links: Vec<Pid>,
    /// Its supervisor.
    pub supervisor: Option<Pid>,
    /// The number of messages in its mailbox. `None` if the mailbox is unbounded and not empty.
    pub messages: Option<usize>,
    /// The number of its restarts.
    pub restarts: u32,
}
