//! Items that have been taken and not read yet.
use super::{Slot, index, read};

/// An iterator that reads taken items one by one, and drops the rest.
pub(super) struct Taken<'a, T> {
    slots: &'a [Slot<T>],
    next: u32,
    left: u32,
}

impl<'a, T> Taken<'a, T> {
    /// # Safety
    /// The caller has taken `left` items from position `next` on, and no thread writes their slots
    /// during `'a`.
    pub(super) unsafe fn new(slots: &'a [Slot<T>], next: u32, left: u32) -> Self {
        Self { slots, next, left }
    }
}

impl<T> Iterator for Taken<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = at.wrapping_add(1);
        // SAFETY: the item was taken, by `new`'s contract, and is read once.
        Some(unsafe { read(self.slots, index(self.slots, at)) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

impl<T> Drop for Taken<'_, T> {
    fn drop(&mut self) {
        /// Drops the other items if an item's drop panics.
        struct DropRest<'a, 'b, T>(&'a mut Taken<'b, T>);
        impl<T> Drop for DropRest<'_, '_, T> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }
        let rest = DropRest(self);
        rest.0.for_each(drop);
    }
}
