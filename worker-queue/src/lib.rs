#![doc = include_str!("../README.md")]
#![no_std]

#[cfg(test)]
extern crate std;

mod around;
mod queue;
mod steal;
mod stealer;

pub use around::Around;
pub use queue::{Next, WorkerQueue};
pub use queue_global::Seen;
pub use steal::Batch;
pub use stealer::Stealer;

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
