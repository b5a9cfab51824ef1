//! Atomics and fences. Under a model they are the model checker's. Their constructors are then not
//! `const`, so code that is built on the shim keeps no atomic in a `static`.
pub use crate::backend::imp::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence,
};
pub use core::sync::atomic::Ordering;

/// Marks the end of an atomic's shared use.
///
/// Call [`retire`](Self::retire) on every atomic of a block just before the block is freed. Under
/// loom the call panics if another thread's access is not ordered before it. Elsewhere the call
/// does nothing.
pub trait Retire {
    /// Accesses the value mutably.
    fn retire(&mut self);
}
