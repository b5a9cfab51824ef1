//! A semaphore: permits to acquire, and permits to give back. Other primitives use it too.
#[cfg(feature = "semaphore")]
mod permits;
pub(crate) mod raw;

#[cfg(feature = "semaphore")]
pub use permits::{
    AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit, TryAcquireError,
};
