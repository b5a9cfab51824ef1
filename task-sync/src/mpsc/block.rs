//! A block of slots, and a link to the next block.
use alloc::alloc::handle_alloc_error;
use core::{mem::MaybeUninit, ops::Deref, ptr, ptr::NonNull};
use sync_shim::{
    alloc::{self as memory, Layout},
    atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed, Retire},
    cell::UnsafeCell,
};

/// The number of slots in a block. The bits of `ready` must fit into a word. It is a power of two,
/// so that a position gives the right slot after positions wrap. It is small under a model, so that
/// a few messages need several blocks.
pub(super) const SLOTS: usize = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    2
} else if usize::BITS >= 64 {
    32
} else {
    16
};

/// The bits of `ready` that stand for slots.
pub(super) const ALL: usize = (1 << SLOTS) - 1;
/// The bit of `ready`: the receiver has waited for a slot of this block.
pub(super) const WAITING: usize = 1 << SLOTS;
/// The bit of `ready`: `free_at` is written.
pub(super) const RELEASED: usize = 2 << SLOTS;

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// See the front page of `chain.rs` for the rules.
pub(super) struct Block<T> {
    header: Header<T>,
    slots: [Slot<T>; SLOTS],
}

pub(super) struct Header<T> {
    /// The position of slot 0. It is written while one thread owns the block.
    pub(super) start: u64,
    pub(super) next: AtomicPtr<Block<T>>,
    /// A bit for each slot that holds a message or has held one, and the bits above.
    pub(super) ready: AtomicUsize,
    /// The receiver may free the block when it has reached this position.
    pub(super) free_at: UnsafeCell<u64>,
}

impl<T> Deref for Block<T> {
    type Target = Header<T>;

    #[inline(always)]
    fn deref(&self) -> &Header<T> {
        &self.header
    }
}

impl<T> Block<T> {
    /// Allocates a block without messages.
    pub(super) fn new(start: u64) -> NonNull<Self> {
        let layout = Layout::new::<Self>();
        // SAFETY: the layout's size is not zero, since `start` has a size.
        let block = unsafe { memory::alloc(layout) }.cast::<Self>();
        let Some(block) = NonNull::new(block) else {
            handle_alloc_error(layout);
        };
        let place = block.as_ptr();
        // The slots are initialised one by one, as the stack may have no room for a block of large
        // messages.
        for index in 0..SLOTS {
            // SAFETY: this place is in the block.
            let slot = unsafe { &raw mut (*place).slots[index] };
            // SAFETY: as above, and the block is fresh.
            unsafe { slot.write(UnsafeCell::new(MaybeUninit::uninit())) };
        }
        let header = Header {
            start,
            next: AtomicPtr::new(ptr::null_mut()),
            ready: AtomicUsize::new(0),
            free_at: UnsafeCell::new(0),
        };
        // SAFETY: this place is in the block.
        let place = unsafe { &raw mut (*place).header };
        // SAFETY: as above, and the block is fresh.
        unsafe { place.write(header) };
        block
    }

    /// Makes a used block as good as new.
    ///
    /// # Safety
    /// The caller owns the block, which holds no message.
    pub(super) unsafe fn reset(mut block: NonNull<Self>, start: u64) {
        // SAFETY: the caller owns the block.
        let block = unsafe { block.as_mut() };
        block.header.start = start;
        // Ordering: Relaxed, the caller owns the block.
        block.next.store(ptr::null_mut(), Relaxed);
        // Ordering: as above.
        block.ready.store(0, Relaxed);
    }

    /// Frees a block, but drops no message in it.
    ///
    /// # Safety
    /// The block is from [`new`](Self::new). The caller owns it, and does not use it again.
    pub(super) unsafe fn free(mut block: NonNull<Self>) {
        // SAFETY: the caller owns the block.
        let content = unsafe { block.as_mut() };
        content.header.next.retire();
        content.header.ready.retire();
        content.header.free_at.retire();
        content.slots.iter_mut().for_each(Retire::retire);
        // SAFETY: as above. Nothing in a block has a drop.
        unsafe { ptr::drop_in_place(block.as_ptr()) };
        // SAFETY: `new` got the block by `alloc`, with this layout.
        unsafe { memory::dealloc(block.as_ptr().cast(), Layout::new::<Self>()) };
    }

    /// Writes a message to a slot.
    ///
    /// # Safety
    /// The caller has claimed the slot, and has not written it.
    #[inline(always)]
    pub(super) unsafe fn write(&self, slot: usize, message: T) {
        self.slots[slot].with_mut(|slot| {
            // SAFETY: only the caller uses the slot.
            unsafe { slot.cast::<T>().write(message) };
        });
    }

    /// Moves the message out of a slot.
    ///
    /// # Safety
    /// The caller is the receiver, has acquired the slot's bit, and reads the slot once.
    #[inline(always)]
    pub(super) unsafe fn read(&self, slot: usize) -> T {
        self.slots[slot].with(|slot| {
            // SAFETY: the slot is written, and the receiver's.
            unsafe { slot.cast::<T>().read() }
        })
    }
}
