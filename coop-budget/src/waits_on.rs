//! The event that an operation waits for, as it says to a [`watch`](crate::watch).
use std::{
    borrow::Cow,
    fmt,
    time::{Duration, Instant},
};

/// The event that an operation waits for, as it says to a [`watch`](crate::watch).
///
/// Tasks are named by a number that the runtime chooses. Locks and channels are named by an
/// address, which says no more than which waits are for the same one. No value of the program is in
/// it, so a report of waits shows no payload. `Display` writes the words that follow "awaits".
///
/// ```
/// use coop_budget::WaitsOn;
///
/// let lock = WaitsOn::Lock { kind: "a mutex", at: 0x10, holder: Some(0x20) };
/// assert_eq!(lock.to_string(), "a mutex 0x10, held by task 0x20");
/// assert_eq!(lock.task(), Some(0x20));
/// assert_eq!(WaitsOn::from("rain").to_string(), "rain");
/// assert_eq!(WaitsOn::Event { what: "a message of a channel", at: 0x30 }.task(), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitsOn {
    /// The end of a task.
    Task(u64),
    /// A lock.
    Lock {
        /// The kind of the lock, and of the entry: "a mutex".
        kind: &'static str,
        /// The address of the lock.
        at: usize,
        /// A task that holds the lock: the one that has acquired it, or one of them. `None` if the
        /// holder is no task of a runtime that lists its tasks, or is not known.
        ///
        /// The lock says the number of [`poll_as`](crate::poll_as). The runtime that shows the wait
        /// puts the number in its place that [`Task`](Self::Task) has.
        holder: Option<u64>,
    },
    /// An event of a value, such as a message of a channel, or a permit of a semaphore.
    Event {
        /// The event, and the kind of the value: "a message of a channel".
        what: &'static str,
        /// The address of the value.
        at: usize,
    },
    /// A descriptor of the operating system, for example of a socket.
    Descriptor {
        /// The descriptor.
        fd: i64,
        /// The state that it is to have: "readable".
        state: &'static str,
    },
    /// A time.
    Time {
        /// The time, by the clock of the timer, which a test may have paused.
        deadline: Instant,
        /// The time until then, when the operation noted its wait.
        left: Duration,
    },
    /// Another event, in words.
    Other(Cow<'static, str>),
}

impl WaitsOn {
    /// Returns an event of the value at an address.
    ///
    /// ```
    /// let cell = 7;
    /// let event = coop_budget::WaitsOn::event("a change of a cell", &cell);
    /// assert!(event.to_string().starts_with("a change of a cell 0x"));
    /// ```
    pub fn event<T: ?Sized>(what: &'static str, of: &T) -> Self {
        let at = std::ptr::from_ref(of).addr();
        Self::Event { what, at }
    }

    /// Returns the task without which the wait does not end: the one that is to end, or that holds
    /// the lock.
    pub fn task(&self) -> Option<u64> {
        match *self {
            Self::Task(task) => Some(task),
            Self::Lock { holder, .. } => holder,
            _ => None,
        }
    }
}

impl fmt::Display for WaitsOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(task) => write!(f, "the end of task {task:#x}"),
            Self::Lock { kind, at, holder } => {
                write!(f, "{kind} {at:#x}")?;
                holder.map_or(Ok(()), |task| write!(f, ", held by task {task:#x}"))
            }
            Self::Event { what, at } => write!(f, "{what} {at:#x}"),
            Self::Descriptor { fd, state } => write!(f, "descriptor {fd} to be {state}"),
            Self::Time { left, .. } => write!(f, "a timer, which ends in {left:.1?}"),
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl From<&'static str> for WaitsOn {
    fn from(what: &'static str) -> Self {
        Self::Other(what.into())
    }
}

impl From<String> for WaitsOn {
    fn from(what: String) -> Self {
        Self::Other(what.into())
    }
}
