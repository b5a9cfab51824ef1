//! Shared ownership and locks. A lock ignores poison: code that is built on the shim does not rely
//! on it.
pub use crate::backend::imp::sync::{Arc, Condvar, Mutex, MutexGuard};
