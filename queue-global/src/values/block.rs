//! A block of slots, and a link to the next block.
use alloc::alloc::handle_alloc_error;
use core::{mem::MaybeUninit, ptr, ptr::NonNull};
use sync_shim::{
    alloc::{self as memory, Layout},
    atomic::Retire,
    cell::UnsafeCell,
};

/// The number of slots in a block. It is a power of two, so that a position still gives the right
/// slot after positions wrap. It is small under loom, so that a few values need several blocks.
pub(super) const SLOTS: usize = if cfg!(selvedge_loom) { 2 } else { 128 };

/// The most values in a batch. A batch lies in two blocks at most.
pub(super) const BATCH: usize = if cfg!(selvedge_loom) { 2 } else { 32 };

const _: () = assert!(SLOTS.is_power_of_two() && BATCH <= SLOTS);

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

pub(super) struct Block<T> {
    next: UnsafeCell<*mut Self>,
    slots: [Slot<T>; SLOTS],
}

impl<T> Block<T> {
    /// Makes a block that has no values, and links to no block.
    pub(super) fn new() -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout's size is not zero, since the link has a size.
        let block = unsafe { memory::alloc(layout) }.cast::<Self>();
        let Some(block) = NonNull::new(block) else {
            handle_alloc_error(layout);
        };
        let place = block.as_ptr();
        // SAFETY: this place is in the block.
        let next = unsafe { &raw mut (*place).next };
        // SAFETY: as above, and the block is fresh.
        unsafe { next.write(UnsafeCell::new(ptr::null_mut())) };
        // The slots are initialised one by one, as the stack may have no room for a block of large
        // values.
        for index in 0..SLOTS {
            // SAFETY: this place is in the block.
            let slot = unsafe { &raw mut (*place).slots[index] };
            // SAFETY: as above, and the block is fresh.
            unsafe { slot.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
        block
    }

    /// Frees a block, but drops no value in it.
    ///
    /// # Safety
    /// The block is from [`new`](Self::new). The caller alone owns it, and does not use it again.
    pub(super) unsafe fn free(mut block: NonNull<Self>) {
        // SAFETY: the block is the caller's.
        let content = unsafe { block.as_mut() };
        content.next.retire();
        content.slots.iter_mut().for_each(Retire::retire);
        // SAFETY: the block is the caller's. Nothing in a block has a drop.
        unsafe { ptr::drop_in_place(block.as_ptr()) };
        // SAFETY: `new` got the block by `alloc`, with this layout.
        unsafe { memory::dealloc(block.as_ptr().cast(), Layout::new::<Self>()) };
    }

    /// Writes `len` values to the slots from `slot` on.
    ///
    /// # Safety
    /// Unless `len` is 0: the block is live and has these slots, only the caller uses these slots,
    /// and `values` points to `len` values.
    #[inline(always)]
    pub(super) unsafe fn write(block: *const Self, slot: usize, values: *const T, len: usize) {
        for index in 0..len {
            // SAFETY: the caller promises this.
            let slot = unsafe { &(*block).slots[slot + index] };
            // SAFETY: the caller promises this.
            let value = unsafe { values.add(index) };
            slot.with_mut(|slot| {
                // SAFETY: the caller promises this.
                unsafe { slot.cast::<T>().copy_from_nonoverlapping(value, 1) }
            });
        }
    }

    /// Moves the values of `len` slots, from `slot` on, to `to`.
    ///
    /// # Safety
    /// Unless `len` is 0: the block is live and has these slots, the slots hold values, only the
    /// caller uses them, and `to` has room for `len` values.
    #[inline(always)]
    pub(super) unsafe fn read(block: *const Self, slot: usize, to: *mut T, len: usize) {
        for index in 0..len {
            // SAFETY: the caller promises this.
            let slot = unsafe { &(*block).slots[slot + index] };
            // SAFETY: the caller promises this.
            let to = unsafe { to.add(index) };
            slot.with(|slot| {
                // SAFETY: the caller promises this.
                unsafe { slot.cast::<T>().copy_to_nonoverlapping(to, 1) }
            });
        }
    }

    /// Links `next` as the block after this one.
    ///
    /// # Safety
    /// The block is live, and no other thread reads or writes its link meanwhile.
    pub(super) unsafe fn link(block: NonNull<Self>, next: NonNull<Self>) {
        // SAFETY: the caller promises this.
        let block = unsafe { block.as_ref() };
        // SAFETY: the caller promises this.
        block.next.with_mut(|link| unsafe { *link = next.as_ptr() });
    }

    /// Returns the block after this one.
    ///
    /// # Safety
    /// The block is live, and no other thread writes its link meanwhile.
    pub(super) unsafe fn next(block: NonNull<Self>) -> *mut Self {
        // SAFETY: the caller promises this.
        let block = unsafe { block.as_ref() };
        // SAFETY: the caller promises this.
        block.next.with(|link| unsafe { *link })
    }
}
