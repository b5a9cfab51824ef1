//! Claiming several items at once, and giving them back (rules 6 to 9 of [`ring`](super)).
use super::{Storage, Worker, read, write};
use core::mem;

impl<T: Send, S: Storage<T>> Worker<T, S> {
    /// Sets how many items the owner claims at once: at least 1 (the default), at most half of the
    /// capacity.
    ///
    /// With 1, every item stays available to thieves until the owner pops it or
    /// [`pop_n`](Self::pop_n) claims it, and every pop costs a read-modify-write. With `n`, as few
    /// as one pop in `n` costs a read-modify-write. A claimed item waits for the owner's next
    /// operation before a thief can get it. An item that was pushed into the empty ring counts as
    /// claimed.
    ///
    /// So use more than 1 for an owner whose next operation comes soon, such as a scheduler's
    /// worker, which takes a task after each poll. Use 1 for an owner that pushes and then waits
    /// for a thief to do the work.
    ///
    /// The items that the owner has claimed so far are given back, as when a thief requests items.
    ///
    /// ```
    /// use queue_spmc::ring::{Steal, Worker};
    ///
    /// let mut worker = Worker::new(256).with_claim(16);
    /// let stealer = worker.stealer();
    /// worker.push(1)?;
    /// assert_eq!(stealer.steal(), Steal::Empty);
    /// worker.push(2)?;
    /// assert_eq!(stealer.steal(), Steal::Success { first: 1, moved: 0 });
    /// # Ok::<(), queue_spmc::ring::Full<i32>>(())
    /// ```
    pub fn with_claim(mut self, items: usize) -> Self {
        self.give_back();
        // If `private` stayed true, the next push could make its item private (rule 8). That would
        // hide the item from thieves even if the new number is 1.
        self.private = false;
        self.claim_max = items.clamp(1, self.capacity() / 2) as u32;
        self.pop_one_max = if self.claim_max > 1 { 2 } else { u32::MAX };
        self
    }

    /// Returns whether claimed items became available again since the last call of this method.
    ///
    /// Items become available after a thief's request, when a [`PopN`](super::PopN) is dropped
    /// early, and in [`with_claim`](Self::with_claim). A scheduler treats `true` like a push: it
    /// wakes a thief if a push would.
    pub fn gave_back(&mut self) -> bool {
        mem::take(&mut self.gave_back)
    }

    /// Prepares for items that come in other than by a push.
    pub(super) fn before_insert(&mut self) {
        self.serve_request();
        self.publish_private();
    }

    /// Publishes the private item, if there is one (rule 8).
    #[inline]
    pub(super) fn publish_private(&mut self) {
        if mem::take(&mut self.private) && self.first_slot != self.end_slot {
            self.first_slot = self.end_slot;
            self.publish_up_to(self.end_position);
        }
    }

    #[inline(never)]
    pub(super) fn claim_and_pop(&mut self) -> Option<T> {
        if !self.claim_by(Self::claim_of) {
            return None;
        }
        let item = self.take_claimed();
        self.serve_request();
        Some(item)
    }

    /// Returns how many of `len` available items to claim (rule 6).
    fn claim_of(&mut self, len: u32) -> u32 {
        if self.header().request() != 0 {
            self.clear_request();
            return 1;
        }
        self.claim_max.min(len - len / 2)
    }

    /// Claims items (rule 6). Returns false if none is available.
    #[inline(always)]
    pub(super) fn claim_by(&mut self, how_many: impl Fn(&mut Self, u32) -> u32) -> bool {
        let mut head = self.expected_head();
        loop {
            let len = self.tail.wrapping_sub(head.real());
            if len == 0 {
                return false;
            }
            let own = head.real() & self.mask;
            let n = how_many(self, len).min(self.mask + 1 - own);
            let claimed = head.real().wrapping_add(n);
            match self.move_head(head, claimed) {
                Ok(()) => {
                    (self.first_slot, self.end_slot, self.end_position) = (own, own + n, claimed);
                    return true;
                }
                Err(now) => head = now,
            }
        }
    }

    #[inline(always)]
    pub(super) fn take_claimed(&mut self) -> T {
        let at = self.first_slot;
        self.first_slot = at + 1;
        // SAFETY: the item is claimed, and read once: `first_slot` has moved on.
        unsafe { read(self.ring.slots(), at) }
    }

    /// Gives the claimed items back if a thief made a request that is not handled yet (rule 7).
    #[inline(always)]
    pub(super) fn serve_request(&mut self) {
        if self.header().request() != self.handled_request {
            self.give_back();
        }
    }

    #[cold]
    pub(super) fn give_back(&mut self) {
        if self.first_slot == self.end_slot {
            self.handled_request = self.header().request();
            return;
        }
        if self.private {
            self.publish_private();
            self.mark_given_back();
            return;
        }
        let mut head = self.header().load_head();
        while head.real() == self.end_position {
            match self.move_head(head, self.first_position()) {
                Ok(()) => {
                    self.first_slot = self.end_slot;
                    self.mark_given_back();
                    return;
                }
                Err(now) => head = now,
            }
        }
        while head.real() != self.tail {
            self.clear_request();
            // Claim 7: the exchange changes nothing, but fails if `head` has changed.
            match self.move_head(head, head.real()) {
                Ok(()) => return,
                Err(now) => head = now,
            }
        }
        let after = self.tail.wrapping_add(self.claimed_len());
        if after.wrapping_sub(head.steal()) > self.slots() {
            // A thief still copies from the slots that are needed: the next operation tries again.
            self.header().set_request(1);
            return;
        }
        while self.first_slot != self.end_slot {
            // The item's own slot is the oldest in use, so there is room for the item at the tail.
            let item = self.take_claimed();
            // SAFETY: this is the owner, and there is room.
            unsafe { write(self.ring.slots(), self.tail & self.mask, item) };
            self.tail = self.tail.wrapping_add(1);
        }
        self.publish_up_to(after);
        self.mark_given_back();
    }

    fn mark_given_back(&mut self) {
        self.gave_back = true;
        self.clear_request();
    }

    pub(super) fn clear_request(&mut self) {
        self.handled_request = 0;
        self.header().set_request(0);
    }
}

impl<T, S: Storage<T>> Worker<T, S> {
    pub(super) fn claimed_len(&self) -> u32 {
        self.end_slot - self.first_slot
    }

    /// Returns the position of the oldest claimed item: `next` in the module's rules.
    pub(super) fn first_position(&self) -> u32 {
        self.end_position.wrapping_sub(self.claimed_len())
    }
}
