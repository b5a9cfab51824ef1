//! Shared ownership and locks. A lock ignores poison: code that is built on the shim keeps its
//! invariants without unwinding through a lock.
pub use crate::backend::imp::sync::{Arc, Condvar, Mutex, MutexGuard};
