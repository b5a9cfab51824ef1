//! A channel from many senders to many receivers, each of which gets each value.
//!
//! ```
//! use task_sync::broadcast;
//!
//! let (tx, mut first) = broadcast::channel(16);
//! let mut second = tx.subscribe();
//! assert_eq!(tx.send("hello"), Ok(2));
//! futures::executor::block_on(async {
//!     assert_eq!(first.recv().await, Ok("hello"));
//!     assert_eq!(second.recv().await, Ok("hello"));
//! });
//! ```
//!
//! The channel keeps a bounded number of values. A sender never waits: when the channel is full, a
//! new value replaces the oldest one. A receiver that has not got that value *lags*: its next
//! receive returns [`Lagged`](error::RecvError::Lagged) with the number of values that it missed,
//! and it goes on with the oldest value that is left.
//!
//! A value is cloned for each receiver but the last, which gets the value itself. Clones of one
//! value run one at a time, so the values need not be `Sync`: a receiver that comes in the middle
//! of another one's clone blocks its thread until the end of that. Nothing else waits for a clone,
//! and a clone may use the channel. But it must not receive the value of which it is the clone, by
//! another receiver: that panics, and without `std` it never returns. Nor may two clones, on two
//! threads, receive each other's value: both threads would wait for ever.
//!
//! # Costs
//!
//! In read-modify-writes, where nothing contends. A *lock* is one of the channel's own, and costs
//! one: that of the next position, or that of a list of waiting tasks. There is one list, and eight
//! more once there were more than eight receivers.
//!
//! | operation | cost |
//! |---|---|
//! | receive a value | 4, all on the line of the value; 2 if this is the last receiver of the value |
//! | find the channel empty (`try_recv`, a poll) | 0 |
//! | begin to wait | a lock, and a clone of the waker; 1 more if the task's list is one of the eight and is not in use |
//! | send | two locks and 1, or 3 in place of 1 if a value is replaced that a receiver was to get |
//! | send, once there were more than eight receivers | in addition 1, and a lock for each list in use, with 1 more if the list is empty |
//! | wake tasks in a send | a lock for each 32, and their wakes |
pub mod error;
mod receiver;
mod receiving;
mod ring;
mod sender;
mod shared;

pub use receiver::Receiver;
pub use sender::{Sender, WeakSender};

/// Creates a channel that keeps at least `capacity` values, with one sender and one receiver.
///
/// The capacity is rounded up to a power of two.
///
/// ```
/// use task_sync::broadcast::{self, error::TryRecvError};
///
/// let (tx, mut rx) = broadcast::channel(2);
/// for n in 0..4 {
///     tx.send(n).unwrap();
/// }
/// assert_eq!(rx.try_recv(), Err(TryRecvError::Lagged(2)));
/// assert_eq!(rx.try_recv(), Ok(2));
/// ```
///
/// # Panics
/// If `capacity` is 0 or greater than `usize::MAX / 2`.
#[track_caller]
pub fn channel<T: Clone>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(capacity);
    let receiver = sender.subscribe();
    (sender, receiver)
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
