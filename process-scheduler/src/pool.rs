//! Memory of cells and nodes, kept for reuse.
//!
//! A process is often spawned by one thread and ended by another. The system's allocator takes the
//! lock of the first thread's arena for each such free. Here each thread has *magazines* of free
//! blocks, and exchanges only whole ones, through a *depot* that all threads share.
//!
//! 1. Blocks of one size are a *class*. A thread has up to two magazines of a class, `current` and
//!    `other`. It takes blocks from `current`, and puts blocks back there. When `current` is empty
//!    at a take, or full at a put, the thread swaps the two.
//! 2. If both magazines are full at a put, the thread gives one to the depot. If both are empty at
//!    a take, the thread takes a magazine from the depot. If the depot has none either, the thread
//!    gets a new block from the global allocator.
//! 3. The depot holds a bounded number of magazines of each class. The blocks of further magazines
//!    go back to the global allocator, and so do those of a thread that ends.
//! 4. Every block came from the global allocator. So the plain drop of an `Arc` may free its block
//!    there.
//! 5. Blocks that are too large or have another alignment are not kept.
//! 6. A thread may call the allocator while it changes its magazines. If that call comes back to
//!    the pool, the pool takes blocks from the allocator and frees blocks there. So does a thread
//!    whose magazines are gone because it ends. This is no promise of the crate: other parts of it
//!    allocate under a lock or a borrow, and it has thread-locals with destructors. So a global
//!    allocator must not use this crate.
//!
//! Under a model nothing is kept: a static would outlive an execution.
use queue_global::mpsc::{Heap, Nodes};
use std::{alloc::Layout, mem::MaybeUninit, ptr, ptr::NonNull, sync::Arc};

mod block;
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
mod magazines;

#[cfg(any(selvedge_loom, selvedge_shuttle))]
use block::Free;
use block::Use;

/// Nodes that are kept for reuse.
pub(crate) struct Kept;

// SAFETY: a block of `Use::Node` is from `Heap`, and has the layout for which it is taken. `take`
// gives each block to one taker.
unsafe impl Nodes for Kept {
    #[inline]
    fn allocate(layout: Layout) -> NonNull<u8> {
        take(Use::Node, layout).unwrap_or_else(|| Heap::allocate(layout))
    }

    #[inline]
    unsafe fn free(node: NonNull<u8>, layout: Layout) {
        /// Frees a block that is not kept.
        ///
        /// # Safety
        /// The contract of `Heap::free`.
        unsafe fn free(block: NonNull<u8>, layout: Layout) {
            // SAFETY: the caller keeps the contract.
            unsafe { Heap::free(block, layout) }
        }
        // SAFETY: the caller gives the block away. The block is from `Heap` with this layout, also
        // if it was kept meanwhile.
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
            // SAFETY: the block is that of an unshared `Arc` of a type of this size and alignment.
            unsafe { place.write(value) };
            // SAFETY: the pointer is from `Arc::into_raw`, of a type of the same size and
            // alignment, and the block has a value now.
            unsafe { Arc::from_raw(place.as_ptr()) }
        }
    }
}

/// Drops an `Arc`. If nobody shares the `Arc`, keeps its block for reuse, also if the drop of the
/// value panics.
#[inline]
pub(crate) fn recycle<T>(mut arc: Arc<T>) {
    /// # Safety
    /// The block is that of an unshared `Arc` of a type of T's size and alignment. The block has no
    /// value.
    unsafe fn free<T>(block: NonNull<u8>, _: Layout) {
        let place = block.cast::<MaybeUninit<T>>();
        // SAFETY: the caller promises this.
        drop(unsafe { Arc::from_raw(place.as_ptr()) });
    }
    /// The block of an unshared `Arc`. The block has no value when this guard is dropped.
    struct Block<T>(NonNull<T>);
    impl<T> Drop for Block<T> {
        fn drop(&mut self) {
            // SAFETY: the block is that of an unshared `Arc`, and has no value.
            unsafe { put(Use::Cell, Layout::new::<T>(), self.0.cast(), free::<T>) };
        }
    }
    if !is_kept(Layout::new::<T>()) || Arc::get_mut(&mut arc).is_none() {
        return;
    }
    let place = Arc::into_raw(arc).cast_mut();
    // SAFETY: the pointer of an `Arc` is not null.
    let block = Block(unsafe { NonNull::new_unchecked(place) });
    // SAFETY: `get_mut` has found that nobody else has the value, which is not used any more.
    unsafe { ptr::drop_in_place(block.0.as_ptr()) };
}

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
/// The caller gives the block away. `free` may free it with this layout.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
unsafe fn put(_: Use, layout: Layout, block: NonNull<u8>, free: Free) {
    // SAFETY: the caller promises this.
    unsafe { free(block, layout) }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
