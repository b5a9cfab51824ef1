//! The monitor of a runtime: a thread that watches the workers. A builder may turn it off.
#[cfg(feature = "groups")]
mod end_turns;
#[cfg(feature = "groups")]
pub(crate) mod mail;
mod poll_overdue;
pub(crate) mod report;
mod rounds;
mod state;

pub(crate) use state::{Monitor, Settings};
