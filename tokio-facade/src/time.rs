//! Sleeps, timeouts and intervals, as in tokio.
pub use selvedge::time::*;

pub mod error;
