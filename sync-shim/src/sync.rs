//! Shared ownership and locks. A poisoned lock is entered all the same: the code built on the
//! shim keeps its invariants without unwinding through a lock.
pub use crate::backend::imp::sync::{Arc, Condvar, Mutex, MutexGuard};
