//! The owner's end: creation, push and pop.
use super::{Head, Header, Relaxed, Release, Shared, Storage, read, taken::Taken, write};
use crate::Full;
use core::{fmt, marker::PhantomData};

/// The owner's end of a ring: pushes at the back and pops at the front.
///
/// Each ring has one worker, and every operation that changes the ring takes `&mut self`.
/// Dropping the worker drops the items, except those that thieves have claimed by then.
///
/// A worker that is leaked (with `mem::forget`) leaves its available items to the stealers. An
/// [`Inline`](super::Inline) ring drops the rest of the available items when it is dropped; a ring
/// on the heap is never freed. The items that the leaked worker had claimed are never dropped.
///
/// ```compile_fail
/// let worker = queue_spmc::ring::Worker::<u8>::new(4);
/// let twice = worker.clone();
/// ```
///
/// A worker is `Sync`: `&Worker` has only operations that read, and they may run beside thieves.
/// They cannot run beside the owner's operations, which need `&mut`.
///
/// ```
/// let worker = queue_spmc::ring::Worker::<u8>::new(4);
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(worker.is_empty()));
///     scope.spawn(|| drop(worker.stealer()));
/// });
/// ```
///
/// ```compile_fail
/// let mut worker = queue_spmc::ring::Worker::<u8>::new(4);
/// std::thread::scope(|scope| {
///     scope.spawn(|| worker.is_empty());
///     worker.push(1);
/// });
/// ```
pub struct Worker<T, S: Storage<T> = Shared<T>> {
    pub(super) ring: S,
    /// The owner's own copy of `tail`.
    pub(super) tail: u32,
    /// The `tail` at which a push must load `head` again. The owner knows that there is room up to
    /// this position. It is never below `tail`, and equals `tail` while an item is private.
    limit: u32,
    /// The slots of the claimed items are `first_slot..end_slot`. A claim never wraps around the
    /// end of the slots, so that a pop of a claimed item needs no mask.
    pub(super) first_slot: u32,
    pub(super) end_slot: u32,
    /// The position of `end_slot`.
    pub(super) end_position: u32,
    /// Whether the last claim was the private item at `tail` (rule 8). Stays true after a pop of
    /// that item, until the owner publishes an item.
    pub(super) private: bool,
    /// The value of `request` that the owner has handled. By this copy the owner neither handles a
    /// request twice, nor writes `request` when it has nothing to give back.
    pub(super) handled_request: u32,
    pub(super) mask: u32,
    /// The `head` that the owner last wrote or loaded into this field. Only the owner moves `real`
    /// back, so the current `real` is at or past the `real` of this copy. This has two
    /// consequences. The owner may expect the copy in an exchange without a load. And if the `real`
    /// of the copy is at `tail`, no item is available.
    ///
    /// The `real` of the copy is at most the capacity before `limit`: each operation that computes
    /// room loads `head` into the copy. So the copy is never 2³² items old; at that age its `real`
    /// would look like `tail`.
    last_head: Head,
    /// The most items that `pop` claims with one exchange.
    pub(super) claim_max: u32,
    /// If at most this many items are available, the owner pops them one by one.
    pub(super) pop_one_max: u32,
    pub(super) gave_back: bool,
    /// The items are in `ring`, whose type decides whether the worker is `Send` and `Sync`.
    item: PhantomData<fn() -> T>,
}

impl<T: Send> Worker<T> {
    /// Creates an empty ring on the heap. It allocates here and never again.
    ///
    /// # Panics
    /// If `capacity` is not a power of two, is below 2, or is above 2³¹.
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        Self::starting_at(capacity, 0)
    }

    #[track_caller]
    pub(crate) fn starting_at(capacity: usize, at: u32) -> Self {
        Self::on(Shared::new(capacity, at))
    }
}

impl<T: Send, S: Storage<T>> Worker<T, S> {
    /// Creates the owner of a ring that has no owner and no thief yet.
    pub(super) fn on(ring: S) -> Self {
        // Ordering: Relaxed, the caller has the ring to itself. Earlier writes are ordered by the
        // way in which the caller got the ring.
        let tail = ring.header().tail.load(Relaxed);
        let head = ring.header().load_head();
        let capacity = ring.slots().len() as u32;
        Self {
            ring,
            tail,
            limit: tail,
            first_slot: 0,
            end_slot: 0,
            end_position: tail,
            private: false,
            handled_request: 0,
            mask: capacity - 1,
            last_head: head,
            claim_max: 1,
            pop_one_max: u32::MAX,
            gave_back: false,
            item: PhantomData,
        }
    }

    /// Returns the most items that fit.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.ring.slots().len()
    }

    /// Returns the number of items in the ring. Thieves may take some at any time.
    #[inline]
    pub fn len(&self) -> usize {
        (self.claimed_len() + self.tail.wrapping_sub(self.header().load_head().real())) as usize
    }

    /// Returns whether the ring is empty. If true, it stays true until the next push.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if the owner knows, without an atomic operation, that the ring is empty.
    ///
    /// False may be out of date: thieves may have emptied the ring since the owner last looked.
    #[inline]
    pub fn is_surely_empty(&self) -> bool {
        self.first_slot == self.end_slot && self.tail == self.last_head.real()
    }

    /// Returns how many more items fit. It is a lower bound, since thieves only make room.
    #[inline]
    pub fn spare_capacity(&self) -> usize {
        self.room(self.header().load_head()) as usize
    }

    /// Puts an item at the back. Costs no read-modify-write, except to give claimed items back.
    ///
    /// # Errors
    /// Returns the item if the ring is full.
    #[inline(always)]
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        self.serve_request();
        if self.tail == self.limit {
            if self.private && self.first_slot == self.end_slot && self.handled_request == 0 {
                // Rule 8: nothing was published since the last private item, so the ring is
                // still empty.
                self.first_slot = self.end_slot - 1;
                // SAFETY: this is the owner, and the last private item was popped from this slot.
                unsafe { write(self.ring.slots(), self.first_slot, item) };
                return Ok(());
            }
            return self.push_at_limit(item);
        }
        // SAFETY: this is the owner, and there is room.
        unsafe { write(self.ring.slots(), self.tail & self.mask, item) };
        self.publish(self.tail.wrapping_add(1));
        Ok(())
    }

    /// Pushes when the ring may be empty or full, or when `limit` may be out of date.
    #[inline(never)]
    fn push_at_limit(&mut self, item: T) -> Result<(), Full<T>> {
        self.publish_private();
        self.last_head = self.header().load_head();
        let is_empty = self.last_head.real() == self.tail && self.first_slot == self.end_slot;
        let room = self.room(self.last_head);
        if room == 0 {
            return Err(Full(item));
        }
        let index = self.tail & self.mask;
        // SAFETY: this is the owner, and there is room.
        unsafe { write(self.ring.slots(), index, item) };
        let next = self.tail.wrapping_add(1);
        if is_empty && self.claim_max > 1 && self.header().request() == 0 {
            (self.first_slot, self.end_slot, self.end_position) = (index, index + 1, next);
            self.private = true;
            return Ok(());
        }
        self.limit = self.tail.wrapping_add(room);
        self.publish(next);
        if is_empty {
            self.clear_request();
        }
        Ok(())
    }

    /// Publishes the items before `tail`, which fit. The next push then computes `limit` anew.
    pub(super) fn publish_up_to(&mut self, tail: u32) {
        self.publish(tail);
        self.limit = tail;
    }

    /// Takes the oldest item.
    ///
    /// Costs one read-modify-write, and one more for each thief that takes items meanwhile. If the
    /// item is claimed already, the pop costs none, except to give claimed items back.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.first_slot == self.end_slot {
            if self.tail.wrapping_sub(self.last_head.real()) <= self.pop_one_max {
                return self.pop_one();
            }
            return self.claim_and_pop();
        }
        let item = self.take_claimed();
        self.serve_request();
        Some(item)
    }

    /// Returns the value that the next exchange expects: the owner's own copy, if that is current.
    /// An exchange that expects the loaded value would wait for the load, which may wait for the
    /// last exchange on the cache line.
    #[inline(always)]
    pub(super) fn expected_head(&self) -> Head {
        #[cold]
        #[inline(never)]
        fn moved(head: Head) -> Head {
            head
        }
        let now = self.header().load_head();
        if now != self.last_head {
            return moved(now);
        }
        self.last_head
    }

    #[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
    pub(super) fn set_last_head(&mut self, head: Head) {
        self.last_head = head;
    }

    /// Returns the distance from the `real` of `last_head` to `limit`, which is at most the
    /// capacity.
    #[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
    pub(super) fn limit_past_last_head(&self) -> u32 {
        self.limit.wrapping_sub(self.last_head.real())
    }

    /// Loads `head`, and returns how many items fit by it.
    #[inline]
    pub(super) fn load_room(&mut self) -> u32 {
        self.last_head = self.header().load_head();
        self.room(self.last_head)
    }

    /// Takes the oldest item by an exchange that takes only this item. The usual case comes first:
    /// `head` equals the owner's own copy, and no thief copies.
    #[inline(always)]
    fn pop_one(&mut self) -> Option<T> {
        let own = self.last_head;
        if own.real() == self.tail {
            return None;
        }
        // The exchange would check this too. But if thieves have taken items, this load spares the
        // owner an exchange that would fail.
        if self.header().load_head() != own || own.is_copying() {
            return self.pop_one_past_thieves();
        }
        if self.move_head(own, own.real().wrapping_add(1)).is_err() {
            return self.pop_one_past_thieves();
        }
        Some(self.take_popped(own))
    }

    #[cold]
    #[inline(never)]
    fn pop_one_past_thieves(&mut self) -> Option<T> {
        let mut head = self.header().load_head();
        loop {
            if head.real() == self.tail {
                self.last_head = head;
                return None;
            }
            match self.move_head(head, head.real().wrapping_add(1)) {
                Ok(()) => return Some(self.take_popped(head)),
                Err(now) => head = now,
            }
        }
    }

    /// Reads the item that an exchange has taken: the one at the `real` of `head`.
    #[inline(always)]
    fn take_popped(&mut self, head: Head) -> T {
        let real = self.last_head.real();
        if real == self.tail && self.claim_max > 1 {
            // The next push then checks whether the ring is empty.
            self.limit = real;
        }
        // SAFETY: the exchange took the item.
        unsafe { read(self.ring.slots(), head.real() & self.mask) }
    }

    /// Pushes items until the ring is full or the iterator ends; returns how many it pushed.
    ///
    /// Items that do not fit stay in the iterator: pass `&mut iterator` to keep them. Thieves see
    /// the pushed items together, at the end.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) -> usize {
        /// Publishes the pushed items, also if the iterator panics.
        struct Publish<'a, T: Send, S: Storage<T>>(&'a mut Worker<T, S>, u32);
        impl<T: Send, S: Storage<T>> Drop for Publish<'_, T, S> {
            fn drop(&mut self) {
                self.0.publish(self.1);
            }
        }
        self.before_insert();
        let mut items = items.into_iter();
        let before = self.tail;
        let mut new = Publish(self, before);
        // `tail` moves with each item for `has_room`, and is published once.
        while new.0.has_room() {
            let Some(item) = items.next() else { break };
            // SAFETY: this is the owner, and there is room: the iterator cannot reach this ring's
            // owner.
            unsafe { write(new.0.ring.slots(), new.1 & new.0.mask, item) };
            new.1 = new.1.wrapping_add(1);
            new.0.tail = new.1;
        }
        let pushed = new.1.wrapping_sub(before);
        drop(new);
        pushed as usize
    }

    #[inline(always)]
    pub(super) fn publish(&mut self, tail: u32) {
        self.tail = tail;
        // Ordering: Release pairs with the Acquire load of `tail` in `Stealer::claim`: the slots
        // before `tail` are written.
        self.header().tail.store(tail, Release);
    }

    #[inline(always)]
    fn has_room(&mut self) -> bool {
        if self.tail != self.limit {
            return true;
        }
        let room = self.load_room();
        self.limit = self.tail.wrapping_add(room);
        room != 0
    }

    /// Returns the number of items that fit, by this `head`.
    #[inline]
    pub(super) fn room(&self, head: Head) -> u32 {
        let since = |position| self.tail.wrapping_sub(position);
        let mut used = since(head.steal());
        if self.first_slot != self.end_slot {
            used = used.max(since(self.first_position())) + u32::from(self.private);
        }
        self.slots() - used
    }

    #[inline(always)]
    pub(super) fn move_head(&mut self, from: Head, real: u32) -> Result<(), Head> {
        let to = from.moved(real);
        self.header().exchange_head(from, to)?;
        self.last_head = to;
        Ok(())
    }
}

impl<T, S: Storage<T>> Worker<T, S> {
    #[inline(always)]
    pub(super) fn header(&self) -> &Header {
        self.ring.header()
    }

    #[inline]
    pub(super) fn slots(&self) -> u32 {
        self.ring.slots().len() as u32
    }
}

impl<T, S: Storage<T>> Drop for Worker<T, S> {
    fn drop(&mut self) {
        let mut head = self.header().load_head();
        while let Err(now) = self.header().exchange_head(head, head.moved(self.tail)) {
            head = now;
        }
        let slots = self.ring.slots();
        // SAFETY: the owner has claimed these items and writes no slot any more.
        let own = unsafe { Taken::new(slots, self.first_position(), self.claimed_len()) };
        // SAFETY: the exchange took these items, and the owner writes no slot any more.
        let others = unsafe { Taken::new(slots, head.real(), self.tail.wrapping_sub(head.real())) };
        drop((own, others));
    }
}

impl<T, S: Storage<T>> fmt::Debug for Worker<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("claimed", &self.claimed_len())
            .field("len", &self.header().len())
            .finish_non_exhaustive()
    }
}
