#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cap;
mod clock;
mod error;
mod level;
mod metrics;
mod queue;
mod shares;
mod tournament;

pub use cap::{BadCap, Cap};
pub use clock::Clock;
pub use error::{DestroyError, Stale};
pub use metrics::Metrics;
pub use queue::{DEFAULT_QUOTA, FairQueue, GroupKey, Pick};
pub use shares::{Shares, ZeroShares};

#[cfg(test)]
mod tests;
