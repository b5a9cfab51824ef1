//! Atomics and fences. Under a model they are the model's; constructors are then not `const`,
//! so no code built on the shim keeps an atomic in a static.
pub use crate::backend::imp::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, fence,
};
pub use core::sync::atomic::Ordering;

/// Ends the shared life of an atomic: call it on every atomic of a block just before the block
/// is freed. Under loom it panics when another thread's access is not ordered before it;
/// elsewhere it does nothing.
pub trait Retire {
    /// Touches the value mutably.
    fn retire(&mut self);
}
