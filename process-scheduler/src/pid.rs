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

    /// Returns the pid that stands for a whole node. A process that
    /// [monitors](crate::Handle::monitor_node) a node gets it in an
    /// [`Event::Exit`](crate::Event::Exit). No process has this pid.
    pub const fn of_node(node: u32) -> Self {
        Self::none(node)
    }

    /// Returns whether this pid stands for a whole node.
    pub fn is_of_node(self) -> bool {
        self == Self::of_node(self.node)
    }

    /// Returns the same process under another number of its node: for a relay between nodes that
    /// number each other differently.
    #[must_use]
    pub const fn with_node(self, node: u32) -> Self {
        Self { node, ..self }
    }

    /// Returns the pid as a number of 96 bits: the slot, the generation and, in the upper bits, the
    /// node.
    ///
    /// ```
    /// use process_scheduler::{Pid, Scheduler};
    ///
    /// let scheduler = Scheduler::new();
    /// let pid = scheduler.spawn_fn(|_: u32, _| ()).unwrap().pid();
    /// assert_eq!(Pid::from_bits(pid.to_bits()), Some(pid));
    /// assert_eq!(Pid::from_bits(0), None);
    /// ```
    pub const fn to_bits(self) -> u128 {
        self.slot as u128 | (self.generation.get() as u128) << 32 | (self.node as u128) << 64
    }

    /// Returns the pid with this number. `None` if no pid has it. The pid need not name a process.
    pub const fn from_bits(bits: u128) -> Option<Self> {
        match NonZeroU32::new((bits >> 32) as u32) {
            Some(generation) if bits >> 96 == 0 => Some(Self {
                slot: bits as u32,
                generation,
                node: (bits >> 64) as u32,
            }),
            _ => None,
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Pid {
    /// A tuple of three numbers: node, slot and generation.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (self.node, self.slot, self.generation).serialize(serializer)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Pid {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (node, slot, generation) = serde::Deserialize::deserialize(deserializer)?;
        Ok(Self {
            slot,
            generation,
            node,
        })
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{}.{}.{}>", self.node, self.slot, self.generation)
    }
}
