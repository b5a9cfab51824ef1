//! A channel for many messages, from many tasks to one.
//!
//! | | [`channel`] | [`unbounded_channel`] |
//! |---|---|---|
//! | holds | at most its capacity | any number of messages |
//! | a send | waits for room | never waits |
//! | reserve room first | [`Permit`], [`OwnedPermit`] | |
//! | handles | [`Sender`], [`WeakSender`], [`Receiver`] | [`UnboundedSender`], [`WeakUnboundedSender`], [`UnboundedReceiver`] |
//!
//! ```
//! use task_sync::mpsc;
//!
//! let (tx, mut rx) = mpsc::channel(8);
//! let other = tx.clone();
//! let sender = std::thread::spawn(move || futures::executor::block_on(async {
//!     tx.send("a").await.unwrap();
//!     other.send("b").await.unwrap();
//! }));
//! # sender.join().unwrap();
//! futures::executor::block_on(async {
//!     assert_eq!(rx.recv().await, Some("a"));
//!     assert_eq!(rx.recv().await, Some("b"));
//!     assert_eq!(rx.recv().await, None);
//! });
//! ```
//!
//! # The end of a channel
//!
//! A receiver gets `None` after the last message once all senders are dropped. Weak senders do not
//! count. It also gets `None` once it has [closed](Receiver::close) the channel and has received
//! what was sent, or reserved, before. A send to a channel whose receiver is closed or dropped
//! fails and hands the message back.
//!
//! The drop of the receiver drops the messages in the channel. If a sender is in the middle of a
//! send at that moment, the drop waits for it, as [`Receiver::try_recv`] does.
//!
//! # Order
//!
//! Messages of one sender arrive in the order in which they were sent. Senders that wait for room
//! get it in the order in which they began to wait. While some wait, [`Sender::try_send`] finds the
//! channel full.
//!
//! # Costs
//!
//! In read-modify-writes, if nothing waits:
//!
//! | | bounded | unbounded |
//! |---|---|---|
//! | send | 3 | 2 |
//! | receive | 1 | 0 |
//!
//! A wait allocates nothing.
mod block;
mod bounded;
mod chain;
mod chan;
mod common;
pub mod error;
mod handle;
mod permit;
mod reserve;
mod room;
mod unbounded;

pub use bounded::{OwnedPermit, Receiver, Sender, WeakSender, channel};
pub use permit::{Permit, PermitIterator};
pub use unbounded::{UnboundedReceiver, UnboundedSender, WeakUnboundedSender, unbounded_channel};

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
