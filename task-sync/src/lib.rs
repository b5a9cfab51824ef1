#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(feature = "std")]
mod blocking;
mod coop;
#[cfg(all(test, selvedge_count))]
mod counts;
mod guard;
mod lock;
pub mod mpsc;
mod mutex;
mod once_cell;
#[cfg(all(test, selvedge_count))]
mod one_receiver_counts;
#[cfg(doctest)]
mod one_receiver_variance;
pub mod oneshot;
mod rwlock;
mod semaphore;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod testing;
#[cfg(doctest)]
mod variance;
mod wait;
mod waiters;
mod waiting;
mod waker_words;
#[cfg(all(test, feature = "std"))]
mod woken;

pub use mutex::{
    MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard, TryLockError,
};
pub use once_cell::{OnceCell, SetError};
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
pub use semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
pub use waiting::Waiting;
