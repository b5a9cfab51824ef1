//! A growable FIFO queue with one owner and many thieves: the owner pushes at the back, and both
//! the owner and the thieves take from the front.
//!
//! This queue is for work that must run in the order of its spawns and must not overflow, such as
//! the jobs of a scope. The [`ring`](crate::ring) is the bounded FIFO, whose owner can also pop
//! without a read-modify-write. In the [`deque`](crate::deque) the owner takes the newest item.
//!
//! The actors, the fields, the states of an item, and the replacement of buffers are those of all
//! growable queues: see `growable.rs`. Here `bottom` only goes up.
//!
//! # Rules
//!
//! 1. The owner and the thieves take the oldest item, all by an exchange on `head` that raises
//!    `top`.
//! 2. A thief loads `head` and then `bottom`, and claims up to all of `top..bottom` with one
//!    exchange.
//! 3. A thief that moves items to its own queue makes room there before its claim.
//!
//! # Why it is correct
//!
//! 1. *Each item is taken once.* Only an exchange on `head` takes an item (rule 1).
//! 2. *A batch by one exchange is sound*, unlike in the deque. If `head` still is what the thief
//!    read, no item was taken since, so all items that the thief counted are there.
//! 3. *No fence is needed.* A `bottom` that is out of date only shows the thief fewer items.
//! 4. *Nothing can panic during a claim*, and a claim lasts only for the copies (rule 3).
pub use crate::steal::{Steal, StealLimit};

use crate::growable::{Arc, Claim, MIN_CAPACITY, Owner, Queue, Slots};
use core::fmt;
use sync_shim::atomic::Ordering::Acquire;

/// The owner's end of a FIFO: pushes at the back and pops at the front.
///
/// Each queue has one worker, and every operation that changes the queue takes `&mut self`.
/// Dropping the worker drops the items, except those that thieves have claimed by then. A worker
/// that is leaked (with `mem::forget`) leaves its items to the stealers, and the queue is never
/// freed.
///
/// ```
/// use queue_spmc::fifo::{Steal, Worker};
///
/// let mut worker = Worker::new();
/// worker.extend([1, 2, 3]);
/// assert_eq!(worker.stealer().steal(), Steal::Success { first: 1, moved: 0 });
/// assert_eq!(worker.pop(), Some(2));
/// ```
///
/// ```compile_fail
/// let worker = queue_spmc::fifo::Worker::<u8>::new();
/// let twice = worker.clone();
/// ```
///
/// A worker is `Sync`: `&Worker` has only operations that read, and they may run beside thieves.
/// They cannot run beside the owner's operations, which need `&mut`.
///
/// ```
/// let worker = queue_spmc::fifo::Worker::<u8>::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(worker.is_empty()));
///     scope.spawn(|| drop(worker.stealer()));
/// });
/// ```
pub struct Worker<T> {
    pub(crate) owner: Owner<T>,
}

/// A thief's end of a FIFO: takes the oldest item. Clones share the queue.
pub struct Stealer<T> {
    queue: Arc<Queue<T>>,
}

impl<T: Send> Default for Worker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> Worker<T> {
    /// Creates an empty queue with room for 32 items.
    pub fn new() -> Self {
        Self::with_capacity(MIN_CAPACITY)
    }

    /// Creates an empty queue with room for `capacity` items, rounded up to a power of two, at
    /// least 2. The buffer never shrinks below that.
    ///
    /// # Panics
    /// If `capacity` is above 2³⁰.
    #[track_caller]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::starting_at(capacity, 0)
    }

    #[track_caller]
    fn starting_at(capacity: usize, at: u32) -> Self {
        Self {
            owner: Owner::starting_at(capacity, at),
        }
    }

    /// Returns a thief's end of this queue.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            queue: self.owner.queue.clone(),
        }
    }

    /// Returns the number of items in the queue. Thieves may take some at any time.
    pub fn len(&self) -> usize {
        self.owner.queue.len()
    }

    /// Returns whether the queue is empty. If true, it stays true until the next push.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many items fit before the buffer grows.
    pub fn capacity(&self) -> usize {
        self.owner.capacity() as usize
    }

    /// Puts an item at the back. Costs no read-modify-write, unless the buffer is full. A full
    /// buffer is replaced by one of twice the size, at the cost of one read-modify-write.
    ///
    /// # Panics
    /// If there are 2³⁰ items. The item is then dropped.
    #[inline]
    #[track_caller]
    pub fn push(&mut self, item: T) {
        self.owner.push(item);
    }

    /// Pushes all items.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    /// Takes the oldest item. Costs one read-modify-write; one more for each thief that changes the
    /// queue meanwhile; and one more if the buffer shrinks.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let owner = &mut self.owner;
        let mut head = owner.queue.load_head();
        loop {
            let len = owner.bottom.wrapping_sub(head.top);
            if len == 0 {
                owner.shrink(0);
                return None;
            }
            match owner.queue.exchange_head(head, head.taken()) {
                Ok(()) => {
                    // SAFETY: the exchange took the item (rule 1), and the slots are those of the
                    // owner's buffer.
                    let item = unsafe { owner.slots.read(head.top) };
                    owner.shrink(len - 1);
                    return Some(item);
                }
                Err(now) => head = now,
            }
        }
    }
}

impl<T: Send> Stealer<T> {
    /// Returns the number of items in the queue, as this thread sees it.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this stealer steals from `worker`'s queue.
    pub fn is_of(&self, worker: &Worker<T>) -> bool {
        Arc::ptr_eq(&self.queue, &worker.owner.queue)
    }

    /// Returns whether both stealers steal from the same queue.
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Takes the oldest item. Costs two read-modify-writes.
    pub fn steal(&self) -> Steal<T> {
        match self.claim(StealLimit::AtMost(1), None, 1) {
            Claimed::Nothing => Steal::Empty,
            Claimed::Busy => Steal::Retry,
            Claimed::Items(mut items) => Steal::Success {
                first: items.take(),
                moved: 0,
            },
        }
    }

    /// Takes up to `limit` of the oldest items: returns the first and moves the others to the back
    /// of `worker`'s queue, in their order. Costs two read-modify-writes, however many items it
    /// takes, and one more if `worker`'s buffer grows.
    ///
    /// Takes nothing and returns [`Steal::Empty`] if `worker` owns this queue.
    ///
    /// # Panics
    /// If there would be more than 2³⁰ items in `worker`'s queue. No item is then taken.
    pub fn steal_into_and_pop(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<T> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        match self.claim(limit, Some(&mut worker.owner), 1) {
            Claimed::Nothing => Steal::Empty,
            Claimed::Busy => Steal::Retry,
            Claimed::Items(mut items) => {
                let first = items.take();
                let moved = items.move_to(worker);
                Steal::Success { first, moved }
            }
        }
    }

    /// Moves up to `limit` of the oldest items to the back of `worker`'s queue, in their order.
    /// Returns how many it moved. Costs as much as
    /// [`steal_into_and_pop`](Self::steal_into_and_pop).
    ///
    /// Takes nothing and returns [`Steal::Empty`] if `worker` owns this queue.
    ///
    /// # Panics
    /// If there would be more than 2³⁰ items in `worker`'s queue. No item is then taken.
    pub fn steal_into(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        match self.claim(limit, Some(&mut worker.owner), 0) {
            Claimed::Nothing => Steal::Empty,
            Claimed::Busy => Steal::Retry,
            Claimed::Items(items) => {
                let moved = items.move_to(worker);
                Steal::Success { first: (), moved }
            }
        }
    }
    /// Claims items (rules 2 and 3). First it makes room in `to` for all but `apart` of them.
    fn claim(&self, limit: StealLimit, to: Option<&mut Owner<T>>, apart: u32) -> Claimed<'_, T> {
        let head = self.queue.load_head();
        // Ordering: Acquire pairs with the owner's `publish`: the slots before this `bottom` are
        // written, in a buffer that the thief's load of `buffer` after its claim finds.
        let len = self.queue.bottom.load(Acquire).wrapping_sub(head.top);
        if len == 0 {
            return Claimed::Nothing;
        }
        if head.is_copying() {
            return Claimed::Busy;
        }
        let n = limit.of(len);
        if n == 0 {
            return Claimed::Nothing;
        }
        if let Some(to) = to {
            if n - apart > to.room() {
                // `bottom` may be newer than `head` by any number of items. If `head` is unchanged,
                // `n` is right.
                if self.queue.load_head() != head {
                    return Claimed::Busy;
                }
                to.grow(n - apart);
            }
        }
        if self.queue.exchange_head(head, head.claimed(n)).is_err() {
            return Claimed::Busy;
        }
        let claim = Claim(&self.queue);
        Claimed::Items(Items {
            // SAFETY: this thief has a claim, which is stored beside the slots.
            slots: unsafe { self.queue.claimed_slots() },
            claim,
            from: head.top,
            n,
        })
    }
}

enum Claimed<'a, T> {
    Nothing,
    /// Another thief is copying, or won the exchange.
    Busy,
    Items(Items<'a, T>),
}

/// Items that a thief has claimed. The drop of this value releases their slots to the owner, and
/// does not drop the items.
struct Items<'a, T> {
    claim: Claim<'a, T>,
    slots: Slots<T>,
    from: u32,
    n: u32,
}

impl<T: Send> Items<'_, T> {
    /// Takes the oldest item. There is at least one.
    fn take(&mut self) -> T {
        let at = self.from;
        self.from = at.wrapping_add(1);
        self.n -= 1;
        // SAFETY: this thief has claimed the item, and reads it once.
        unsafe { self.slots.read(at) }
    }

    /// Moves the items to the back of `worker`'s queue, which has room.
    fn move_to(mut self, worker: &mut Worker<T>) -> usize {
        let owner = &mut worker.owner;
        let (n, bottom) = (self.n, owner.bottom.wrapping_add(self.n));
        for at in (0..n).map(|i| owner.bottom.wrapping_add(i)) {
            // SAFETY: `&mut Worker` makes this thread the owner of `worker`'s queue, which has
            // room.
            unsafe { owner.slots.write(at, self.take()) };
        }
        drop(self.claim);
        owner.publish(bottom);
        n as usize
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self {
            queue: self.queue.clone(),
        }
    }
}

impl<T> fmt::Debug for Worker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("len", &self.owner.queue.len())
            .finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer")
            .field("len", &self.queue.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
