//! Memory of cells and nodes, kept for reuse.
//!
//! A process is often spawned by one thread and ended by another. The system's allocator takes the
//! lock of the first thread's arena for each such free. Here each thread has *magazines* of free
//! blocks, and exchanges only whole ones, through a *depot* that all threads share.
//!
//! 1. Blocks of one size are a *class*. A thread has up to two magazines of a class: it takes from
//!    `current` and puts back to it, and exchanges it for `other` when it is empty or full.
//! 2. A thread gives a full magazine to the depot, and takes one when it has none. If the depot has
//!    none either, the block is a new one of the global allocator.
//! 3. The depot's class holds a bounded number of magazines. More go back to the global allocator,
//!    and so do those of a thread that ends.
//! 4. Every block came from the global allocator. So the plain drop of an `Arc` may free its block
//!    there.
//! 5. Blocks that are too large or have another alignment are not kept.
//! 6. The global allocator may be the user's, and use this crate itself. If a thread is in its
//!    magazines at that time, it takes blocks from the allocator and frees them there. So does a
//!    thread that ends.
//!
//! Under a model nothing is kept: a static would outlive an execution.
use queue_global::mpsc::{Heap, Nodes};
use std::{alloc::Layout, mem::MaybeUninit, ptr, ptr::NonNull, sync::Arc};

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod magazines;

/// The two uses of blocks. A cell's block is that of an `Arc`, with its counts.
#[derive(Clone, Copy)]
enum Use {
    Node,
    Cell,
}

/// Nodes that are kept for reuse.
pub(crate) struct Kept;

// SAFETY: a block is from `Heap`, and by the use and the layout fits each taker. `take` gives each
// block to one taker.
unsafe impl Nodes for Kept {
    #[inline]
    fn allocate(layout: Layout) -> NonNull<u8> {
        take(Use::Node, layout).unwrap_or_else(|| Heap::allocate(layout))
    }

    #[inline]
    unsafe fn free(node: NonNull<u8>, layout: Layout) {
        /// Frees a block of another size.
        ///
        /// # Safety
        /// As that of `Heap::free`.
        unsafe fn free(block: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller keeps the contract.
            unsafe { Heap::free(block, layout) }
        }
        // SAFETY: the caller gives the block away, which is from `Heap` with this layout, also if
        // it was kept since.
        unsafe { put(Use::Node, layout, node, free) };
    }
}

/// Makes an `Arc`, in a block that was kept if there is one.
#[inline]
pub(crate) fn new_arc<T>(value: T) -> Arc<T> {
    match take(Use::Cell, Layout::new::<T>()) {
        None => Arc::new(value),
        Some(block) => {
            let place = block.cast::<T>();
            // SAFETY: the block is an `Arc`'s, which nobody shares, of this size and alignment.
            unsafe { place.write(value) };
            // SAFETY: it is from `Arc::into_raw`, of a type of the same size and alignment, and has
            // a value now.
            unsafe { Arc::from_raw(place.as_ptr()) }
        }
    }
}

/// Drops an `Arc`, and keeps its block if nobody shares it, also if the drop of the value panics.
#[inline]
pub(crate) fn recycle<T>(mut arc: Arc<T>) {
    /// # Safety
    /// The block is an `Arc`'s that nobody shares, of a type of T's size and alignment, and has no
    /// value.
    unsafe fn free<T>(block: NonNull<u8>, _: Layout) {
        let place = block.cast::<MaybeUninit<T>>();
        // SAFETY: the caller promises this.
        drop(unsafe { Arc::from_raw(place.as_ptr()) });
    }
    /// The block of an `Arc` that nobody shares. It has no value when this is dropped.
    struct Block<T>(NonNull<T>);
    impl<T> Drop for Block<T> {
        fn drop(&mut self) {
            // SAFETY: the block is an `Arc`'s that nobody shares, and has no value.
            unsafe { put(Use::Cell, Layout::new::<T>(), self.0.cast(), free::<T>) };
        }
    }
    if !is_kept(Layout::new::<T>()) || Arc::get_mut(&mut arc).is_none() {
        return;
    }
    let place = Arc::into_raw(arc).cast_mut();
    // SAFETY: the pointer of an `Arc` is not null.
    let block = Block(unsafe { NonNull::new_unchecked(place) });
    // SAFETY: nobody else has it, as `get_mut` has found; and it is not used as a T any more.
    unsafe { ptr::drop_in_place(block.0.as_ptr()) };
}

/// Frees a block that is not kept.
type Free = unsafe fn(NonNull<u8>, Layout);

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use magazines::{is_kept, put, take};

#[cfg(any(selvedge_loom, selvedge_shuttle))]
fn is_kept(_: Layout) -> bool {
    false
}

#[cfg(any(selvedge_loom, selvedge_shuttle))]
fn take(_: Use, _: Layout) -> Option<NonNull<u8>> {
    None
}

/// # Safety
/// The caller gives the block away, which `free` frees with this layout.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
unsafe fn put(_: Use, layout: Layout, block: NonNull<u8>, free: Free) {
    // SAFETY: the caller promises this.
    unsafe { free(block, layout) }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
