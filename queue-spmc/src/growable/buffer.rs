//! The buffer of a growable queue: a power of two of slots.
use super::{MaybeUninit, Retire, UnsafeCell};
use alloc::boxed::Box;

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

pub(super) struct Buffer<T>(Box<[Slot<T>]>);

impl<T> Buffer<T> {
    pub(super) fn new(capacity: u32) -> Self {
        debug_assert!(capacity.is_power_of_two());
        let slot = |_| {
            let mut slot = MaybeUninit::<T>::uninit();
            if cfg!(test) {
                // Fills the slot with a pattern. So a test that reads a slot without an item does
                // not find the item of an earlier buffer in the same memory.
                // SAFETY: the bytes belong to the slot.
                unsafe { slot.as_mut_ptr().write_bytes(0xa5, 1) };
            }
            UnsafeCell::new(slot)
        };
        Self((0..capacity).map(slot).collect())
    }

    pub(super) fn slots(&self) -> Slots<T> {
        Slots {
            first: self.0.as_ptr(),
            mask: self.0.len() as u32 - 1,
        }
    }

    /// Frees a buffer that came from `Box::into_raw`, without dropping the items in it.
    ///
    /// # Safety
    /// The pointer came from a box, and this call is the last that uses it or its [`Slots`].
    pub(super) unsafe fn free(buffer: *mut Self) {
        // SAFETY: by the caller's contract.
        let mut buffer = unsafe { Box::from_raw(buffer) };
        for slot in &mut buffer.0 {
            slot.retire();
        }
    }
}

/// The slots of a buffer. The holder of this value must keep the buffer from being freed.
pub(crate) struct Slots<T> {
    first: *const Slot<T>,
    mask: u32,
}

impl<T> Clone for Slots<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slots<T> {}

impl<T> Slots<T> {
    #[inline(always)]
    pub(super) fn capacity(self) -> u32 {
        self.mask + 1
    }

    /// # Safety
    /// The buffer is not freed while the reference lives.
    #[inline(always)]
    pub(super) unsafe fn slot<'a>(self, position: u32) -> &'a Slot<T> {
        // SAFETY: the mask keeps the index inside.
        let slot = unsafe { self.first.add((position & self.mask) as usize) };
        // SAFETY: by the caller's contract.
        unsafe { &*slot }
    }

    /// # Safety
    /// The buffer is not freed during the call. The slot of `position` holds an item that the
    /// caller has taken and reads once, and no thread writes the slot during the call.
    #[inline(always)]
    pub(crate) unsafe fn read(self, position: u32) -> T {
        // SAFETY: by the caller's contract.
        let slot = unsafe { self.slot(position) };
        // SAFETY: by the caller's contract.
        slot.with(|slot| unsafe { slot.cast::<T>().read() })
    }

    /// # Safety
    /// The buffer is not freed during the call. The slot of `position` holds no item, and no other
    /// thread touches it during the call.
    #[inline(always)]
    pub(crate) unsafe fn write(self, position: u32, item: T) {
        // SAFETY: by the caller's contract.
        let slot = unsafe { self.slot(position) };
        // SAFETY: by the caller's contract.
        slot.with_mut(|slot| unsafe { slot.cast::<T>().write(item) });
    }

    /// Copies a slot, whether or not it holds an item.
    ///
    /// # Safety
    /// Neither buffer is freed during the call. Meanwhile no thread writes the slot of `position`
    /// in `from`, and no other thread touches the slot of `position` in `self`. No item is read
    /// from both buffers.
    pub(super) unsafe fn copy(self, from: Self, position: u32) {
        // SAFETY: by the caller's contract.
        let source = unsafe { from.slot(position) };
        // SAFETY: by the caller's contract.
        let item = source.with(|slot| unsafe { slot.read() });
        // SAFETY: by the caller's contract.
        let target = unsafe { self.slot(position) };
        // SAFETY: by the caller's contract.
        target.with_mut(|slot| unsafe { slot.write(item) });
    }
}
