#![doc = include_str!("../README.md")]

#[cfg(not(selvedge_loom))]
pub mod async_executor;
#[cfg(not(selvedge_loom))]
pub mod bare;
#[cfg(not(selvedge_loom))]
pub mod blocking;
#[cfg(not(selvedge_loom))]
pub mod game;
pub mod join_pool;
#[cfg(not(selvedge_loom))]
pub mod tasks;
