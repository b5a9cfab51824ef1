//! The futures that have a name.
//!
//! ```
//! use task_sync::{Notify, futures::Notified};
//!
//! async fn wait(notified: Notified<'_>) {
//!     notified.await;
//! }
//!
//! let notify = Notify::new();
//! notify.notify_one();
//! futures::executor::block_on(wait(notify.notified()));
//! ```
pub use crate::notify::{Notified, OwnedNotified};
