//! tokio's names of what this runtime has under names of its own.
//!
//! Here are the builder's settings, the identity of a runtime, and its metrics by calls.
//! [`runtime`](crate::runtime) and [`task`](crate::task) re-export them, and what has tokio's name
//! anyway, in modules of tokio's names.
mod builder;
mod handle;
mod metrics;

pub use handle::{RuntimeFlavor, worker_index};
pub use self::metrics::RuntimeMetrics;
