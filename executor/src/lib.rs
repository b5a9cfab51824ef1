#![doc = include_str!("../README.md")]

mod block_on;
mod blocking;
mod builder;
mod context;
mod foreign;
mod handle;
pub mod idle;
mod metrics;
pub mod park;
mod runtime;
mod shared;
mod worker;
mod yield_now;

pub use builder::Builder;
pub use context::{spawn, spawn_blocking, spawn_detached};
pub use coop_budget::Budget;
pub use handle::Handle;
pub use metrics::Snapshot;
pub use runtime::Runtime;
pub use task_header::{AbortHandle, Id, JoinError, JoinHandle};
pub use yield_now::{YieldNow, yield_now};

#[cfg(test)]
mod models;
#[cfg(all(test, not(selvedge_loom)))]
mod tests;
