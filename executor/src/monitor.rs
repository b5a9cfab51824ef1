//! The monitor of a runtime: a thread that watches the workers. A builder may turn it off.
mod poll_overdue;
pub(crate) mod report;
mod rounds;
mod state;

pub(crate) use state::{Monitor, Settings};
