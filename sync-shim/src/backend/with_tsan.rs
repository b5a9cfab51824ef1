//! std, for ThreadSanitizer, which doesn't know fences: here a fence is a read-modify-write of one global.
//! That is stronger than a fence, so a race that only a fence lets happen stays unseen.
pub use super::with_std::{alloc, cell, hint, sync, thread};

pub mod atomic {
    pub use super::super::with_std::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    };
    use std::sync::atomic::{AtomicUsize as Word, Ordering};

    static FENCE: Word = Word::new(0);

    /// Orders with every other fence.
    pub fn fence(_order: Ordering) {
        // Ordering: AcqRel, with all others in the one modification order of the word.
        FENCE.fetch_add(1, Ordering::AcqRel);
    }
}
