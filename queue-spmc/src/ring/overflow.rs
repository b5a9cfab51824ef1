//! Pushes to a full ring: the older half moves to an [`Overflow`].
use super::{Storage, Worker, taken::Taken};
use crate::{Full, Overflow};
use core::iter::{Chain, Once, once};

impl<T: Send, S: Storage<T>> Worker<T, S> {
    /// Puts an item at the back. If the ring is full, its older half and the item move to
    /// `overflow` in one batch.
    ///
    /// If the ring is full, the push costs one read-modify-write and the cost of `overflow`.
    /// Otherwise it costs what [`push`](Self::push) costs. While a thief copies, only the new item
    /// overflows, so that the owner never waits. If thieves make room in between, the item stays in
    /// the ring.
    #[inline]
    pub fn push_or_overflow(&mut self, item: T, overflow: &impl Overflow<T>) {
        if let Err(Full(item)) = self.push(item) {
            self.overflow(item, overflow);
        }
    }

    #[cold]
    pub(super) fn overflow(&mut self, mut item: T, overflow: &impl Overflow<T>) {
        loop {
            let head = self.header().load_head();
            if self.room(head) != 0 {
                // Thieves have made room in between.
                match self.push(item) {
                    Ok(()) => return,
                    Err(Full(back)) => item = back,
                }
                continue;
            }
            if head.is_copying() {
                overflow.push(item);
                return;
            }
            let others = self.tail.wrapping_sub(head.real());
            let half = self.ring.slots().len() as u32 / 2;
            let taken = half.saturating_sub(self.claimed_len()).min(others);
            let real = head.real().wrapping_add(taken);
            if taken == 0 || self.move_head(head, real).is_ok() {
                let (own, from) = (self.claimed_len(), self.first_position());
                self.first_slot = self.end_slot;
                let slots = self.ring.slots();
                // SAFETY: the items were claimed, and no longer count as claimed: `first_slot` is
                // at `end_slot`. Only `&mut self` can write slots, and it is borrowed here.
                let own = unsafe { Taken::new(slots, from, own) };
                // SAFETY: the exchange took the items; no thread writes slots, as above.
                let others = unsafe { Taken::new(slots, head.real(), taken) };
                overflow.push_batch(Batch(own.chain(others).chain(once(item))));
                return;
            }
            // A thief was first, so there may be room now.
        }
    }
}

/// The claimed items, the rest of the older half, and the item that found no room. This type exists
/// because `Chain` does not implement `ExactSizeIterator`.
struct Batch<'a, T>(Chain<Chain<Taken<'a, T>, Taken<'a, T>>, Once<T>>);

impl<T> Iterator for Batch<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> ExactSizeIterator for Batch<'_, T> {}
