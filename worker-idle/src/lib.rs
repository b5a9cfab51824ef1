#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(feature = "std")]
pub mod announce;
#[cfg(feature = "std")]
mod backoff;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(all(test, selvedge_count, feature = "std"))]
mod counts;
mod idle;
pub mod park;
#[cfg(feature = "std")]
mod process_time;
#[cfg(feature = "std")]
mod spin;
mod watch;

#[cfg(feature = "std")]
pub use backoff::{Backoff, Wait};
pub use idle::{Idle, Woken};
#[cfg(feature = "std")]
pub use spin::Spin;
pub use watch::{Watch, WatchState};
