//! The small lock inside the primitives: [`spin`], whose release is a store. So a section under it
//! is one read-modify-write.
//!
//! The code under such a lock is short, and calls no user code but the closure of a
//! `for_each_waiter`. So a thread that waits for it waits for a few hundred instructions, unless
//! the holder is preempted or runs such a closure. A panic of that closure releases the lock.
//!
//! Under a model, and in a simulation, it is the shim's mutex: a thread that spins would multiply
//! the executions, and a simulation must know which thread waits. The spinning lock has models of
//! its own.
#[cfg(all(feature = "std", any(selvedge_loom, selvedge_shuttle, selvedge_sim)))]
pub(crate) use sync_shim::sync::{Mutex as Lock, MutexGuard as LockGuard};

#[cfg(any(
    test,
    not(all(feature = "std", any(selvedge_loom, selvedge_shuttle, selvedge_sim)))
))]
mod spin;
#[cfg(not(all(feature = "std", any(selvedge_loom, selvedge_shuttle, selvedge_sim))))]
pub(crate) use spin::{Lock, LockGuard};
