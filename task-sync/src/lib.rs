#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod barrier;
#[cfg(feature = "std")]
mod blocking;
pub mod broadcast;
mod coop;
pub mod futures;
mod lock;
#[cfg(doctest)]
mod many_receivers_variance;
mod notify;
mod parking;
mod semaphore;
mod set_once;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod testing;
mod until;
mod waiters;
mod waiting;
pub mod watch;

pub use barrier::{Barrier, BarrierWaitResult};
pub use notify::Notify;
pub use semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
pub use set_once::{SetOnce, SetOnceError};
pub use waiting::Waiting;
