//! A channel that keeps only the last value, and tells its receivers that it has changed.
//!
//! ```
//! use task_sync::watch;
//!
//! let (tx, mut rx) = watch::channel("starting");
//! let seen = std::thread::spawn(move || {
//!     futures::executor::block_on(async {
//!         while rx.changed().await.is_ok() {
//!             if *rx.borrow_and_update() == "ready" {
//!                 break;
//!             }
//!         }
//!     })
//! });
//! tx.send("ready").unwrap();
//! seen.join().unwrap();
//! ```
//!
//! Each value has a *version*. A receiver knows the version that it has seen last, and a value with
//! another version counts as changed for it. A new receiver has seen the value at its creation.
//!
//! [`Receiver::borrow`] and [`Sender::borrow`] return a reference under a lock that readers share.
//! A send waits for its end, and blocks the thread meanwhile. So keep a reference only for a short
//! time, and not across an `.await`; [`Ref`] is not `Send` for that reason. A thread that borrows
//! while it has another `Ref` of the channel may deadlock with a send between the two.
//!
//! The code that a method runs under the lock must not use the channel: the closures of
//! [`Sender::send_modify`], [`Sender::send_if_modified`] and [`Receiver::wait_for`].
//!
//! # Costs
//!
//! In read-modify-writes, where nothing contends. A *lock* is that of the waiting tasks, and costs
//! one. There are up to eight lists of them.
//!
//! | operation | cost |
//! |---|---|
//! | `has_changed`, and `changed` if there is a change | 0 |
//! | `borrow`, `borrow_and_update`, with the end of the `Ref` | 2 |
//! | begin to wait | a lock, and a clone of the waker; 1 more if the task's list is not in use |
//! | send | 3, and a lock for each list in use |
//! | wake tasks in a send | a lock for each 32, and their wakes |
pub mod error;
mod receiver;
mod sender;
mod value;

pub use receiver::{Receiver, Ref};
pub use sender::Sender;

/// Creates a channel with a first value, which its receiver has seen.
///
/// ```
/// use task_sync::watch;
///
/// let (tx, rx) = watch::channel(1);
/// assert_eq!(*rx.borrow(), 1);
/// assert!(!rx.has_changed().unwrap());
/// # drop(tx);
/// ```
pub fn channel<T>(init: T) -> (Sender<T>, Receiver<T>) {
    let sender = Sender::new(init);
    let receiver = sender.subscribe();
    (sender, receiver)
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
