//! A growable LIFO deque with one owner and many thieves, after Chase and Lev.
//!
//! The owner's side is the published algorithm with the fences of Lê, Pop, Cohen and Zappa Nardelli
//! ("Correct and efficient work-stealing for weak memory models", PPoPP 2013). The thief's side
//! differs. The published thief copies an item first and then claims it, so it may read a slot
//! while the owner overwrites it: a data race on a plain slot. Here a thief claims first, copies,
//! and then releases the slot, as in [`ring`](crate::ring). The owner sees the claim, and therefore
//! knows when it may free a buffer that it has replaced. The only shared field that a thief writes
//! is `head`, by its claims and its release.
//!
//! The actors, the fields, the states of an item, and the replacement of buffers are those of all
//! growable queues: see `growable.rs`. Here the owner also lowers `bottom`, when it tries to pop.
//! `top ≤ bottom`, with one exception: while the owner looks for a last item that is gone, `bottom`
//! is `top − 1`.
//!
//! # Rules
//!
//! 1. The owner takes the newest item by lowering `bottom`. A thief takes the oldest by raising
//!    `top`.
//! 2. The owner and a thief may both want the last item. The owner lowers `bottom` and then loads
//!    `head`; a thief loads `head` and then `bottom`. Each has a `SeqCst` fence between these two
//!    steps. An owner that sees only one item left claims it by an exchange on `head`, like a
//!    thief.
//! 3. If the owner knows by an earlier `top` that at most one item is left, it does not lower
//!    `bottom`. It claims that item by an exchange, which succeeds only if `top` is still the same
//!    and no thief copies. If the exchange fails, the owner continues by rule 2. Positions wrap
//!    around, so the owner loads `top` anew before `bottom` is 2³² positions past the earlier
//!    `top`.
//! 4. A thief claims items one by one, each with an exchange after a load of `bottom`, and releases
//!    all of them with one more exchange.
//!
//! # Why it is correct
//!
//! 1. *The owner and a thief never both take an item.* By rule 2, either the owner sees that the
//!    thief has claimed, or the thief sees that the owner took the item. For the last item, both
//!    use the exchange on `head`, and one of them wins. An owner that pops by rule 3 has not
//!    lowered `bottom`, so a thief may want the same item. Again one exchange wins. `top` never
//!    goes down. So by an earlier `top` the owner may count too many items, but never too few.
//! 2. *Two thieves never both take an item.* Each raises `top` over the item by an exchange on
//!    `head`, and only one of these exchanges succeeds.
//! 3. *A batch by one exchange would be unsound.* As long as the owner sees two or more items, it
//!    takes the newest without an exchange. So the owner may have taken items that the thief
//!    counted. The model `batch_by_one_exchange_takes_an_item_twice` shows that.
pub use crate::steal::{Steal, StealLimit};

use crate::growable::{Arc, Claim, Head, MIN_CAPACITY, Owner, Queue};
use core::fmt;
use sync_shim::atomic::{
    Ordering::{Acquire, Release, SeqCst},
    fence,
};

/// The owner's end of a deque: pushes and pops the newest item.
///
/// Each deque has one worker. Each of the worker's operations that changes the deque takes
/// `&mut self`.
///
/// Dropping the worker drops the items, except those that thieves have claimed by then. A worker
/// that is leaked (with `mem::forget`) leaves its items to the stealers, and the deque is never
/// freed.
///
/// ```
/// use queue_spmc::deque::{Steal, Worker};
///
/// let mut worker = Worker::new();
/// worker.extend([1, 2, 3]);
/// assert_eq!(worker.stealer().steal(), Steal::Success { first: 1, moved: 0 });
/// assert_eq!(worker.pop(), Some(3));
/// ```
///
/// ```compile_fail
/// let worker = queue_spmc::deque::Worker::<u8>::new();
/// let twice = worker.clone();
/// ```
///
/// A worker is `Sync`: `&Worker` has only operations that read, and they may run beside thieves.
/// They cannot run beside the owner's operations, which need `&mut`.
///
/// ```
/// let worker = queue_spmc::deque::Worker::<u8>::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert!(worker.is_empty()));
///     scope.spawn(|| drop(worker.stealer()));
/// });
/// ```
pub struct Worker<T> {
    owner: Owner<T>,
    /// A `top` that the owner has seen or written (rule 3). The current `top` is not below it.
    last_top: u32,
}

/// If `bottom` is farther than this from `last_top`, a pop renews `last_top` (rule 3).
///
/// Between two pops, after at most 2³⁰ pushes, a push finds no room and renews `last_top`. So
/// pushes cannot carry `bottom` too far from it.
const FAR: u32 = 1 << 31;

/// A thief's end of a deque: takes the oldest item. Clones share the deque.
pub struct Stealer<T> {
    deque: Arc<Queue<T>>,
}

impl<T: Send> Default for Worker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> Worker<T> {
    /// Creates an empty deque with room for 32 items.
    pub fn new() -> Self {
        Self::with_capacity(MIN_CAPACITY)
    }

    /// Creates an empty deque with room for `capacity` items, rounded up to a power of two, at
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
            last_top: at,
        }
    }

    /// Returns a thief's end of this deque.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            deque: self.owner.queue.clone(),
        }
    }

    /// Returns the number of items in the deque. Thieves may take some at any time.
    pub fn len(&self) -> usize {
        self.owner.queue.len()
    }

    /// Returns whether the deque is empty. If true, it stays true until the next push.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns how many items fit before the buffer grows.
    pub fn capacity(&self) -> usize {
        self.owner.capacity() as usize
    }

    /// Pushes an item, which is then the newest. Costs no read-modify-write, unless the buffer is
    /// full. A full buffer is replaced by one of twice the size, at the cost of one
    /// read-modify-write.
    ///
    /// # Panics
    /// If there are 2³⁰ items. The item is then dropped.
    #[inline]
    #[track_caller]
    pub fn push(&mut self, item: T) {
        if self.owner.room() == 0 {
            self.refresh_top();
        }
        self.owner.push(item);
    }

    /// Renews `last_top` (rule 3). An owner that only pushes calls this at least once in 2³⁰
    /// pushes; a pop checks the distance itself.
    #[cold]
    fn refresh_top(&mut self) {
        self.last_top = self.owner.queue.load_head().top;
    }

    /// Pushes all items.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    /// Takes the newest item. Costs a `SeqCst` fence, or one read-modify-write if the owner knows
    /// that the item is the last. A pop may cost both if thieves have taken items and the owner has
    /// not seen that yet. A pop that shrinks the buffer costs one more read-modify-write.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        match self.owner.bottom.wrapping_sub(self.last_top) {
            0 => {
                self.owner.shrink(0);
                None
            }
            1 => self.pop_last(),
            _ => self.pop_newest(),
        }
    }

    /// Takes the last item if `top` has not changed and no thief copies (rule 3). Otherwise
    /// continues by rule 2.
    #[inline]
    fn pop_last(&mut self) -> Option<T> {
        let (owner, top) = (&mut self.owner, self.last_top);
        let taken = Head::both(owner.bottom);
        if owner.queue.exchange_head(Head::both(top), taken).is_err() {
            return self.pop_past_thieves();
        }
        self.last_top = owner.bottom;
        // SAFETY: the exchange took the item.
        let item = unsafe { owner.slots.read(top) };
        owner.shrink(0);
        Some(item)
    }

    #[cold]
    #[inline(never)]
    fn pop_past_thieves(&mut self) -> Option<T> {
        self.pop_newest()
    }

    /// Takes the newest item by rule 2.
    #[inline]
    fn pop_newest(&mut self) -> Option<T> {
        let owner = &mut self.owner;
        let bottom = owner.bottom.wrapping_sub(1);
        // Ordering: Release, as for every store of `bottom`: a thief that reads this value must
        // also see the pushes before this store.
        owner.queue.bottom.store(bottom, Release);
        // Ordering: SeqCst, rule 2: between the store of `bottom` and the load of `head`. Pairs
        // with the fence in `stealable_len`.
        fence(SeqCst);
        let head = owner.queue.load_head();
        let left = head.len(bottom);
        if left <= 0 {
            let won = left == 0 && take_last(&owner.queue, head);
            owner.publish(owner.bottom);
            // Now the deque is empty.
            self.last_top = owner.bottom;
            // SAFETY: the exchange took the item.
            let last = won.then(|| unsafe { owner.slots.read(bottom) });
            owner.shrink(0);
            return last;
        }
        owner.bottom = bottom;
        if left == 1 || bottom.wrapping_sub(self.last_top) > FAR {
            self.last_top = head.top;
        }
        // SAFETY: the owner has taken the item (rule 1). No thief can claim it: each thief either
        // sees this `bottom`, or has read a `head` that is no newer than the owner's. Such a thief
        // claims an older item.
        let item = unsafe { owner.slots.read(bottom) };
        owner.shrink(left as u32);
        Some(item)
    }
}

/// Takes the last item by an exchange (rule 2). Returns false if a thief took it.
fn take_last<T>(deque: &Queue<T>, mut head: Head) -> bool {
    let last = head.top;
    loop {
        match deque.exchange_head(head, head.taken()) {
            Ok(()) => return true,
            // A thief released an earlier claim; the last item is still there.
            Err(now) if now.top == last => head = now,
            Err(_) => return false,
        }
    }
}

/// Returns the number of items that a thief sees after it has loaded `head` (rule 2).
fn stealable_len<T>(deque: &Queue<T>, head: Head) -> u32 {
    // Ordering: SeqCst, between the load of `head` and that of `bottom`. Pairs with the fence in
    // `Worker::pop_newest`.
    fence(SeqCst);
    // Ordering: Acquire pairs with the owner's Release stores of `bottom`, so the slots before
    // `bottom` are written. The thief loads `buffer` after its claim, and so finds a buffer that
    // holds them.
    let bottom = deque.bottom.load(Acquire);
    u32::try_from(head.len(bottom)).unwrap_or(0)
}

impl<T: Send> Stealer<T> {
    /// Returns the number of items in the deque, as this thread sees it.
    pub fn len(&self) -> usize {
        self.deque.len()
    }

    /// Returns whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether this stealer steals from `worker`'s deque.
    pub fn is_of(&self, worker: &Worker<T>) -> bool {
        Arc::ptr_eq(&self.deque, &worker.owner.queue)
    }

    /// Returns whether both stealers steal from the same deque.
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.deque, &other.deque)
    }

    /// Takes the oldest item. Costs two read-modify-writes and a `SeqCst` fence.
    pub fn steal(&self) -> Steal<T> {
        let mut first = None;
        let stolen = self.take(StealLimit::AtMost(1), |item| first = Some(item));
        with_first(stolen, first)
    }

    /// Takes up to `limit` of the oldest items: returns the first and pushes the others to
    /// `worker`'s deque, the oldest first. Costs one read-modify-write and one `SeqCst` fence for
    /// each item, and one more read-modify-write.
    ///
    /// Takes nothing and returns [`Steal::Empty`] if `worker` owns this deque.
    ///
    /// # Panics
    /// If there would be more than 2³⁰ items in `worker`'s deque. The items that have room are then
    /// moved. The first item and the item that has no room are dropped.
    pub fn steal_into_and_pop(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<T> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        let mut first = None;
        let stolen = self.take(limit, |item| match first {
            None => first = Some(item),
            Some(_) => worker.push(item),
        });
        with_first(stolen, first)
    }

    /// Takes up to `limit` of the oldest items, and pushes them to `worker`'s deque, the oldest
    /// first. Returns how many it moved. Costs as much as
    /// [`steal_into_and_pop`](Self::steal_into_and_pop).
    ///
    /// Takes nothing and returns [`Steal::Empty`] if `worker` owns this deque.
    ///
    /// # Panics
    /// If there would be more than 2³⁰ items in `worker`'s deque. The items that have room are then
    /// moved, and the item that has no room is dropped.
    pub fn steal_into(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        self.take(limit, |item| worker.push(item))
    }

    /// Takes items one by one (rule 4). The limit applies to the number of items that the thief
    /// sees before its first claim.
    fn take(&self, limit: StealLimit, mut sink: impl FnMut(T)) -> Steal<()> {
        let mut head = self.deque.load_head();
        if head.is_copying() {
            return Steal::Retry;
        }
        let (mut moved, mut wanted, mut claim) = (0, None, None);
        loop {
            let len = stealable_len(&self.deque, head);
            let wanted = *wanted.get_or_insert_with(|| limit.of(len));
            if len == 0 || wanted == 0 {
                break;
            }
            let claimed = head.claimed(1);
            if self.deque.exchange_head(head, claimed).is_err() {
                break;
            }
            // Releases the claim when it is dropped, also if `sink` panics.
            claim.get_or_insert_with(|| Claim(&self.deque));
            // SAFETY: this thief has a claim.
            let slots = unsafe { self.deque.claimed_slots() };
            // SAFETY: the item is claimed, not released, and read once.
            sink(unsafe { slots.read(head.top) });
            moved += 1;
            if moved == wanted {
                break;
            }
            head = claimed;
        }
        drop(claim);
        match (moved, wanted) {
            // The thief saw no item before its first claim, or the limit is 0.
            (0, Some(0)) => Steal::Empty,
            (0, _) => Steal::Retry,
            _ => Steal::Success {
                first: (),
                moved: moved as usize,
            },
        }
    }
}

/// Adds the first item to the result, and does not count it as moved.
fn with_first<T>(stolen: Steal<()>, first: Option<T>) -> Steal<T> {
    match (stolen, first) {
        (Steal::Success { moved, .. }, Some(first)) => Steal::Success {
            first,
            moved: moved - 1,
        },
        (Steal::Retry, _) => Steal::Retry,
        _ => Steal::Empty,
    }
}

impl<T> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self {
            deque: self.deque.clone(),
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
            .field("len", &self.deque.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
