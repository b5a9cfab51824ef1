//! A block of slots, and a link to the next.
use alloc::alloc::handle_alloc_error;
use core::{mem::MaybeUninit, ptr, ptr::NonNull};
use sync_shim::{
    alloc::{self as memory, Layout},
    atomic::Retire,
    cell::UnsafeCell,
};

/// Slots of a block. A power of two, so that positions stay in step with slots when they wrap; few
/// under the model, for it to get from one block to the next.
pub(super) const SLOTS: usize = if cfg!(selvedge_loom) { 2 } else { 128 };

/// Values that a batch holds. They lie in two blocks at most.
pub(super) const BATCH: usize = if cfg!(selvedge_loom) { 2 } else { 32 };

const _: () = assert!(SLOTS.is_power_of_two() && BATCH <= SLOTS);

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

pub(super) struct Block<T> {
    next: UnsafeCell<*mut Self>,
    slots: [Slot<T>; SLOTS],
}

impl<T> Block<T> {
    /// A block that holds nothing and leads to nothing.
    pub(super) fn new() -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the link has a size.
        let block = unsafe { memory::alloc(layout) }.cast::<Self>();
        let Some(block) = NonNull::new(block) else {
            handle_alloc_error(layout);
        };
        let place = block.as_ptr();
        // SAFETY: in the block.
        let next = unsafe { &raw mut (*place).next };
        // SAFETY: as above, and fresh.
        unsafe { next.write(UnsafeCell::new(ptr::null_mut())) };
        // One by one: a block's worth of large values is too much for the stack.
        for index in 0..SLOTS {
            // SAFETY: in the block.
            let slot = unsafe { &raw mut (*place).slots[index] };
            // SAFETY: as above, and fresh.
            unsafe { slot.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
        block
    }

    /// Frees a block, not the values in it.
    ///
    /// # Safety
    /// It is from [`new`](Self::new), the caller's alone, and not used again.
    pub(super) unsafe fn free(mut block: NonNull<Self>) {
        // SAFETY: the caller's.
        let content = unsafe { block.as_mut() };
        content.next.retire();
        content.slots.iter_mut().for_each(Retire::retire);
        // SAFETY: the caller's. Nothing in a block has a drop.
        unsafe { ptr::drop_in_place(block.as_ptr()) };
        // SAFETY: from `alloc` with this layout.
        unsafe { memory::dealloc(block.as_ptr().cast(), Layout::new::<Self>()) };
    }

    /// Writes `len` values to the slots from `slot` on.
    ///
    /// # Safety
    /// Unless `len` is 0: the block is live, has the slots, and the caller alone uses them;
    /// `values` has so many to read.
    #[inline(always)]
    pub(super) unsafe fn write(block: *const Self, slot: usize, values: *const T, len: usize) {
        for index in 0..len {
            // SAFETY: the caller's.
            let slot = unsafe { &(*block).slots[slot + index] };
            // SAFETY: the caller's.
            let value = unsafe { values.add(index) };
            slot.with_mut(|slot| {
                // SAFETY: the caller's.
                unsafe { slot.cast::<T>().copy_from_nonoverlapping(value, 1) }
            });
        }
    }

    /// Moves the values of `len` slots from `slot` on to `to`.
    ///
    /// # Safety
    /// Unless `len` is 0: the block is live and has the slots, which hold values, and the caller
    /// alone uses them; `to` has room for so many.
    #[inline(always)]
    pub(super) unsafe fn read(block: *const Self, slot: usize, to: *mut T, len: usize) {
        for index in 0..len {
            // SAFETY: the caller's.
            let slot = unsafe { &(*block).slots[slot + index] };
            // SAFETY: the caller's.
            let to = unsafe { to.add(index) };
            slot.with(|slot| {
                // SAFETY: the caller's.
                unsafe { slot.cast::<T>().copy_to_nonoverlapping(to, 1) }
            });
        }
    }

    /// Makes `next` the block behind.
    ///
    /// # Safety
    /// The block is live, and no other thread reads or writes its link meanwhile.
    pub(super) unsafe fn link(block: NonNull<Self>, next: NonNull<Self>) {
        // SAFETY: the caller's.
        let block = unsafe { block.as_ref() };
        // SAFETY: the caller's.
        block.next.with_mut(|link| unsafe { *link = next.as_ptr() });
    }

    /// The block behind.
    ///
    /// # Safety
    /// The block is live, and no other thread writes its link meanwhile.
    pub(super) unsafe fn next(block: NonNull<Self>) -> *mut Self {
        // SAFETY: the caller's.
        let block = unsafe { block.as_ref() };
        // SAFETY: the caller's.
        block.next.with(|link| unsafe { *link })
    }
}
