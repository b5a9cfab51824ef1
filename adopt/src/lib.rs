#![doc = include_str!("../README.md")]

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub mod async_executor;
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub mod bare;
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub mod blocking;
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub mod game;
pub mod join_pool;
pub mod pool;
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub mod tasks;

#[cfg(doctest)]
mod variance;
