//! The futures that have a name.
pub use crate::notify::{Notified, OwnedNotified};
