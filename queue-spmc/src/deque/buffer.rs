//! A power of two of slots.
use super::{MaybeUninit, Retire, UnsafeCell};
use alloc::boxed::Box;

pub(super) struct Buffer<T>(Box<[UnsafeCell<MaybeUninit<T>>]>);

impl<T> Buffer<T> {
    pub(super) fn new(capacity: usize) -> Self {
        debug_assert!(capacity.is_power_of_two());
        Self(
            (0..capacity)
                .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
                .collect(),
        )
    }

    pub(super) fn capacity(&self) -> u32 {
        self.0.len() as u32
    }

    #[inline(always)]
    fn slot(&self, position: u32) -> &UnsafeCell<MaybeUninit<T>> {
        let index = position as usize & (self.0.len() - 1);
        // SAFETY: there is a power of two of slots, so the mask keeps the index inside.
        unsafe { self.0.get_unchecked(index) }
    }

    /// # Safety
    /// The slot of `position` holds an item that the caller has taken and reads once, and nobody writes it meanwhile.
    #[inline(always)]
    pub(super) unsafe fn read(&self, position: u32) -> T {
        // SAFETY: the caller's.
        self.slot(position)
            .with(|slot| unsafe { slot.cast::<T>().read() })
    }

    /// # Safety
    /// Nobody else touches the slot of `position` meanwhile, and it holds no item.
    #[inline(always)]
    pub(super) unsafe fn write(&self, position: u32, item: T) {
        // SAFETY: the caller's.
        self.slot(position)
            .with_mut(|slot| unsafe { slot.cast::<T>().write(item) });
    }

    /// Copies a slot, whatever is in it.
    ///
    /// # Safety
    /// Nobody writes the slot of `position` in `from` meanwhile, nobody else touches it in `self`, and no item is read from both.
    pub(super) unsafe fn copy(&self, from: &Self, position: u32) {
        // SAFETY: the caller's.
        let slot = from.slot(position).with(|slot| unsafe { slot.read() });
        // SAFETY: the caller's.
        self.slot(position).with_mut(|to| unsafe { to.write(slot) });
    }

    /// Before it is freed: see [`Retire`].
    pub(super) fn retire(&mut self) {
        for slot in &mut self.0 {
            slot.retire();
        }
    }
}
