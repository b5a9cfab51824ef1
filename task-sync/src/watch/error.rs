//! The errors of a watch channel.
//!
//! ```
//! use task_sync::watch::{self, error::SendError};
//!
//! let (tx, rx) = watch::channel("old");
//! drop(rx);
//! assert_eq!(tx.send("new"), Err(SendError("new")));
//! ```
use core::{error::Error, fmt};

/// The error of a send: there is no receiver. It has the value.
///
/// ```
/// use task_sync::watch::{self, error::SendError};
///
/// let (tx, rx) = watch::channel(1);
/// drop(rx);
/// assert_eq!(tx.send(2), Err(SendError(2)));
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

/// The error of a wait for a change: no sender is left.
///
/// ```
/// use task_sync::watch;
///
/// let (tx, mut rx) = watch::channel(1);
/// drop(tx);
/// let error = futures::executor::block_on(rx.changed()).unwrap_err();
/// assert_eq!(error.to_string(), "the channel is closed");
/// ```
#[derive(Clone, Debug)]
pub struct RecvError(pub(super) ());

impl fmt::Display for RecvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the channel is closed")
    }
}

impl Error for RecvError {}
