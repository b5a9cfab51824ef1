//! The workers: how each finds its next task, runs it, wakes others, waits and ends.
pub(crate) mod context;
pub(crate) mod core;
pub(crate) mod driven;
pub(crate) mod driver;
pub(crate) mod identity;
pub(crate) mod interval;
mod look;
pub mod park;
pub(crate) mod queue;
pub(crate) mod run;
pub(crate) mod scheduler;
pub(crate) mod shared;
mod steal;
pub(crate) mod threads;
pub(crate) mod unpark;
mod wake;
mod watch;
pub(crate) mod yield_now;
