#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(all(
    feature = "recycle",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count, selvedge_plain_alloc))
))]
mod blocks;
#[cfg(not(all(
    feature = "recycle",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count, selvedge_plain_alloc))
)))]
use sync_shim::alloc as blocks;
mod cell;
mod closure;
mod complete;
#[cfg(feature = "conformance")]
pub mod conformance;
mod details;
mod error;
mod exposed;
mod id;
mod join;
mod list;
mod local;
mod notified;
mod observer;
mod owned;
mod panics;
mod releases;
mod run;
mod spawn;
mod state;
mod table;
mod wake;

pub use cell::{Header, Outcome, TaskRef, WakeKind};
pub use closure::{Closure, Runnable};
pub use details::{Details, Located, Named, With};
pub use error::JoinError;
pub use id::Id;
pub use join::{AbortHandle, JoinHandle};
pub use local::{LocalNotified, LocalOwned, LocalRan, OwnerId, ScheduleLocal};
#[cfg(feature = "queue-global")]
pub use notified::Node;
pub use notified::{AfterPoll, Notified, Ran, Schedule};
pub use observer::{Observer, Wake};
pub use owned::Owned;
#[cfg(feature = "std")]
pub use run::{current, without_current, yield_now};
pub use spawn::{
    Builder, new, new_detached, new_detached_unchecked, new_unchecked, spawn, spawn_unchecked,
};
pub use state::TaskState;

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_count))))]
mod many_threads {
    mod models;
}
#[cfg(all(
    test,
    target_pointer_width = "64",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
mod layout;
#[cfg(all(test, feature = "std", not(selvedge_count)))]
mod models;
#[cfg(all(test, feature = "std"))]
mod readme;
#[cfg(all(test, feature = "std", not(selvedge_count)))]
mod tests;
#[cfg(doctest)]
mod variance;
