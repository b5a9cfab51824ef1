#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod cell;
mod error;
mod join;
mod notified;
mod owned;
mod panics;
#[cfg(feature = "queue-global")]
mod queue;
mod raw;
mod spawn;
mod state;

pub use cell::Header;
pub use error::JoinError;
pub use join::{AbortHandle, JoinHandle};
pub use notified::{Notified, Ran};
pub use owned::Owned;
#[cfg(feature = "queue-global")]
pub use queue::Node;
pub use spawn::{Id, Schedule, WakeKind, new, new_detached};

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(test)]
mod layout;
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std"))]
mod tests;
