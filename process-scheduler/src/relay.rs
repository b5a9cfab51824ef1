//! The way to processes on other nodes: a relay, and the parcels that it carries.
use crate::{Pid, SendError, Signal, guard::Guarded};
use std::{any::Any, fmt};

/// Carries parcels to other nodes.
///
/// A pid names a node. A scheduler passes parcels for a pid of another node to its relay (see
/// [`Builder::relay`](crate::Builder::relay)). On that node, the relay passes them to
/// [`Handle::deliver`](crate::Handle::deliver). When the relay can no longer reach a node, it calls
/// [`Handle::node_down`](crate::Handle::node_down) on the schedulers of the other nodes.
///
/// ```
/// use process_scheduler::{Parcel, Pid, Relay, SendError};
///
/// /// Reaches no node.
/// struct Nowhere;
///
/// impl Relay for Nowhere {
///     fn deliver(&self, _to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
///         Err(SendError::NotFound(parcel))
///     }
/// }
/// ```
pub trait Relay: Send + Sync + 'static {
    /// Sends a parcel on its way, without waiting.
    ///
    /// If this function calls [`Handle::deliver`](crate::Handle::deliver) of the other node, that
    /// call may in turn call relays, this one included. So hold no lock during the call.
    ///
    /// # Errors
    /// [`SendError::NotFound`] if the relay does not know how to reach the node. If it knows that
    /// the node does not accept the parcel, the error of `Handle::deliver` there. The sender of a
    /// message gets the same error, with its message.
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>>;
}

impl<R: Relay> Relay for Guarded<R> {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
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
