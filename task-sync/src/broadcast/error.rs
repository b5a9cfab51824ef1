//! The errors of a broadcast channel.
//!
//! ```
//! use task_sync::broadcast::{self, error::TryRecvError};
//!
//! let (tx, mut rx) = broadcast::channel::<u32>(2);
//! assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
//! drop(tx);
//! assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
//! ```
use core::{error::Error, fmt};

/// The error of a send: there is no receiver. It has the value.
///
/// ```
/// use task_sync::broadcast::{self, error::SendError};
///
/// let (tx, rx) = broadcast::channel(4);
/// drop(rx);
/// assert_eq!(tx.send(7), Err(SendError(7)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel has no receiver")
    }
}

impl<T> Error for SendError<T> {}

/// The error of [`Receiver::recv`](super::Receiver::recv).
///
/// ```
/// use task_sync::broadcast::{self, error::RecvError};
///
/// let (tx, mut rx) = broadcast::channel(2);
/// (1..=3).for_each(|n| assert!(tx.send(n).is_ok()));
/// drop(tx);
/// let received = futures::executor::block_on(async {
///     [rx.recv().await, rx.recv().await, rx.recv().await, rx.recv().await]
/// });
/// let expected = [Err(RecvError::Lagged(1)), Ok(2), Ok(3), Err(RecvError::Closed)];
/// assert_eq!(received, expected);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecvError {
    /// No sender is left, and the receiver has got all values.
    Closed,
    /// The receiver was too slow: this number of values was replaced before it got them. The next
    /// receive returns the oldest value that is left.
    Lagged(u64),
}

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match *self {
            Self::Closed => TryRecvError::Closed,
            Self::Lagged(missed) => TryRecvError::Lagged(missed),
        };
        error.fmt(f)
    }
}

impl Error for RecvError {}

/// The error of [`Receiver::try_recv`](super::Receiver::try_recv).
///
/// ```
/// use task_sync::broadcast::{self, error::TryRecvError};
///
/// let (tx, mut rx) = broadcast::channel::<u8>(4);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
/// drop(tx);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// The receiver has got all values so far.
    Empty,
    /// No sender is left, and the receiver has got all values.
    Closed,
    /// The receiver was too slow: this number of values was replaced before it got them. The next
    /// receive returns the oldest value that is left.
    Lagged(u64),
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the channel has no new value"),
            Self::Closed => f.write_str("the channel is closed"),
            Self::Lagged(missed) => write!(f, "the receiver lags and missed {missed} values"),
        }
    }
}

impl Error for TryRecvError {}
