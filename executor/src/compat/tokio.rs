//! tokio's names for items that this runtime has under names of its own.
//!
//! Here are the builder's settings, the identity of a runtime, and its metrics as methods. The
//! modules [`runtime`](crate::runtime) and [`task`](crate::task), which have tokio's names,
//! re-export these items and those that have tokio's names anyway.
mod builder;
mod handle;
mod metrics;

pub use self::metrics::RuntimeMetrics;
pub use handle::{RuntimeFlavor, worker_index};
