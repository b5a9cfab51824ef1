#![doc = include_str!("../README.md")]
// The sockets do not exist under a model checker, whose models use the parts below them, and on
// systems other than Unix and Windows. On Windows nothing uses the parts for descriptors of files.
#![cfg_attr(any(selvedge_loom, selvedge_shuttle, not(unix)), allow(dead_code))]

#[doc(hidden)]
pub mod checks;
mod driver;
mod guest;
mod guests;
mod list;
mod looks;
#[cfg(all(any(unix, windows), not(selvedge_loom)))]
pub mod net;
mod over;
mod owners;
mod park;
mod poller;
mod reactor;
mod readiness;
mod ready;
mod registration;
mod role;
#[cfg(all(feature = "signal", any(unix, windows)))]
pub mod signal;
mod slab;
mod slot;
mod standby;
mod sys;
mod threads;
pub mod time;
mod token;

pub use driver::{Driver, Entered};
pub use over::{OverPark, WorkerTimers};
pub use park::WorkerPark;
pub use poller::Polling;
pub use ready::{Interest, Ready};
#[doc(no_inline)]
pub use worker_idle::park::Park;

#[cfg(doctest)]
mod variance;
