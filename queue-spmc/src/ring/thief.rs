//! A thief's end.
use super::{
    Acquire, Core, Head, Shared, Slot, Steal, StealLimit, Storage, Worker, index, read, write,
};
use core::{fmt, marker::PhantomData, ptr};

/// A thief's end. Clones share the ring.
pub struct Stealer<T, S: Storage<T> = Shared<T>> {
    pub(super) ring: S,
    pub(super) item: PhantomData<fn() -> T>,
}

impl<T: Send, S: Storage<T>> Stealer<T, S> {
    /// Items that can be stolen, as far as this thread sees; what the owner has claimed is not among them. After a `SeqCst` fence it counts every item
    /// whose push came before another thread's `SeqCst` fence that precedes this one, and that
    /// was not taken.
    pub fn len(&self) -> usize {
        // A head that is older than the tail by a round of the ring.
        (self.ring.core().len() as usize).min(self.ring.slots().len())
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this steals from `worker`'s ring.
    pub fn is_of<R: Storage<T>>(&self, worker: &Worker<T, R>) -> bool {
        ptr::eq(self.ring.core(), worker.ring.core())
    }

    /// Whether both steal from one ring.
    pub fn same_queue<R: Storage<T>>(&self, other: &Stealer<T, R>) -> bool {
        ptr::eq(self.ring.core(), other.ring.core())
    }

    /// Takes the oldest item. Two read-modify-writes.
    pub fn steal(&self) -> Steal<T> {
        match self.claim(StealLimit::AtMost(1), 1) {
            Claim::Nothing => Steal::Empty,
            Claim::Busy => Steal::Retry,
            Claim::Items(claimed) => {
                // SAFETY: claimed.
                let first = unsafe { read(claimed.slots, index(claimed.slots, claimed.from)) };
                drop(claimed);
                Steal::Success { first, moved: 0 }
            }
        }
    }

    /// Takes up to `limit` of the oldest items: the first to run at once, the others into
    /// `worker`'s ring as far as there is room, in their order. Two read-modify-writes.
    ///
    /// Stealing from one's own ring takes nothing: [`Steal::Empty`].
    pub fn steal_into_and_pop<R: Storage<T>>(
        &self,
        worker: &mut Worker<T, R>,
        limit: StealLimit,
    ) -> Steal<T> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        worker.open();
        match self.claim(limit, worker.spare_capacity() + 1) {
            Claim::Nothing => Steal::Empty,
            Claim::Busy => Steal::Retry,
            Claim::Items(mut claimed) => {
                // SAFETY: claimed.
                let first = unsafe { read(claimed.slots, index(claimed.slots, claimed.from)) };
                claimed.from = claimed.from.wrapping_add(1);
                claimed.n -= 1;
                let moved = claimed.move_to(worker);
                Steal::Success { first, moved }
            }
        }
    }

    /// Moves up to `limit` of the oldest items into `worker`'s ring, in their order, as far as
    /// there is room, and tells how many. Two read-modify-writes.
    ///
    /// A full ring takes nothing, nor does one's own: [`Steal::Empty`].
    pub fn steal_into<R: Storage<T>>(
        &self,
        worker: &mut Worker<T, R>,
        limit: StealLimit,
    ) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        worker.open();
        match self.claim(limit, worker.spare_capacity()) {
            Claim::Nothing => Steal::Empty,
            Claim::Busy => Steal::Retry,
            Claim::Items(claimed) => {
                let moved = claimed.move_to(worker);
                Steal::Success { first: (), moved }
            }
        }
    }

    /// Rule 3: takes items for copying.
    fn claim(&self, limit: StealLimit, room: usize) -> Claim<'_, T> {
        let (core, slots) = (self.ring.core(), self.ring.slots());
        let head = core.load_head();
        // Ordering: Acquire pairs with `publish`: the slots up to here are written.
        let len = core.tail.load(Acquire).wrapping_sub(head.real());
        if len == 0 {
            core.set_wanted(1);
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
        if core.exchange_head(head, claimed).is_err() {
            return Claim::Busy;
        }
        Claim::Items(Claimed {
            core,
            slots,
            from,
            n,
        })
    }
}

enum Claim<'a, T> {
    Nothing,
    /// Another thief copies, or won.
    Busy,
    Items(Claimed<'a, T>),
}

/// Items that a thief copies. Dropped, it releases their slots to the owner, not the items.
struct Claimed<'a, T> {
    core: &'a Core,
    slots: &'a [Slot<T>],
    from: u32,
    n: u32,
}

impl<T: Send> Claimed<'_, T> {
    /// Moves them behind the other ring's tail, where the claim was bounded by the room.
    fn move_to<R: Storage<T>>(self, worker: &mut Worker<T, R>) -> usize {
        let (to, tail) = (worker.ring.slots(), worker.tail);
        for i in 0..self.n {
            // SAFETY: claimed, and read once.
            let item = unsafe { read(self.slots, index(self.slots, self.from.wrapping_add(i))) };
            // SAFETY: the worker's borrow is its owner's, and there is room.
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
        // Rule 3.
        let mut head = self.core.load_head();
        while let Err(now) = self.core.exchange_head(head, Head::both(head.real())) {
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
            .field("len", &self.ring.core().len())
            .finish_non_exhaustive()
    }
}
