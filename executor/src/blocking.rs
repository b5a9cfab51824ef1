//! Closures that block, and calls during which a worker gives its core away.
mod block_in_place;
pub(crate) mod call;
mod current;
mod pool;
mod syscall;

pub use block_in_place::{block_in_place, block_in_place_beside_workers};
pub(crate) use current::{enter, run_blocking, within};
pub(crate) use pool::{before_park, offer, spawn, start};
pub use syscall::syscall;
