//! The monitor of a runtime, or what stands for it in builds without the feature `monitor`.
#[cfg(all(feature = "monitor", feature = "groups"))]
mod end_turns;
#[cfg(all(feature = "monitor", feature = "groups"))]
pub(crate) mod mail;
#[cfg(not(feature = "monitor"))]
mod none;
#[cfg(feature = "monitor")]
mod poll_overdue;
#[cfg(feature = "monitor")]
pub(crate) mod report;
#[cfg(feature = "monitor")]
mod rounds;
#[cfg(feature = "monitor")]
mod state;

#[cfg(not(feature = "monitor"))]
pub use none::syscall;
#[cfg(not(feature = "monitor"))]
pub(crate) use none::{Monitor, Settings};
#[cfg(feature = "monitor")]
pub(crate) use state::{Monitor, Settings};
