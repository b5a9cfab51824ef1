//! A growable FIFO queue with one owner and many thieves: the owner pushes at the back, and owner
//! and thieves take from the front.
//!
//! It is for what must run in the order of its spawns and may not overflow, as a scope's jobs.
//! [`ring`](crate::ring) is the bounded one, whose owner also pops without a read-modify-write; in
//! [`deque`](crate::deque) the owner takes the newest.
//!
//! The fields, and how buffers are replaced and freed, are those of all growable queues:
//! `growable.rs`. Here `bottom` only goes up.
//!
//! # Rules
//!
//! 1. The owner and thieves take the oldest item, all by an exchange on `head` that raises `top`.
//!    So each is taken once.
//! 2. A thief reads `head` and then `bottom`, and claims up to all of `top..bottom` with one
//!    exchange. That is sound here, though not in the deque: nothing but an exchange on `head`
//!    takes an item, so if `head` is still what the thief read, all that it counted are there. It
//!    needs no fence, since a `bottom` that is too old only shows it fewer items.
//! 3. A thief that moves items to a queue makes room there before its claim, so that the claim
//!    lasts for the copies alone, and nothing can panic meanwhile.
use crate::{
    Steal, StealLimit,
    growable::{Arc, Claim, LEAST, Owner, Queue, Slots},
};
use core::fmt;
use sync_shim::atomic::Ordering::Acquire;

/// The owner's end: pushes at the back, pops at the front.
///
/// There is one, and every operation that changes the queue takes `&mut self`. When it is dropped it
/// drops the items; what
/// thieves have claimed by then is theirs. A worker that is forgotten leaves its items to the
/// stealers, and the queue is never freed.
///
/// ```
/// use queue_spmc::{Steal, fifo::Worker};
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
/// A shared worker has only the operations that read, and they run beside thieves, not beside the
/// owner's, which need the worker alone. So it is `Sync`:
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

/// A thief's end: takes the oldest. Clones share the queue.
pub struct Stealer<T> {
    queue: Arc<Queue<T>>,
}

impl<T: Send> Default for Worker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> Worker<T> {
    /// An empty queue with room for 32 items.
    pub fn new() -> Self {
        Self::with_capacity(LEAST)
    }

    /// An empty queue with room for so many items, rounded up to a power of two, at least two. It
    /// never shrinks below that.
    ///
    /// # Panics
    /// When `capacity` is above 2³⁰.
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

    /// A thief's end of this queue.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            queue: self.owner.queue.clone(),
        }
    }

    /// Items in the queue. Thieves may take some at any time.
    pub fn len(&self) -> usize {
        self.owner.queue.len()
    }

    /// Whether the queue is empty. True stays true until the next push.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What fits before the buffer grows.
    pub fn capacity(&self) -> usize {
        self.owner.capacity() as usize
    }

    /// Puts an item at the back. No read-modify-write, but when the buffer is full: it doubles,
    /// with one.
    ///
    /// # Panics
    /// When there are 2³⁰ items. The item is dropped then.
    #[inline]
    #[track_caller]
    pub fn push(&mut self, item: T) {
        self.owner.push(item);
    }

    /// Pushes all items.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    /// Takes the oldest item. One read-modify-write, and one for each thief that gets in between;
    /// one more when the buffer shrinks.
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
                    // SAFETY: the exchange took it (rule 1), and it is the owner's buffer.
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
    /// Items in the queue, as far as this thread sees.
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this steals from `worker`'s queue.
    pub fn is_of(&self, worker: &Worker<T>) -> bool {
        Arc::ptr_eq(&self.queue, &worker.owner.queue)
    }

    /// Whether both steal from one queue.
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.queue, &other.queue)
    }

    /// Takes the oldest item. Two read-modify-writes.
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

    /// Takes up to `limit` of the oldest items: the first to run at once, the others to the back of
    /// `worker`'s queue, in their order. Two read-modify-writes, however many items; one more when
    /// `worker`'s buffer grows.
    ///
    /// Stealing from one's own queue takes nothing: [`Steal::Empty`].
    ///
    /// # Panics
    /// When there would be more than 2³⁰ items in `worker`'s queue. None is taken then.
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

    /// Moves up to `limit` of the oldest items to the back of `worker`'s queue, in their order, and
    /// tells how many. Costs as [`steal_into_and_pop`](Self::steal_into_and_pop).
    ///
    /// From one's own queue it takes nothing: [`Steal::Empty`].
    ///
    /// # Panics
    /// When there would be more than 2³⁰ items in `worker`'s queue. None is taken then.
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
    /// Rules 2 and 3: claims items, of which all but `apart` have room in `to`.
    fn claim(&self, limit: StealLimit, to: Option<&mut Owner<T>>, apart: u32) -> Claimed<'_, T> {
        let head = self.queue.load_head();
        // Ordering: Acquire pairs with the owner's `publish`: the slots up to here are written, in
        // a buffer that the load after the claim finds.
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
                // `bottom` may be younger than `head` by any number of items. If `head` is still
                // the same, there are as many as it seems.
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
            // SAFETY: claimed; the claim goes with the slots.
            slots: unsafe { self.queue.claimed_slots() },
            claim,
            from: head.top,
            n,
        })
    }
}

enum Claimed<'a, T> {
    Nothing,
    /// Another thief copies, or won.
    Busy,
    Items(Items<'a, T>),
}

/// Items that a thief has claimed. Dropped, it releases their slots to the owner, not the items.
struct Items<'a, T> {
    claim: Claim<'a, T>,
    slots: Slots<T>,
    from: u32,
    n: u32,
}

impl<T: Send> Items<'_, T> {
    /// Takes the oldest, of at least one.
    fn take(&mut self) -> T {
        let at = self.from;
        self.from = at.wrapping_add(1);
        self.n -= 1;
        // SAFETY: claimed, and read once.
        unsafe { self.slots.read(at) }
    }

    /// Moves them to the back of the other queue, which has room.
    fn move_to(mut self, worker: &mut Worker<T>) -> usize {
        let owner = &mut worker.owner;
        let (n, bottom) = (self.n, owner.bottom.wrapping_add(self.n));
        for at in (0..n).map(|i| owner.bottom.wrapping_add(i)) {
            // SAFETY: the worker's borrow is its owner's, and there is room.
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
