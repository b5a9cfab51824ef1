//! Simulation.
#![allow(missing_docs)]

#[cfg(selvedge_sim)]
mod choice;
mod explore;
mod failure;
mod order;
mod replay;
#[cfg(selvedge_sim)]
mod rule;
mod sim;
mod trace;
#[cfg(selvedge_sim)]
mod world;

pub use explore::{Explored, Found, explore};
pub use failure::Failure;
pub use order::{Order, Polls};
pub use replay::Replay;
pub use sim::{Run, Sim, Stats};
pub use trace::Event;

use std::time::Duration;

/// Keeps this thread busy for this virtual time, in the middle of a poll for example. Other threads
/// run meanwhile.
pub fn busy(time: Duration) {
    #[cfg(selvedge_sim)]
    sync_shim::sim::busy(time);
    #[cfg(not(selvedge_sim))]
    std::thread::sleep(time);
}

/// Returns a random number from the seed, for a program that wants to vary what it does.
pub fn random() -> u64 {
    sync_shim::random::number()
}

/// Returns a random number below `count` from the seed.
///
/// # Panics
/// If `count` is 0.
pub fn random_below(count: u64) -> u64 {
    random() % count
}

pub use sync_shim::sim::thread;
