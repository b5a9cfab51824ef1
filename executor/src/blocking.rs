//! Closures that block, and calls during which a worker gives its core away.
mod block_in_place;
pub(crate) mod call;
mod current;
mod pool;
mod syscall;

pub use block_in_place::block_in_place;
#[cfg(all(feature = "net", unix, not(any(selvedge_loom, selvedge_shuttle))))]
pub(crate) use current::run_blocking;
pub(crate) use current::{enter, within};
pub(crate) use pool::{backoff, offer, spawn, start};
pub use syscall::syscall;
