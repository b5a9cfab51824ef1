//! A bounded FIFO ring with one owner and many thieves.
//!
//! The algorithm is Go's run queue as Tokio's scheduler took it over, with the batch claimed before it is
//! copied: the source reads a slot that may be overwritten before its exchange fails, which is a
//! data race on a plain slot.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `tail` | the owner: one past the newest item |
//! | `head`: two positions in one word, `steal` and `real` | owner and thieves, by compare-exchange |
//! | `slots[i]` | the owner, for positions in `tail..steal + capacity` |
//!
//! Positions count up and wrap at 2³²; the slot is the position modulo the capacity. `steal ≤ real ≤ tail` (wrapping),
//! and `tail − steal ≤ capacity`.
//!
//! # Rules
//!
//! 1. `real..tail` are the items in the ring. Moving `real` over an item takes it, so each is taken once.
//! 2. `steal..real` are the slots that a thief has taken and is still copying. The owner does not
//!    write to them. `steal == real` when no thief copies; only then may a thief claim.
//! 3. A thief claims by moving `real`, copies, and then moves `steal` up to where `real` is by now.
//!    In between the owner pops as ever, moving `real` alone; other thieves get [`Steal::Retry`].
//! 4. Only the owner writes slots, so what it has claimed stays in place until it pushes again.
//! 5. An item is published by the store of `tail` and freed for writing by the exchange on `head`.
//!
//! A thief that is descheduled in mid-copy holds back the slots it copies, not the owner: a push that finds no
//! room overflows its one item and goes on. It holds back other thieves for as long as one copy takes.
//!
//! A compare-exchange could take a `head` that has come round to the same two positions for the
//! old one: that takes 2³² items in and out of one ring between a thief's load and its exchange.
use crate::Overflow;
use alloc::{boxed::Box, vec::Vec};
use core::{
    fmt,
    iter::{Chain, Once, once},
    marker::PhantomData,
    mem::MaybeUninit,
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};

mod arc;
use arc::Arc;

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

struct Ring<T> {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU32>,
    slots: Box<[Slot<T>]>,
}

// SAFETY: an item is reached by the one thread that took it (rule 1), so it only moves between threads.
unsafe impl<T: Send> Sync for Ring<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Ring<T> {}

/// Both positions of `head`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    steal: u32,
    real: u32,
}

impl Head {
    const fn both(at: u32) -> Self {
        Self {
            steal: at,
            real: at,
        }
    }

    const fn pack(self) -> u64 {
        (self.steal as u64) << 32 | self.real as u64
    }

    const fn unpack(word: u64) -> Self {
        Self {
            steal: (word >> 32) as u32,
            real: word as u32,
        }
    }

    const fn is_copying(self) -> bool {
        self.steal != self.real
    }

    /// With `n` items taken by the owner.
    const fn taken(self, n: u32) -> Self {
        let real = self.real.wrapping_add(n);
        Self {
            steal: if self.is_copying() { self.steal } else { real },
            real,
        }
    }
}

impl<T> Ring<T> {
    fn capacity(&self) -> u32 {
        self.slots.len() as u32
    }

    fn slot(&self, position: u32) -> &Slot<T> {
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// # Safety
    /// The caller has taken the item at `position` and reads it once.
    unsafe fn read(&self, position: u32) -> T {
        // SAFETY: the caller's; the slot was written before `tail` was published.
        self.slot(position)
            .with(|slot| unsafe { slot.cast::<T>().read() })
    }

    /// # Safety
    /// The caller is the owner, and `position` is in `tail..steal + capacity`.
    unsafe fn write(&self, position: u32, item: T) {
        // SAFETY: nobody else touches a slot outside of `steal..tail`.
        self.slot(position)
            .with_mut(|slot| unsafe { slot.cast::<T>().write(item) });
    }

    fn load_head(&self) -> Head {
        // Ordering: Acquire pairs with the release of `head` by a thief (its copies end before the owner writes the
        // slots again) and by whoever moved `real` (a `tail` read after this is not older than `real`).
        Head::unpack(self.head.load(Acquire))
    }

    fn exchange_head(&self, from: Head, to: Head) -> Result<(), Head> {
        // Ordering: Release ends this thread's copies before the owner's next look, and carries
        // the `tail` that the claim rests on; Acquire as in `load_head`.
        match self
            .head
            .compare_exchange(from.pack(), to.pack(), AcqRel, Acquire)
        {
            Ok(_) => Ok(()),
            Err(now) => Err(Head::unpack(now)),
        }
    }

    /// A hint for everybody but the owner.
    fn len(&self) -> usize {
        let head = self.load_head();
        // Ordering: Acquire, so that what is counted can be taken.
        let len = self.tail.load(Acquire).wrapping_sub(head.real);
        // A head that is older than the tail by a round of the ring.
        len.min(self.capacity()) as usize
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        // Ordering: Relaxed twice, the last handle is alone.
        let head = Head::unpack(self.head.load(Relaxed));
        // Ordering: as above.
        let tail = self.tail.load(Relaxed);
        self.head.retire();
        self.tail.retire();
        for slot in &mut self.slots {
            slot.retire();
        }
        let mut rest = Rest {
            ring: self,
            next: head.real,
            tail,
        };
        rest.run();

        /// Goes on with the others when an item's drop panics.
        struct Rest<'a, T> {
            ring: &'a Ring<T>,
            next: u32,
            tail: u32,
        }
        impl<T> Rest<'_, T> {
            fn run(&mut self) {
                while self.next != self.tail {
                    let at = self.next;
                    self.next = at.wrapping_add(1);
                    // SAFETY: the items that are left are the last handle's.
                    drop(unsafe { self.ring.read(at) });
                }
            }
        }
        impl<T> Drop for Rest<'_, T> {
            fn drop(&mut self) {
                self.run();
            }
        }
    }
}

/// The owner's end: pushes at the back, pops at the front.
///
/// There is one, and every operation takes `&mut self`. When it is dropped it drops the items;
/// what thieves have claimed by then is theirs. A worker that is forgotten leaves its items to the stealers, and to the drop of the last of them.
///
/// ```compile_fail
/// let worker = queue_spmc::ring::Worker::<u8>::new(4);
/// let twice = worker.clone();
/// ```
///
/// ```compile_fail
/// let worker = queue_spmc::ring::Worker::<u8>::new(4);
/// std::thread::scope(|s| { s.spawn(|| worker.len()); });
/// ```
pub struct Worker<T> {
    ring: Arc<Ring<T>>,
    /// The owner's own copy of `tail`.
    tail: u32,
    /// A `steal` position that the owner has seen: never beyond the real one, so that room is
    /// only ever underestimated.
    steal: u32,
    not_sync: PhantomData<core::cell::Cell<()>>,
}

/// A thief's end. Clones share the ring.
pub struct Stealer<T> {
    ring: Arc<Ring<T>>,
}

/// The ring was full; here is the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// What came of a steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stolen item would be dropped"]
pub enum Steal<T> {
    /// There was nothing to take.
    Empty,
    /// Another thief is copying, or got in between: there may be something.
    Retry,
    /// The oldest item, and how many more were moved to the thief's ring.
    Success {
        /// The oldest item.
        first: T,
        /// Items moved besides.
        moved: usize,
    },
}

/// How much a thief takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StealLimit {
    /// Half of the items, rounded up.
    Half,
    /// At most so many. With 0 nothing is taken, and the answer is [`Steal::Empty`].
    AtMost(usize),
}

impl<T: Send> Worker<T> {
    /// An empty ring. The only allocation that it ever makes.
    ///
    /// # Panics
    /// When `capacity` is no power of two, below 2, or above 2³¹.
    pub fn new(capacity: usize) -> Self {
        Self::starting_at(capacity, 0)
    }

    pub(crate) fn starting_at(capacity: usize, at: u32) -> Self {
        assert!(
            capacity.is_power_of_two() && (2..=1 << 31).contains(&capacity),
            "a ring's capacity is a power of two from 2 to 2^31, not {capacity}"
        );
        let slots: Vec<_> = (0..capacity)
            .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
            .collect();
        let ring = Ring {
            head: CachePadded::new(AtomicU64::new(Head::both(at).pack())),
            tail: CachePadded::new(AtomicU32::new(at)),
            slots: slots.into_boxed_slice(),
        };
        Self {
            ring: Arc::new(ring),
            tail: at,
            steal: at,
            not_sync: PhantomData,
        }
    }

    /// A thief's end of this ring.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            ring: self.ring.clone(),
        }
    }

    /// The most items that fit.
    pub fn capacity(&self) -> usize {
        self.ring.slots.len()
    }

    /// Items in the ring. Thieves may take some at any time.
    pub fn len(&self) -> usize {
        self.tail.wrapping_sub(self.ring.load_head().real) as usize
    }

    /// Whether the ring is empty. True stays true until the next push.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Items that can be pushed before the ring is full: at least so many, as thieves only make room.
    pub fn spare_capacity(&self) -> usize {
        self.capacity() - self.tail.wrapping_sub(self.ring.load_head().steal) as usize
    }

    fn has_room(&mut self) -> bool {
        let capacity = self.ring.capacity();
        if self.tail.wrapping_sub(self.steal) < capacity {
            return true;
        }
        self.steal = self.ring.load_head().steal;
        self.tail.wrapping_sub(self.steal) < capacity
    }

    fn publish(&mut self, tail: u32) {
        self.tail = tail;
        // Ordering: Release publishes the slots to `claim`.
        self.ring.tail.store(tail, Release);
    }

    /// Puts an item at the back. No read-modify-write.
    ///
    /// # Errors
    /// Gives the item back when the ring is full.
    pub fn push(&mut self, item: T) -> Result<(), Full<T>> {
        if !self.has_room() {
            return Err(Full(item));
        }
        // SAFETY: the owner, and there is room.
        unsafe { self.ring.write(self.tail, item) };
        self.publish(self.tail.wrapping_add(1));
        Ok(())
    }

    /// Puts an item at the back; if the ring is full, its older half and the item go to `overflow`
    /// in one batch. That costs one read-modify-write and what `overflow` does; else none.
    ///
    /// While a thief copies, the item alone overflows, so that the owner never waits. If thieves make room
    /// meanwhile, the item stays in the ring.
    pub fn push_or_overflow(&mut self, mut item: T, overflow: &impl Overflow<T>) {
        loop {
            match self.push(item) {
                Ok(()) => return,
                Err(Full(back)) => item = back,
            }
            let head = self.ring.load_head();
            if head.is_copying() {
                overflow.push(item);
                return;
            }
            let half = self.ring.capacity() / 2;
            if self.tail.wrapping_sub(head.real) < self.ring.capacity() {
                continue; // A thief made room since the push.
            }
            if self.ring.exchange_head(head, head.taken(half)).is_ok() {
                // The slots stay as they are: it takes `&mut self` to push (rule 4).
                let older = Claimed {
                    ring: &self.ring,
                    next: head.real,
                    left: half as usize,
                };
                overflow.push_batch(Batch(older.chain(once(item))));
                return;
            }
        }
    }

    /// Takes the oldest item. One read-modify-write, more only when thieves get in between.
    pub fn pop(&mut self) -> Option<T> {
        let mut head = self.ring.load_head();
        loop {
            if head.real == self.tail {
                return None;
            }
            match self.ring.exchange_head(head, head.taken(1)) {
                // SAFETY: the exchange took it.
                Ok(()) => return Some(unsafe { self.ring.read(head.real) }),
                Err(now) => head = now,
            }
        }
    }

    /// Pops until the ring is empty.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        core::iter::from_fn(|| self.pop())
    }

    /// Pushes from `items` until the ring is full or they end; tells how many. What is not pushed is
    /// not taken from the iterator.
    pub fn fill(&mut self, items: &mut impl Iterator<Item = T>) -> usize {
        let mut pushed = 0;
        while self.has_room() {
            let Some(item) = items.next() else { break };
            // SAFETY: the owner, and there is room: `next` can't reach this ring's owner.
            unsafe { self.ring.write(self.tail, item) };
            self.publish(self.tail.wrapping_add(1));
            pushed += 1;
        }
        pushed
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        loop {
            let head = self.ring.load_head();
            let left = self.tail.wrapping_sub(head.real);
            if left == 0 {
                return;
            }
            if self.ring.exchange_head(head, head.taken(left)).is_ok() {
                drop(Claimed {
                    ring: &self.ring,
                    next: head.real,
                    left: left as usize,
                });
                return;
            }
        }
    }
}

impl<T: Send> Stealer<T> {
    /// Items in the ring, as far as this thread sees. After a `SeqCst` fence it counts every item
    /// whose push came before another thread's `SeqCst` fence that precedes this one, and that
    /// was not taken.
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this steals from `worker`'s ring.
    pub fn is_of(&self, worker: &Worker<T>) -> bool {
        Arc::ptr_eq(&self.ring, &worker.ring)
    }

    /// Whether both steal from one ring.
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ring, &other.ring)
    }

    /// Takes the oldest item. Two read-modify-writes.
    pub fn steal(&self) -> Steal<T> {
        let Some(claim) = self.claim(StealLimit::AtMost(1), 1) else {
            return Steal::Empty;
        };
        match claim {
            Err(Busy) => Steal::Retry,
            Ok((real, _)) => {
                // SAFETY: claimed.
                let first = unsafe { self.ring.read(real) };
                self.release();
                Steal::Success { first, moved: 0 }
            }
        }
    }

    /// Takes up to `limit` of the oldest items: the first to run at once, the others into
    /// `worker`'s ring as far as there is room, in their order. Two read-modify-writes.
    ///
    /// Stealing from one's own ring takes nothing: [`Steal::Empty`].
    pub fn steal_into_and_pop(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<T> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        let Some(claim) = self.claim(limit, worker.spare_capacity() + 1) else {
            return Steal::Empty;
        };
        let Ok((real, taken)) = claim else {
            return Steal::Retry;
        };
        // SAFETY: claimed.
        let first = unsafe { self.ring.read(real) };
        self.copy(worker, real.wrapping_add(1), taken - 1);
        self.release();
        worker.publish(worker.tail.wrapping_add(taken - 1));
        Steal::Success {
            first,
            moved: taken as usize - 1,
        }
    }

    /// Moves up to `limit` of the oldest items into `worker`'s ring, in their order, as far as
    /// there is room, and tells how many. Two read-modify-writes.
    ///
    /// A full ring takes nothing, nor does one's own: [`Steal::Empty`].
    pub fn steal_into(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        let Some(claim) = self.claim(limit, worker.spare_capacity()) else {
            return Steal::Empty;
        };
        let Ok((real, taken)) = claim else {
            return Steal::Retry;
        };
        self.copy(worker, real, taken);
        self.release();
        worker.publish(worker.tail.wrapping_add(taken));
        Steal::Success {
            first: (),
            moved: taken as usize,
        }
    }

    /// Rule 3: takes items for copying. `None` when there is nothing to take or no room for it.
    fn claim(&self, limit: StealLimit, room: usize) -> Option<Result<(u32, u32), Busy>> {
        let head = self.ring.load_head();
        // Ordering: Acquire pairs with `publish`: the slots up to here are written.
        let len = self.ring.tail.load(Acquire).wrapping_sub(head.real);
        if len == 0 {
            return None;
        }
        if head.is_copying() || len > self.ring.capacity() {
            return Some(Err(Busy));
        }
        let want = match limit {
            StealLimit::Half => len - len / 2,
            StealLimit::AtMost(n) => len.min(u32::try_from(n).unwrap_or(u32::MAX)),
        };
        let taken = want.min(u32::try_from(room).unwrap_or(u32::MAX));
        if taken == 0 {
            return None;
        }
        let claimed = Head {
            steal: head.steal,
            real: head.real.wrapping_add(taken),
        };
        Some(match self.ring.exchange_head(head, claimed) {
            Ok(()) => Ok((head.real, taken)),
            Err(_) => Err(Busy),
        })
    }

    /// Moves claimed items behind the other ring's tail, unpublished.
    fn copy(&self, worker: &mut Worker<T>, from: u32, n: u32) {
        for i in 0..n {
            // SAFETY: claimed, and read once.
            let item = unsafe { self.ring.read(from.wrapping_add(i)) };
            // SAFETY: the worker's borrow is its owner's; the claim was bounded by its room.
            unsafe { worker.ring.write(worker.tail.wrapping_add(i), item) };
        }
    }

    /// Rule 3: gives the copied slots back to the owner.
    fn release(&self) {
        let mut head = self.ring.load_head();
        while let Err(now) = self.ring.exchange_head(head, Head::both(head.real)) {
            head = now;
        }
    }
}

/// Another thief copies, or won.
struct Busy;

/// Items that the owner has taken and not read yet.
struct Claimed<'a, T> {
    ring: &'a Ring<T>,
    next: u32,
    left: usize,
}

impl<T> Iterator for Claimed<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.left = self.left.checked_sub(1)?;
        let at = self.next;
        self.next = at.wrapping_add(1);
        // SAFETY: taken by the owner, whose borrow keeps the slot (rule 4), and read once.
        Some(unsafe { self.ring.read(at) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T> Drop for Claimed<'_, T> {
    fn drop(&mut self) {
        /// Goes on with the others when an item's drop panics.
        struct GoOn<'a, 'b, T>(&'a mut Claimed<'b, T>);
        impl<T> Drop for GoOn<'_, '_, T> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }
        let rest = GoOn(self);
        rest.0.for_each(drop);
    }
}

/// The older half and the item that found no room. `Chain` is not `ExactSizeIterator`.
struct Batch<'a, T>(Chain<Claimed<'a, T>, Once<T>>);

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

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self {
            ring: self.ring.clone(),
        }
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("len", &self.ring.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer")
            .field("len", &self.ring.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ring is full")
    }
}

impl<T> core::error::Error for Full<T> {}

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
