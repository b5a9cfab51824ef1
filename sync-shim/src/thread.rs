//! Threads, parking, and thread-locals ([`thread_local!`](crate::thread_local)).
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
pub use crate::backend::imp::thread::sleep;
pub use crate::backend::imp::thread::{
    Builder, JoinHandle, Thread, current, park, park_timeout, spawn, yield_now,
};
