//! Popping several items at once.
use super::{Shared, Storage, Worker};
use core::fmt;

impl<T: Send, S: Storage<T>> Worker<T, S> {
    /// Pops up to `n` items. Claims them with one read-modify-write, or with two if the items wrap
    /// around the end of the slots.
    ///
    /// Dropping the iterator gives back the items that it has claimed and not yielded, as when a
    /// thief requests items. That costs one read-modify-write, or none if thieves have taken all
    /// items from behind the claimed ones. If thieves took only some of the items behind the
    /// claimed ones, the claimed items stay claimed. The owner then pops them next, or its next
    /// operation after a request gives them back. If the iterator is leaked, its items stay claimed
    /// in the same way.
    pub fn pop_n(&mut self, n: usize) -> PopN<'_, T, S> {
        PopN {
            worker: self,
            left: n,
        }
    }

    /// Pops until the ring is empty, in the same way as [`pop_n`](Self::pop_n).
    pub fn drain(&mut self) -> PopN<'_, T, S> {
        self.pop_n(usize::MAX)
    }
}

/// An iterator over items that are popped together. See [`Worker::pop_n`].
pub struct PopN<'a, T: Send, S: Storage<T> = Shared<T>> {
    worker: &'a mut Worker<T, S>,
    left: usize,
}

impl<T: Send, S: Storage<T>> Iterator for PopN<'_, T, S> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let left = self.left;
        if left == 0 {
            return None;
        }
        let all = u32::try_from(left).unwrap_or(u32::MAX);
        let worker = &mut *self.worker;
        if worker.first_slot == worker.end_slot {
            // If this operation leaves claimed items, the next one handles an earlier request.
            worker.handled_request = 0;
            if !worker.claim_by(|_, len| len.min(all)) {
                return None;
            }
        }
        self.left = left - 1;
        Some(worker.take_claimed())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let own = self.worker.claimed_len() as usize;
        (own.min(self.left), Some(self.worker.len().min(self.left)))
    }
}

impl<T: Send, S: Storage<T>> Drop for PopN<'_, T, S> {
    /// Gives back, by rule 7 of the ring, the claimed items that were not yielded. If the iterator
    /// has yielded all `n` items, the items that the owner claimed before stay claimed.
    fn drop(&mut self) {
        if self.left > 0 && self.worker.first_slot != self.worker.end_slot {
            self.worker.give_back();
        }
    }
}

impl<T: Send, S: Storage<T>> fmt::Debug for PopN<'_, T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PopN")
            .field("left", &self.left)
            .field("worker", &self.worker)
            .finish()
    }
}
