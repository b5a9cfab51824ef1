//! Threads, parking, and thread-locals ([`thread_local!`](crate::thread_local)).
pub use crate::backend::imp::thread::{
    Builder, JoinHandle, Thread, current, park, park_timeout, sleep, spawn, yield_now,
};
