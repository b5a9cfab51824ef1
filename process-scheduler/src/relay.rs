//! The way to processes on other nodes: a relay, and the parcels that it carries.
use crate::{Pid, SendError, Signal, guard::Guarded};
use std::{
    any::Any,
    fmt,
    task::{Poll, Waker},
};

/// Carries parcels to other nodes.
///
/// A pid names a node. A scheduler passes parcels for a pid of another node to its relay (see
/// [`Builder::relay`](crate::Builder::relay)). On that node, the relay passes them to
/// [`Handle::deliver`](crate::Handle::deliver). When the relay reaches a node, it calls
/// [`Handle::node_up`](crate::Handle::node_up), and when it can no longer reach the node,
/// [`Handle::node_down`](crate::Handle::node_down).
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
    /// The sender of a message gets this error, with its message.
    ///
    /// | error | why the relay refuses the parcel |
    /// |---|---|
    /// | [`SendError::NotFound`] | it knows no such node |
    /// | [`SendError::NodeDown`] | it does not reach the node now |
    /// | [`SendError::NoRoom`] | too much is on its way to the node already |
    /// | [`SendError::NotCarried`] | it has no codec for the message, or the message is too large |
    /// | any | it knows that the node does not accept the parcel: the error of `Handle::deliver` there |
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>>;

    /// Polls whether the way to this node has room for a message. By default it always has.
    ///
    /// [`Address::send`](crate::Address::send) to a process of the node waits for this. A relay
    /// that returns `Pending` keeps the waker, and wakes it when there is room, or when the node is
    /// down: a later poll then returns `Ready`, and `deliver` tells the error. It keeps the wakers
    /// of all senders that wait.
    fn poll_ready(&self, node: u32, waker: &Waker) -> Poll<()> {
        let _ = (node, waker);
        Poll::Ready(())
    }
}

impl<R: Relay> Relay for Guarded<R> {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        (**self).deliver(to, parcel)
    }

    fn poll_ready(&self, node: u32, waker: &Waker) -> Poll<()> {
        (**self).poll_ready(node, waker)
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
