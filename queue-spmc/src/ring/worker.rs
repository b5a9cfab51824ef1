//! The owner's end.
use super::{Core, Head, Relaxed, Release, Shared, Stealer, Storage, read, taken::Taken, write};
use crate::{Full, Overflow};
use core::{
    fmt,
    iter::{Chain, Once, once},
    marker::PhantomData,
    mem,
};

/// The owner's end: pushes at the back, pops at the front.
///
/// There is one, and every operation that changes the ring takes `&mut self`. When it is dropped it drops the items;
/// what thieves have claimed by then is theirs. A worker that is forgotten leaves its items to the stealers, and those in an [`Inline`](super::Inline) ring to the ring's
/// drop; a ring on the heap is then never freed, and what the worker had claimed is never dropped.
///
/// ```compile_fail
/// let worker = queue_spmc::ring::Worker::<u8>::new(4);
/// let twice = worker.clone();
/// ```
///
/// A shared worker has only the operations that read, and they run beside thieves, not beside the
/// owner's, which need the worker alone. So it is `Sync`:
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
    /// The tail at which a push has to look again: where the ring is full, by an `oldest` that the owner has seen, or before. Never below `tail`, and
    /// `tail` itself while an item is early.
    limit: u32,
    /// The slots of the claimed items, `own..end`: a claim ends where the slots do, so that popping needs no mask.
    pub(super) own: u32,
    pub(super) end: u32,
    /// The position that `end` stands for.
    claimed: u32,
    /// Whether what is claimed is the one item at `tail`, not published yet.
    pub(super) early: bool,
    /// The `wanted` that the owner has taken note of: so that it neither looks twice nor writes when it has nothing to give back.
    heard: u32,
    mask: u32,
    /// The `head` that the owner wrote last. If it is that no more, `real` has moved on from there; so an exchange may expect it without a look,
    /// and nothing is left to take when it is at the tail.
    head: Head,
    /// The most that is claimed at once.
    claim: u32,
    /// So many items are popped one by one.
    few: u32,
    gave_back: bool,
    /// What it holds is in the ring, which says whether it may be sent and shared.
    item: PhantomData<fn() -> T>,
}

impl<T: Send> Worker<T> {
    /// An empty ring on the heap. It allocates at its birth, then never again.
    ///
    /// # Panics
    /// When `capacity` is no power of two, below 2, or above 2³¹.
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
    /// The owner of a ring that has no other, nor a thief.
    pub(super) fn on(ring: S) -> Self {
        // Ordering: Relaxed, who hands the ring over orders it.
        let tail = ring.core().tail.load(Relaxed);
        let head = ring.core().load_head();
        let capacity = ring.slots().len() as u32;
        Self {
            ring,
            tail,
            limit: tail,
            own: 0,
            end: 0,
            claimed: tail,
            early: false,
            heard: 0,
            mask: capacity - 1,
            head,
            claim: 1,
            few: u32::MAX,
            gave_back: false,
            item: PhantomData,
        }
    }

    /// Sets how many items the owner claims at once: at least 1, at most half of the capacity; 1 unless told.
    ///
    /// With 1 every item stays open to thieves until the owner pops it or [`pop_n`](Self::pop_n)
    /// claims it, and every pop has a read-modify-write. With more, only one pop in so many has
    /// one, and what is claimed, an item pushed into the empty ring among it, waits for the owner's
    /// next operation before a thief can have it. So it is for owners that soon do something, such
    /// as a scheduler's worker between two polls; not for one that pushes and then waits for a
    /// thief to do the work.
    ///
    /// What the owner has claimed by its old number goes back, as it does when a thief asks.
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
        // The slot of an early item that was popped would take the next one, whatever the new
        // number.
        self.early = false;
        self.claim = items.clamp(1, self.capacity() / 2) as u32;
        self.few = if self.claim > 1 { 2 } else { u32::MAX };
        self
    }

    /// A thief's end of this ring.
    pub fn stealer(&self) -> Stealer<T, S> {
        Stealer {
            ring: self.ring.clone(),
            item: PhantomData,
        }
    }

    /// The most items that fit.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.ring.slots().len()
    }

    /// Items in the ring. Thieves may take some at any time.
    #[inline]
    pub fn len(&self) -> usize {
        (self.claimed_len() + self.tail.wrapping_sub(self.core().load_head().real())) as usize
    }

    /// Whether the ring is empty. True stays true until the next push.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the ring is empty, by what the owner knows without a look: true is true, false may be old, as thieves may have emptied it since. No atomic
    /// operation.
    #[inline]
    pub fn is_surely_empty(&self) -> bool {
        self.own == self.end && self.tail == self.head.real()
    }

    /// Items that can be pushed before the ring is full: at least so many, as thieves only make room.
    #[inline]
    pub fn spare_capacity(&self) -> usize {
        self.room(self.core().load_head()) as usize
    }

    /// Whether claimed items came back since this was last asked, because a thief wanted some, a
    /// [`PopN`] was dropped early or [`with_claim`](Self::with_claim) was called: to whoever puts
    /// thieves to sleep that is a push, and wakes one.
    pub fn gave_back(&mut self) -> bool {
        mem::take(&mut self.gave_back)
    }

    /// Puts an item at the back. No read-modify-write.
    ///
    /// # Errors
    /// Gives the item back when the ring is full.
    #[inline(always)]
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        self.answer();
        if self.tail == self.limit {
            if self.early && self.own == self.end && self.heard == 0 {
                // Rule 8, again: nothing was published since, so the ring is as empty as it was.
                self.own = self.end - 1;
                // SAFETY: the owner, and the last early item has left.
                unsafe { write(self.ring.slots(), self.own, item) };
                return Ok(());
            }
            return self.push_at_limit(item);
        }
        // SAFETY: the owner, and there is room.
        unsafe { write(self.ring.slots(), self.tail & self.mask, item) };
        self.publish(self.tail.wrapping_add(1));
        Ok(())
    }

    /// The ring may be empty, or full, or just at an old limit.
    #[inline(never)]
    fn push_at_limit(&mut self, item: T) -> Result<(), Full<T>> {
        self.publish_early();
        self.head = self.core().load_head();
        let is_empty = self.head.real() == self.tail && self.own == self.end;
        let room = self.room(self.head);
        if room == 0 {
            return Err(Full(item));
        }
        let index = self.tail & self.mask;
        // SAFETY: the owner, and there is room.
        unsafe { write(self.ring.slots(), index, item) };
        let next = self.tail.wrapping_add(1);
        if is_empty && self.claim > 1 && self.core().wanted() == 0 {
            (self.own, self.end, self.claimed) = (index, index + 1, next);
            self.early = true;
            return Ok(());
        }
        self.limit = self.tail.wrapping_add(room);
        self.publish(next);
        if is_empty {
            self.forget();
        }
        Ok(())
    }

    /// Before items come in otherwise than by a push.
    pub(super) fn open(&mut self) {
        self.answer();
        self.publish_early();
    }

    /// Rule 8: makes an early item like any other.
    #[inline]
    fn publish_early(&mut self) {
        if mem::take(&mut self.early) && self.own != self.end {
            self.own = self.end;
            self.publish_up_to(self.claimed);
        }
    }

    /// Publishes items that were written without regard to the limit, within the room that there was.
    pub(super) fn publish_up_to(&mut self, tail: u32) {
        self.publish(tail);
        self.limit = tail;
    }

    /// Puts an item at the back; if the ring is full, its older half and the item go to `overflow`
    /// in one batch. That costs one read-modify-write and what `overflow` does; else none.
    ///
    /// While a thief copies, the item alone overflows, so that the owner never waits. If thieves make room
    /// meanwhile, the item stays in the ring.
    #[inline]
    pub fn push_or_overflow(&mut self, item: T, overflow: &impl Overflow<T>) {
        if let Err(Full(item)) = self.push(item) {
            self.overflow(item, overflow);
        }
    }

    #[cold]
    fn overflow(&mut self, mut item: T, overflow: &impl Overflow<T>) {
        loop {
            let head = self.core().load_head();
            if head.is_copying() {
                overflow.push(item);
                return;
            }
            let others = self.tail.wrapping_sub(head.real());
            let half = self.ring.slots().len() as u32 / 2;
            let taken = half.saturating_sub(self.claimed_len()).min(others);
            let real = head.real().wrapping_add(taken);
            if taken == 0 || self.move_head(head, real).is_ok() {
                let (own, from) = (self.claimed_len(), self.next());
                self.own = self.end;
                let slots = self.ring.slots();
                // SAFETY: claimed, and given up by the line above; it takes `&mut self` to write slots.
                let own = unsafe { Taken::new(slots, from, own) };
                // SAFETY: taken by the exchange; as above.
                let others = unsafe { Taken::new(slots, head.real(), taken) };
                overflow.push_batch(Batch(own.chain(others).chain(once(item))));
                return;
            }
            // A thief was first, so there may be room.
            match self.push(item) {
                Ok(()) => return,
                Err(Full(back)) => item = back,
            }
        }
    }

    /// Takes the oldest item. One read-modify-write at most, more only when thieves get in between; none for an item that is claimed already.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        if self.own == self.end {
            if self.tail.wrapping_sub(self.head.real()) <= self.few {
                return self.pop_one();
            }
            return self.claim_and_pop();
        }
        let item = self.take_claimed();
        self.answer();
        Some(item)
    }

    /// What an exchange may expect. It is the owner's own copy that goes into the exchange, not what was just loaded, which may wait for the last
    /// exchange on the line.
    #[inline(always)]
    fn expected_head(&self) -> Head {
        #[cold]
        #[inline(never)]
        fn moved(head: Head) -> Head {
            head
        }
        let now = self.core().load_head();
        if now != self.head {
            return moved(now);
        }
        self.head
    }

    #[inline]
    fn pop_one(&mut self) -> Option<T> {
        let mut head = self.expected_head();
        loop {
            if head.real() == self.tail {
                return None;
            }
            let real = head.real().wrapping_add(1);
            match self.move_head(head, real) {
                Ok(()) => {
                    if real == self.tail && self.claim > 1 {
                        // So that the next push looks whether the ring is empty.
                        self.limit = real;
                    }
                    // SAFETY: the exchange took it.
                    return Some(unsafe { read(self.ring.slots(), head.real() & self.mask) });
                }
                Err(now) => head = now,
            }
        }
    }

    #[inline(never)]
    fn claim_and_pop(&mut self) -> Option<T> {
        if !self.claim_by(Self::claim_of) {
            return None;
        }
        let item = self.take_claimed();
        self.answer();
        Some(item)
    }

    /// Pops up to `n` items, claiming as many as it can with one read-modify-write.
    ///
    /// What is not taken from the iterator goes back when it is dropped, as when a thief asks: at
    /// the cost of one read-modify-write, or none where thieves have taken from behind it. If those
    /// left something there, it stays claimed, and so is what a forgotten iterator has claimed: the
    /// owner pops it next, or gives it back by its next operation after a thief has asked.
    pub fn pop_n(&mut self, n: usize) -> PopN<'_, T, S> {
        PopN {
            worker: self,
            left: n,
        }
    }

    /// Pops until the ring is empty, as [`pop_n`](Self::pop_n) does.
    pub fn drain(&mut self) -> PopN<'_, T, S> {
        self.pop_n(usize::MAX)
    }

    /// Pushes items until the ring is full or they end; tells how many. What is not pushed is
    /// not taken from the iterator: pass `&mut iterator` to keep it. Thieves see the items together, at the end.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) -> usize {
        /// Publishes also when the iterator panics.
        struct Publish<'a, T: Send, S: Storage<T>>(&'a mut Worker<T, S>, u32);
        impl<T: Send, S: Storage<T>> Drop for Publish<'_, T, S> {
            fn drop(&mut self) {
                self.0.publish(self.1);
            }
        }
        self.open();
        let mut items = items.into_iter();
        let before = self.tail;
        let mut new = Publish(self, before);
        // The tail moves with each item for `has_room`, and is published once.
        while new.0.has_room() {
            let Some(item) = items.next() else { break };
            // SAFETY: the owner, and there is room: the iterator can't reach this ring's owner.
            unsafe { write(new.0.ring.slots(), new.1 & new.0.mask, item) };
            new.1 = new.1.wrapping_add(1);
            new.0.tail = new.1;
        }
        let pushed = new.1.wrapping_sub(before);
        drop(new);
        pushed as usize
    }

    #[inline(always)]
    fn publish(&mut self, tail: u32) {
        self.tail = tail;
        // Ordering: Release publishes the slots to a thief's claim.
        self.core().tail.store(tail, Release);
    }

    #[inline(always)]
    fn has_room(&mut self) -> bool {
        if self.tail != self.limit {
            return true;
        }
        let room = self.room(self.core().load_head());
        self.limit = self.tail.wrapping_add(room);
        room != 0
    }

    /// What fits.
    #[inline]
    fn room(&self, head: Head) -> u32 {
        let since = |position| self.tail.wrapping_sub(position);
        let mut used = since(head.steal());
        if self.own != self.end {
            used = used.max(since(self.next())) + u32::from(self.early);
        }
        self.slots() - used
    }

    #[inline(always)]
    pub(super) fn move_head(&mut self, from: Head, real: u32) -> Result<(), Head> {
        let to = from.moved(real);
        self.core().exchange_head(from, to)?;
        self.head = to;
        Ok(())
    }

    /// Rule 6: how many of `len`.
    fn claim_of(&mut self, len: u32) -> u32 {
        if self.core().wanted() != 0 {
            self.forget();
            return 1;
        }
        self.claim.min(len - len / 2)
    }

    /// Rule 6. False when there is nothing to claim.
    #[inline(always)]
    fn claim_by(&mut self, how_many: impl Fn(&mut Self, u32) -> u32) -> bool {
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
                    (self.own, self.end, self.claimed) = (own, own + n, claimed);
                    return true;
                }
                Err(now) => head = now,
            }
        }
    }

    #[inline(always)]
    fn take_claimed(&mut self) -> T {
        let at = self.own;
        self.own = at + 1;
        // SAFETY: claimed, and read once: `own` has moved on.
        unsafe { read(self.ring.slots(), at) }
    }

    /// Rule 7: gives back what is claimed if a thief has asked since the owner last took note.
    #[inline(always)]
    fn answer(&mut self) {
        if self.core().wanted() != self.heard {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        if self.own == self.end {
            self.heard = self.core().wanted();
            return;
        }
        if self.early {
            self.publish_early();
            self.came_back();
            return;
        }
        let mut head = self.core().load_head();
        while head.real() == self.claimed {
            match self.move_head(head, self.next()) {
                Ok(()) => {
                    self.own = self.end;
                    self.came_back();
                    return;
                }
                Err(now) => head = now,
            }
        }
        if head.real() != self.tail {
            self.forget();
            return;
        }
        let after = self.tail.wrapping_add(self.claimed_len());
        if after.wrapping_sub(head.steal()) > self.slots() {
            // A thief holds the slots still: at the next operation.
            return;
        }
        while self.own != self.end {
            // Its slot is the oldest in use, so there is room for it at the tail.
            let item = self.take_claimed();
            // SAFETY: the owner, and there is room.
            unsafe { write(self.ring.slots(), self.tail & self.mask, item) };
            self.tail = self.tail.wrapping_add(1);
        }
        self.publish_up_to(after);
        self.came_back();
    }

    fn came_back(&mut self) {
        self.gave_back = true;
        self.forget();
    }

    fn forget(&mut self) {
        self.heard = 0;
        self.core().set_wanted(0);
    }
}

impl<T, S: Storage<T>> Worker<T, S> {
    #[inline(always)]
    fn core(&self) -> &Core {
        self.ring.core()
    }

    #[inline]
    fn slots(&self) -> u32 {
        self.ring.slots().len() as u32
    }

    pub(super) fn claimed_len(&self) -> u32 {
        self.end - self.own
    }

    /// The position of the oldest claimed item.
    pub(super) fn next(&self) -> u32 {
        self.claimed.wrapping_sub(self.claimed_len())
    }
}

impl<T, S: Storage<T>> Drop for Worker<T, S> {
    fn drop(&mut self) {
        let mut head = self.core().load_head();
        while let Err(now) = self.core().exchange_head(head, head.moved(self.tail)) {
            head = now;
        }
        let slots = self.ring.slots();
        // SAFETY: claimed, and the owner goes.
        let own = unsafe { Taken::new(slots, self.next(), self.claimed_len()) };
        // SAFETY: taken by the exchange, and the owner goes.
        let others = unsafe { Taken::new(slots, head.real(), self.tail.wrapping_sub(head.real())) };
        drop((own, others));
    }
}

/// Items that are popped together. See [`Worker::pop_n`].
#[derive(Debug)]
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
        if worker.own == worker.end {
            // Who has asked before is answered by the next operation, if something is left of this one.
            worker.heard = 0;
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
    /// Claimed for this iterator, not for as long as the owner pleases.
    fn drop(&mut self) {
        if self.left > 0 && self.worker.own != self.worker.end {
            self.worker.give_back();
        }
    }
}

/// What is claimed, the rest of the older half, and the item that found no room. `Chain` is not `ExactSizeIterator`.
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

impl<T, S: Storage<T>> fmt::Debug for Worker<T, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("claimed", &self.claimed_len())
            .field("len", &self.core().len())
            .finish_non_exhaustive()
    }
}
