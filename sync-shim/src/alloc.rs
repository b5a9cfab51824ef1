//! Raw allocation that the model can count: a block that is not freed fails the model.
//!
//! Freeing is not a step that loom schedules or checks. Before [`dealloc`], call
//! [`Retire::retire`](crate::atomic::Retire::retire) on every atomic and cell in the block, so
//! that an access of another thread which is not ordered before the free fails the model.
pub use crate::backend::imp::alloc::{alloc, dealloc};
pub use core::alloc::Layout;
