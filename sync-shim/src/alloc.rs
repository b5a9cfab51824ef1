//! Raw allocation that a model counts: a block that is not freed fails the model.
//!
//! loom neither schedules nor checks a free. Before [`dealloc`], call
//! [`Retire::retire`](crate::atomic::Retire::retire) on every atomic and cell in the block, so that
//! another thread's access fails the model if it is not ordered before the free.
pub use crate::backend::imp::alloc::{alloc, dealloc};
pub use core::alloc::Layout;
