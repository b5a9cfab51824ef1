//! The names of processes.
use std::{fmt, num::NonZeroU32};

/// Names a process: a slot, the slot's generation, and the node.
///
/// A pid never names a later process: the generation of a slot changes when its process ends, and a
/// slot that has used all generations is not used again. 12 bytes, also in an `Option`.
///
/// ```
/// use process_scheduler::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let counter = scheduler.spawn_fn(|_: u32, _| ()).unwrap();
/// assert_eq!(counter.pid().node(), 0);
/// assert_ne!(scheduler.spawn_fn(|_: u32, _| ()).unwrap().pid(), counter.pid());
/// println!("{}", counter.pid()); // <0.0.1>
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid {
    pub(crate) slot: u32,
    pub(crate) generation: NonZeroU32,
    pub(crate) node: u32,
}

impl Pid {
    /// Returns the pid of a cell that has no slot yet. No process has this pid.
    pub(crate) const fn none(node: u32) -> Self {
        Self {
            slot: u32::MAX,
            generation: NonZeroU32::MAX,
            node,
        }
    }

    /// Returns the node on which the process runs.
    pub fn node(self) -> u32 {
        self.node
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}.{}.{}>", self.node, self.slot, self.generation)
    }
}
