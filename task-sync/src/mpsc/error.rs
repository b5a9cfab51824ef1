//! The errors of [`mpsc`](crate::mpsc).
//!
//! ```
//! use task_sync::mpsc::{self, error::TrySendError};
//!
//! let (tx, rx) = mpsc::channel(1);
//! tx.try_send("a").unwrap();
//! assert_eq!(tx.try_send("b"), Err(TrySendError::Full("b")));
//! drop(rx);
//! assert_eq!(tx.try_send("c"), Err(TrySendError::Closed("c")));
//! ```
use core::{error::Error, fmt};

/// The receiver is dropped or has closed the channel. The field is what was to be sent.
///
/// ```
/// use task_sync::mpsc::{self, error::SendError};
///
/// let (tx, rx) = mpsc::unbounded_channel();
/// drop(rx);
/// let error = tx.send(7).unwrap_err();
/// assert_eq!(error, SendError(7));
/// assert_eq!(error.to_string(), "channel closed");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SendError<T>(pub T);

/// Why a message was not sent at once.
///
/// ```
/// use task_sync::mpsc::{self, error::TrySendError};
///
/// let (tx, rx) = mpsc::channel(1);
/// tx.try_send(1).unwrap();
/// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
/// drop(rx);
/// let error = tx.try_send(3).unwrap_err();
/// assert_eq!(error, TrySendError::Closed(3));
/// assert_eq!(error.into_inner(), 3);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TrySendError<T> {
    /// There is no room, or other senders wait for it.
    Full(T),
    /// The receiver is dropped or has closed the channel.
    Closed(T),
}

/// Why a message was not sent in time.
///
/// ```
/// use task_sync::mpsc::{self, error::SendTimeoutError};
///
/// # futures::executor::block_on(async {
/// let (tx, rx) = mpsc::channel(1);
/// tx.send(1).await.unwrap();
/// let no_time = async {};
/// let error = tx.send_until(2, no_time).await.unwrap_err();
/// assert_eq!(error, SendTimeoutError::Timeout(2));
/// assert_eq!(error.into_inner(), 2);
/// # });
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum SendTimeoutError<T> {
    /// There was no room until the time was over.
    Timeout(T),
    /// The receiver is dropped or has closed the channel.
    Closed(T),
}

/// Why no message was received at once.
///
/// ```
/// use task_sync::mpsc::{self, error::TryRecvError};
///
/// let (tx, mut rx) = mpsc::unbounded_channel::<u32>();
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
/// drop(tx);
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryRecvError {
    /// No message is there. One may come.
    Empty,
    /// No message is there, and none will come.
    Disconnected,
}

impl<T> TrySendError<T> {
    /// Returns what was to be sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Full(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> SendTimeoutError<T> {
    /// Returns what was to be sent.
    pub fn into_inner(self) -> T {
        match self {
            Self::Timeout(value) | Self::Closed(value) => value,
        }
    }
}

impl<T> From<SendError<T>> for TrySendError<T> {
    fn from(SendError(value): SendError<T>) -> Self {
        Self::Closed(value)
    }
}

// The errors have these traits for each `T`, so no output shows the value.

impl<T> fmt::Debug for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendError").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "Full(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Debug for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "Timeout(..)",
            Self::Closed(_) => "Closed(..)",
        })
    }
}

impl<T> fmt::Display for SendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("channel closed")
    }
}

impl<T> fmt::Display for TrySendError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full(_) => "no available capacity",
            Self::Closed(_) => "channel closed",
        })
    }
}

impl<T> fmt::Display for SendTimeoutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout(_) => "timed out waiting on send operation",
            Self::Closed(_) => "channel closed",
        })
    }
}

impl fmt::Display for TryRecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "receiving on an empty channel",
            Self::Disconnected => "receiving on a closed channel",
        })
    }
}

impl<T> Error for SendError<T> {}

impl<T> Error for TrySendError<T> {}

impl<T> Error for SendTimeoutError<T> {}

impl Error for TryRecvError {}
