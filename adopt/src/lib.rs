#![doc = include_str!("../README.md")]

pub mod async_executor;
pub mod bare;
pub mod blocking;
pub mod game;
pub mod join_pool;
pub mod tasks;
