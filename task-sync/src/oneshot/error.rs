//! The errors of [`oneshot`](crate::oneshot).
//!
//! ```
//! use task_sync::oneshot::{self, error::TryRecvError};
//!
//! let (tx, mut rx) = oneshot::channel::<u32>();
//! assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
//! drop(tx);
//! assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
//! ```
use core::{error::Error, fmt};

/// The sender was dropped before it sent a value, or the receiver has closed the channel.
///
/// ```
/// use task_sync::oneshot;
///
/// let (tx, rx) = oneshot::channel::<u32>();
/// drop(tx);
/// let error = futures::executor::block_on(rx).unwrap_err();
/// assert_eq!(error.to_string(), "channel closed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecvError(pub(super) ());

/// Why [`Receiver::try_recv`](crate::oneshot::Receiver::try_recv) returned no value.
///
/// ```
/// use task_sync::oneshot::{self, error::TryRecvError};
///
/// let (tx, mut rx) = oneshot::channel::<u32>();
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
/// drop(tx);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No value was sent yet.
    Empty,
    /// The sender was dropped before it sent a value, the receiver has closed the channel, or the
    /// value was received earlier.
    Closed,
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "channel empty",
            Self::Closed => "channel closed",
        })
    }
}

impl Error for RecvError {}

impl Error for TryRecvError {}
