//! Routes to processes on other nodes.
use crate::{
    CancelReason, ExitReason, Handle, Pid, SendError,
    guard::Guarded,
    lane::{Key, Taken},
};
use std::{
    any::Any,
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Carries parcels to other nodes.
///
/// A pid names a node. A scheduler passes parcels for a pid of another node to its relay (see
/// [`Builder::relay`](crate::Builder::relay)). On that node, the relay passes them to
/// [`Handle::deliver`]. When the relay can no longer reach a node, it calls [`Handle::node_down`]
/// on the schedulers of the other nodes.
///
/// ```
/// use process_scheduler::{Parcel, Pid, Relay};
///
/// /// Reaches no node.
/// struct Nowhere;
///
/// impl Relay for Nowhere {
///     fn deliver(&self, _to: Pid, parcel: Parcel) -> Result<(), Parcel> {
///         Err(parcel)
///     }
/// }
/// ```
pub trait Relay: Send + Sync + 'static {
    /// Sends a parcel on its way, without waiting.
    ///
    /// If this function calls [`Handle::deliver`] of the other node, that may call a relay again
    /// before it returns, also this one. So hold no lock during the call.
    ///
    /// # Errors
    /// Hands the parcel back if the relay does not know how to reach the node. It also does so if
    /// it knows that the node does not accept the parcel: see [`Handle::deliver`]. The sender of a
    /// message then gets [`SendError::NotFound`], even if the mailbox was only full.
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), Parcel>;
}

impl<R: Relay> Relay for Guarded<R> {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), Parcel> {
        (**self).deliver(to, parcel)
    }
}

/// A parcel for another node.
#[non_exhaustive]
pub enum Parcel {
    /// A message, for the mailbox of a process.
    Message(Box<dyn Any + Send>),
    /// A signal.
    Signal(Signal),
}

impl fmt::Debug for Parcel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(_) => f.write_str("Message(..)"),
            Self::Signal(signal) => f.debug_tuple("Signal").field(signal).finish(),
        }
    }
}

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
    /// Monitor another process. A node sends this if it makes the monitor for a process that is not
    /// its own.
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

/// A relay between schedulers of one program, for tests.
///
/// ```
/// use process_scheduler::{Loopback, Scheduler};
///
/// let loopback = Loopback::new();
/// let here = Scheduler::builder().node(1).relay(loopback.clone()).build();
/// let there = Scheduler::builder().node(2).relay(loopback.clone()).build();
/// loopback.connect(&here);
/// loopback.connect(&there);
///
/// let (sender, seen) = std::sync::mpsc::channel();
/// let far = there.spawn_fn(move |n: u32, _| sender.send(n).unwrap()).unwrap();
/// here.try_send(far.pid(), 7_u32).unwrap();
/// assert_eq!(seen.recv(), Ok(7));
///
/// loopback.disconnect(2);
/// assert!(here.try_send(far.pid(), 8_u32).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loopback {
    nodes: Arc<Mutex<HashMap<u32, Handle>>>,
}

impl Loopback {
    /// Creates a relay without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a scheduler under its node's number. The relay keeps the handle until
    /// [`disconnect`](Self::disconnect), and the scheduler keeps the relay: without a `disconnect`
    /// neither is freed.
    pub fn connect(&self, handle: &Handle) {
        let node = handle.node();
        let old = self.nodes().insert(node, handle.clone());
        drop(old);
    }

    /// Removes a node, and calls [`Handle::node_down`] on all others.
    pub fn disconnect(&self, node: u32) {
        let mut nodes = self.nodes();
        let old = nodes.remove(&node);
        let others: Vec<_> = nodes.values().cloned().collect();
        drop(nodes);
        drop(old);
        for other in others {
            other.node_down(node);
        }
    }

    fn nodes(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Handle>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Relay for Loopback {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), Parcel> {
        let node = self.nodes().get(&to.node()).cloned();
        match node {
            Some(node) => node.deliver(to, parcel),
            None => Err(parcel),
        }
    }
}

/// A process on another node, as the receiver of an address.
pub(crate) struct Remote {
    pub(crate) pid: Pid,
    pub(crate) handle: Handle,
}

impl<M: Send + 'static> crate::address::Receive<M> for Remote {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.handle.try_send(self.pid, message)
    }

    fn poll_send(
        &self,
        message: &mut Option<M>,
        _: &mut Option<Key>,
        _: &std::task::Waker,
    ) -> std::task::Poll<Result<(), SendError<M>>> {
        match message.take() {
            Some(message) => std::task::Poll::Ready(self.handle.try_send(self.pid, message)),
            None => std::task::Poll::Pending,
        }
    }

    fn forget_send(&self, _: Key) {}

    fn take_mail(&self, _: &mut Taken<M>) {}

    fn pid(&self) -> Pid {
        self.pid
    }

    fn handle(&self) -> &Handle {
        &self.handle
    }
}
