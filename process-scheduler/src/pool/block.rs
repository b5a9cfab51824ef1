//! Blocks of memory: what they are used for, and how they are freed.
use std::{alloc::Layout, ptr::NonNull};

/// The two uses of blocks. A cell's block is that of an `Arc`, with the two counts of the `Arc`.
#[derive(Clone, Copy)]
pub(super) enum Use {
    Node,
    Cell,
}

/// Frees a block that is not kept.
pub(super) type Free = unsafe fn(NonNull<u8>, Layout);
