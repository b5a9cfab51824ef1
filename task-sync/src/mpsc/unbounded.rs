//! The channel without a bound.
use super::error::SendError;
use super::handle::{Rx, Tx, Weak, channel};
use crate::waiting::Waiting;

/// Creates a channel without a bound: a send never waits.
///
/// Messages that the receiver does not take fill the memory. [`channel`](super::channel) has a
/// bound.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::unbounded_channel();
/// tx.send(7).unwrap();
/// assert_eq!(futures::executor::block_on(rx.recv()), Some(7));
/// ```
pub fn unbounded_channel<T>() -> (UnboundedSender<T>, UnboundedReceiver<T>) {
    let (tx, rx) = channel(0);
    (UnboundedSender { tx }, UnboundedReceiver { rx })
}

/// Sends to an [`unbounded_channel`]. Clone it to send from several tasks.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::unbounded_channel();
/// let other = tx.clone();
/// other.send(1).unwrap();
/// tx.send(2).unwrap();
/// assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
/// ```
pub struct UnboundedSender<T> {
    tx: Tx<T, false>,
}

/// A sender that does not keep its channel open. [Upgrade](Self::upgrade) it to send.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::unbounded_channel();
/// let weak = tx.downgrade();
/// weak.upgrade().unwrap().send(7).unwrap();
/// drop(tx);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(rx.blocking_recv(), Some(7));
/// assert_eq!(rx.blocking_recv(), None);
/// ```
pub struct WeakUnboundedSender<T> {
    weak: Weak<T, false>,
}

/// Receives from an [`unbounded_channel`].
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::unbounded_channel();
/// tx.send(7).unwrap();
/// drop(tx);
/// futures::executor::block_on(async {
///     while let Some(message) = rx.recv().await {
///         assert_eq!(message, 7);
///     }
/// });
/// ```
pub struct UnboundedReceiver<T> {
    rx: Rx<T, false>,
}

impl<T> UnboundedSender<T> {
    /// Sends a message.
    ///
    /// Costs two read-modify-writes if the receiver does not wait for this message. A panic of the
    /// receiver's waker is dropped.
    ///
    /// ```
    /// use task_sync::mpsc::{self, error::SendError};
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel();
    /// tx.send(1).unwrap();
    /// rx.close();
    /// assert_eq!(tx.send(2), Err(SendError(2)));
    /// assert_eq!(rx.try_recv(), Ok(1));
    /// ```
    ///
    /// # Errors
    /// Hands the message back if the receiver is dropped or has closed the channel.
    #[inline]
    pub fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.tx.push(message).map_err(SendError)
    }

    /// Calls `f` for the task that waits for a message, with 1, and wakes it. For dumps of tasks;
    /// see [`Waiting`] for what `f` may do.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::unbounded_channel::<u32>();
    /// let mut count = 0;
    /// let counts = async { tx.for_each_waiter(|task| count += task.needed()) };
    /// assert!(join(rx.recv(), counts).now_or_never().is_none());
    /// assert_eq!(count, 1);
    /// ```
    pub fn for_each_waiter(&self, f: impl FnMut(&Waiting<'_>)) {
        self.tx.for_waiting_receiver(f);
    }
}

super::common::handles! {
    UnboundedSender, WeakUnboundedSender, UnboundedReceiver, "mpsc::unbounded_channel()"
}
