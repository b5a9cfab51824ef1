#![doc = include_str!("../README.md")]

mod pool;
mod settings;

pub use pool::{Counts, Job, Pool, Refused};
pub use settings::{Linger, Settings, Spawn};

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
