//! The small lock inside the primitives: std's mutex, or a spin lock without `std`.
//!
//! The code under such a lock is short, calls no user code and does not panic. So a thread that
//! spins waits for a few hundred instructions, unless the holder is preempted.
#[cfg(feature = "std")]
pub(crate) use sync_shim::sync::{Mutex as Lock, MutexGuard as LockGuard};

#[cfg(any(test, not(feature = "std")))]
mod spin;
#[cfg(not(feature = "std"))]
pub(crate) use spin::{Lock, LockGuard};
