#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]
// The primitives share code. With some of them turned off, parts of that code are unused.
#![cfg_attr(
    not(all(
        feature = "barrier",
        feature = "broadcast",
        feature = "mpsc",
        feature = "mutex",
        feature = "notify",
        feature = "once",
        feature = "oneshot",
        feature = "rwlock",
        feature = "semaphore",
        feature = "std",
        feature = "watch",
    )),
    allow(dead_code)
)]

extern crate alloc;

#[cfg(feature = "barrier")]
mod barrier;
#[cfg(feature = "std")]
mod blocking;
#[cfg(feature = "broadcast")]
pub mod broadcast;
mod coop;
#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(feature = "notify")]
pub mod futures;
#[cfg(any(feature = "mutex", feature = "rwlock"))]
mod guard;
#[cfg(any(feature = "mutex", feature = "rwlock"))]
mod holder;
#[cfg(any(feature = "broadcast", feature = "watch"))]
mod lists;
mod lock;
#[cfg(all(test, selvedge_count))]
mod many_receivers_counts;
#[cfg(doctest)]
mod many_receivers_variance;
#[cfg(feature = "mpsc")]
pub mod mpsc;
#[cfg(feature = "mutex")]
mod mutex;
#[cfg(feature = "notify")]
mod notify;
#[cfg(feature = "once")]
mod once_cell;
#[cfg(all(test, selvedge_count))]
mod one_receiver_counts;
#[cfg(doctest)]
mod one_receiver_variance;
#[cfg(feature = "oneshot")]
pub mod oneshot;
mod panics;
#[cfg(any(feature = "broadcast", feature = "watch"))]
mod parking;
#[cfg(feature = "rwlock")]
mod rwlock;
#[cfg(any(feature = "once", feature = "semaphore"))]
mod semaphore;
#[cfg(feature = "once")]
mod set_once;
#[cfg(all(test, feature = "std"))]
mod testing;
#[cfg(any(feature = "mutex", feature = "rwlock"))]
mod try_lock_error;
#[cfg(doctest)]
mod variance;
mod wait;
mod waiters;
mod waiting;
#[cfg(feature = "oneshot")]
mod waker_words;
#[cfg(feature = "watch")]
pub mod watch;

#[cfg(feature = "barrier")]
pub use barrier::{Barrier, BarrierWaitResult};
#[cfg(feature = "mutex")]
pub use mutex::{MappedMutexGuard, Mutex, MutexGuard, OwnedMappedMutexGuard, OwnedMutexGuard};
#[cfg(feature = "notify")]
pub use notify::Notify;
#[cfg(feature = "once")]
pub use once_cell::{OnceCell, SetError};
#[cfg(feature = "rwlock")]
pub use rwlock::{
    OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
    RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
};
#[cfg(feature = "semaphore")]
pub use semaphore::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
#[cfg(feature = "once")]
pub use set_once::{SetOnce, SetOnceError};
#[cfg(any(feature = "mutex", feature = "rwlock"))]
pub use try_lock_error::TryLockError;
pub use waiting::Waiting;
