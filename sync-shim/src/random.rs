//! Random numbers.
//!
//! Under the cfg `selvedge_sim`, a thread of a simulation draws from the simulation's seed.
use std::hash::{BuildHasher, RandomState};

/// Returns a random number, from the keys that std makes for its hash maps.
#[inline]
pub fn number() -> u64 {
    #[cfg(selvedge_sim)]
    if let Some(number) = crate::sim::with_host(|host, _| host.random()) {
        return number;
    }
    RandomState::new().hash_one(0_u8)
}

/// Returns `fixed`, or a number from the seed in a simulation: for a number that is fixed so that a
/// program repeats its run, but that a simulation should vary.
#[inline]
pub fn number_or(fixed: u64) -> u64 {
    #[cfg(selvedge_sim)]
    if let Some(number) = crate::sim::with_host(|host, _| host.random()) {
        return number;
    }
    fixed
}
