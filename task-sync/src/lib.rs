#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod barrier;
#[cfg(feature = "std")]
mod blocking;
pub mod broadcast;
mod coop;
#[cfg(all(test, selvedge_count))]
mod counts;
pub mod futures;
mod guard;
mod lock;
#[cfg(all(test, selvedge_count))]
mod many_receivers_counts;
#[cfg(doctest)]
mod many_receivers_variance;
pub mod mpsc;
mod mutex;
mod notify;
mod once_cell;
#[cfg(all(test, selvedge_count))]
mod one_receiver_counts;
#[cfg(doctest)]
mod one_receiver_variance;
pub mod oneshot;
mod panics;
mod parking;
mod rwlock;
mod semaphore;
mod set_once;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod testing;
#[cfg(doctest)]
mod variance;
mod wait;
mod waiters;
mod waiting;
mod waker_words;
pub mod watch;
#[cfg(all(test, feature = "std"))]
mod woken;

pub use barrier::{Barrier, BarrierWaitResult};
pub use mutex::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};
pub use notify::Notify;
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
pub use set_once::{SetOnce, SetOnceError};
pub use waiting::Waiting;
