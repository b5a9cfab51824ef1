//! The thieves' end: stealing from the front.
use super::{
    Acquire, Head, Header, Shared, Slot, Steal, StealLimit, Storage, Worker, index, read, write,
};
use core::{fmt, marker::PhantomData, ptr};

/// A thief's end of a ring. Clones share the ring.
pub struct Stealer<T, S: Storage<T> = Shared<T>> {
    pub(super) ring: S,
    item: PhantomData<fn() -> T>,
}

impl<T: Send, S: Storage<T>> Worker<T, S> {
    /// Returns a thief's end of this ring.
    pub fn stealer(&self) -> Stealer<T, S> {
        Stealer {
            ring: self.ring.clone(),
            item: PhantomData,
        }
    }
}

impl<T: Send, S: Storage<T>> Stealer<T, S> {
    /// Returns the number of available items, as this thread sees it. Items that the owner has
    /// claimed do not count.
    ///
    /// Suppose that a push happens before a `SeqCst` fence of some thread, and that this thread has
    /// a later `SeqCst` fence before this call. Then the number includes the pushed item, unless
    /// the item is claimed or taken.
    pub fn len(&self) -> usize {
        // `head` may be older than `tail` by more than a round of the ring.
        (self.ring.header().len() as usize).min(self.ring.slots().len())
    }

    /// Returns whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this stealer steals from `worker`'s ring.
    pub fn is_of<R: Storage<T>>(&self, worker: &Worker<T, R>) -> bool {
        ptr::eq(self.ring.header(), worker.ring.header())
    }

    /// Returns whether both stealers steal from the same ring.
    pub fn same_queue<R: Storage<T>>(&self, other: &Stealer<T, R>) -> bool {
        ptr::eq(self.ring.header(), other.ring.header())
    }

    /// Takes the oldest item. Costs two read-modify-writes.
    pub fn steal(&self) -> Steal<T> {
        match self.claim(StealLimit::AtMost(1), 1) {
            Claim::Nothing => Steal::Empty,
            Claim::Busy => Steal::Retry,
            Claim::Items(claimed) => {
                // SAFETY: this thief has claimed the item.
                let first = unsafe { read(claimed.slots, index(claimed.slots, claimed.from)) };
                drop(claimed);
                Steal::Success { first, moved: 0 }
            }
        }
    }

    /// Takes up to `limit` of the oldest items: returns the first and moves the others into
    /// `worker`'s ring, in their order, as far as there is room. Costs two read-modify-writes.
    ///
    /// Takes nothing and returns [`Steal::Empty`] if `worker` owns this ring.
    pub fn steal_into_and_pop<R: Storage<T>>(
        &self,
        worker: &mut Worker<T, R>,
        limit: StealLimit,
    ) -> Steal<T> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        worker.before_insert();
        match self.claim(limit, worker.load_room() as usize + 1) {
            Claim::Nothing => Steal::Empty,
            Claim::Busy => Steal::Retry,
            Claim::Items(mut claimed) => {
                // SAFETY: this thief has claimed the item.
                let first = unsafe { read(claimed.slots, index(claimed.slots, claimed.from)) };
                claimed.from = claimed.from.wrapping_add(1);
                claimed.n -= 1;
                let moved = claimed.move_to(worker);
                Steal::Success { first, moved }
            }
        }
    }

    /// Moves up to `limit` of the oldest items into `worker`'s ring, in their order, as far as
    /// there is room. Returns how many it moved. Costs two read-modify-writes.
    ///
    /// Takes nothing and returns [`Steal::Empty`] if `worker`'s ring is full, or if `worker` owns
    /// this ring.
    pub fn steal_into<R: Storage<T>>(
        &self,
        worker: &mut Worker<T, R>,
        limit: StealLimit,
    ) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        worker.before_insert();
        match self.claim(limit, worker.load_room() as usize) {
            Claim::Nothing => Steal::Empty,
            Claim::Busy => Steal::Retry,
            Claim::Items(claimed) => {
                let moved = claimed.move_to(worker);
                Steal::Success { first: (), moved }
            }
        }
    }

    /// Claims items, which the caller then copies (rule 3).
    fn claim(&self, limit: StealLimit, room: usize) -> Claim<'_, T> {
        let (header, slots) = (self.ring.header(), self.ring.slots());
        let head = header.load_head();
        // Ordering: Acquire pairs with `Worker::publish`: the slots before this `tail` are written.
        let len = header.tail.load(Acquire).wrapping_sub(head.real());
        if len == 0 {
            header.set_request(1);
            return Claim::Nothing;
        }
        if head.is_copying() || len as usize > slots.len() {
            return Claim::Busy;
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let n = limit.of(len).min(room);
        if n == 0 {
            return Claim::Nothing;
        }
        let from = head.real();
        let claimed = Head::new(head.steal(), from.wrapping_add(n));
        if header.exchange_head(head, claimed).is_err() {
            return Claim::Busy;
        }
        Claim::Items(Claimed {
            header,
            slots,
            from,
            n,
        })
    }
}

enum Claim<'a, T> {
    Nothing,
    /// Another thief is copying, or won the exchange.
    Busy,
    Items(Claimed<'a, T>),
}

/// Items that a thief has claimed and copies. The drop of this value releases their slots to the
/// owner, and does not drop the items.
struct Claimed<'a, T> {
    header: &'a Header,
    slots: &'a [Slot<T>],
    from: u32,
    n: u32,
}

impl<T: Send> Claimed<'_, T> {
    /// Moves the items to the back of `worker`'s ring, which has room for all items of the claim.
    fn move_to<R: Storage<T>>(self, worker: &mut Worker<T, R>) -> usize {
        let (to, tail) = (worker.ring.slots(), worker.tail);
        for i in 0..self.n {
            // SAFETY: this thief has claimed the item, and reads it once.
            let item = unsafe { read(self.slots, index(self.slots, self.from.wrapping_add(i))) };
            // SAFETY: `&mut Worker` makes this thread the owner of `worker`'s ring, which has room.
            unsafe { write(to, index(to, tail.wrapping_add(i)), item) };
        }
        let n = self.n;
        drop(self);
        worker.publish_up_to(tail.wrapping_add(n));
        n as usize
    }
}

impl<T> Drop for Claimed<'_, T> {
    fn drop(&mut self) {
        // Rule 3: moves `steal` up to the `real` of this moment.
        let mut head = self.header.load_head();
        while let Err(now) = self.header.exchange_head(head, Head::both(head.real())) {
            head = now;
        }
    }
}

impl<T, S: Storage<T>> Clone for Stealer<T, S> {
    fn clone(&self) -> Self {
        Self {
            ring: self.ring.clone(),
            item: PhantomData,
        }
    }
}

impl<T, S: Storage<T>> fmt::Debug for Stealer<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer")
            .field("len", &self.ring.header().len())
            .finish_non_exhaustive()
    }
}
