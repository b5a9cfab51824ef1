//! A growable LIFO deque with one owner and many thieves, after Chase and Lev.
//!
//! The owner's side is the published algorithm with the fences of Lê, Pop, Cohen and Zappa Nardelli
//! ("Correct and efficient work-stealing for weak memory models", PPoPP 2013). The thief's differs:
//! there a thief copies the item first and then claims it, so that it may read a slot while the
//! owner overwrites it, a data race on a plain slot. Here it claims first, copies, and then
//! releases the slot, as in [`ring`](crate::ring). Since a claim shows, the owner also knows when
//! it may free a buffer that it has replaced, and a thief announces nothing else.
//!
//! The fields, and how buffers are replaced and freed, are those of all growable queues:
//! `growable.rs`. Here `bottom` also goes down, when the owner tries to pop; `top ≤ bottom`, but
//! while the owner looks for a last item that is gone: then `bottom` is `top − 1`.
//!
//! # Rules
//!
//! 1. The owner takes the newest item by lowering `bottom`, a thief the oldest by raising `top`.
//! 2. Both may want the last one. The owner lowers `bottom` and then reads `head`, a thief reads
//!    `head` and then `bottom`, each with a `SeqCst` fence in between. So either the owner sees
//!    that the thief has claimed, or the thief sees that the owner took the item; and if the owner
//!    sees that there is but one left, it claims by the exchange on `head`, like a thief.
//! 3. A thief claims items one by one, each with an exchange after a look at `bottom`, and releases
//!    all of them with one more. Several with one exchange is unsound: the owner takes items
//!    without an exchange as long as it sees two or more, so it may have taken what the thief
//!    counted.
use crate::{
    Steal, StealLimit,
    growable::{Arc, Claim, Head, LEAST, Owner, Queue},
};
use core::fmt;
use sync_shim::atomic::{
    Ordering::{Acquire, Release, SeqCst},
    fence,
};

/// The owner's end: pushes and pops the newest.
///
/// There is one, and every operation that changes the queue takes `&mut self`. When it is dropped it
/// drops the items; what
/// thieves have claimed by then is theirs. A worker that is forgotten leaves its items to the
/// stealers, and the deque is never freed.
///
/// ```
/// use queue_spmc::{Steal, deque::Worker};
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
/// A shared worker has only the operations that read, and they run beside thieves, not beside the
/// owner's, which need the worker alone. So it is `Sync`:
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
}

/// A thief's end: takes the oldest. Clones share the deque.
pub struct Stealer<T> {
    deque: Arc<Queue<T>>,
}

impl<T: Send> Default for Worker<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> Worker<T> {
    /// An empty deque with room for 32 items.
    pub fn new() -> Self {
        Self::with_capacity(LEAST)
    }

    /// An empty deque with room for so many items, rounded up to a power of two, at least two. It
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

    /// A thief's end of this deque.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            deque: self.owner.queue.clone(),
        }
    }

    /// Items in the deque. Thieves may take some at any time.
    pub fn len(&self) -> usize {
        self.owner.queue.len()
    }

    /// Whether the deque is empty. True stays true until the next push.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What fits before the buffer grows.
    pub fn capacity(&self) -> usize {
        self.owner.capacity() as usize
    }

    /// Puts an item on top. No read-modify-write, but when the buffer is full: it doubles, with
    /// one.
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

    /// Takes the newest item. A `SeqCst` fence, and a read-modify-write for the last one only; one
    /// more when the buffer shrinks.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let owner = &mut self.owner;
        let bottom = owner.bottom.wrapping_sub(1);
        // Ordering: Release, as every store of `bottom`: a thief that reads this one must see the
        // pushes below as well.
        owner.queue.bottom.store(bottom, Release);
        // Ordering: SeqCst, rule 2: between the store of `bottom` and the load of `head`. Pairs
        // with the fence in `open`.
        fence(SeqCst);
        let head = owner.queue.load_head();
        let left = head.len(bottom);
        if left <= 0 {
            let won = left == 0 && take_last(&owner.queue, head);
            owner.publish(owner.bottom);
            // SAFETY: the exchange took it.
            let last = won.then(|| unsafe { owner.slots.read(bottom) });
            owner.shrink(0);
            return last;
        }
        owner.bottom = bottom;
        // SAFETY: taken (rule 1): no thief can claim it, having seen either this `bottom` or less
        // than this `head`.
        let item = unsafe { owner.slots.read(bottom) };
        owner.shrink(left as u32);
        Some(item)
    }
}

/// Rule 2: by exchange, whatever thieves do. False when one of them took it.
fn take_last<T>(deque: &Queue<T>, mut head: Head) -> bool {
    let last = head.top;
    loop {
        match deque.exchange_head(head, head.taken()) {
            Ok(()) => return true,
            // A thief released what it took before.
            Err(now) if now.top == last => head = now,
            Err(_) => return false,
        }
    }
}

/// Rule 2: how many items a thief that has just read `head` sees.
fn open<T>(deque: &Queue<T>, head: Head) -> u32 {
    // Ordering: SeqCst, between the load of `head` and that of `bottom`. Pairs with the fence in
    // `pop`.
    fence(SeqCst);
    // Ordering: Acquire pairs with the owner's stores: the slots below are written, in a buffer
    // that the load after the claim finds.
    let bottom = deque.bottom.load(Acquire);
    u32::try_from(head.len(bottom)).unwrap_or(0)
}

impl<T: Send> Stealer<T> {
    /// Items in the deque, as far as this thread sees.
    pub fn len(&self) -> usize {
        self.deque.len()
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this steals from `worker`'s deque.
    pub fn is_of(&self, worker: &Worker<T>) -> bool {
        Arc::ptr_eq(&self.deque, &worker.owner.queue)
    }

    /// Whether both steal from one deque.
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.deque, &other.deque)
    }

    /// Takes the oldest item. Two read-modify-writes and a `SeqCst` fence.
    pub fn steal(&self) -> Steal<T> {
        let mut first = None;
        let stolen = self.take(StealLimit::AtMost(1), |item| first = Some(item));
        with_first(stolen, first)
    }

    /// Takes up to `limit` of the oldest items: the first to run at once, the others on top of
    /// `worker`'s deque, the newest uppermost. A read-modify-write and a `SeqCst` fence an item,
    /// and one read-modify-write.
    ///
    /// Stealing from one's own deque takes nothing: [`Steal::Empty`].
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

    /// Moves up to `limit` of the oldest items on top of `worker`'s deque, the newest uppermost,
    /// and tells how many. Costs as [`steal_into_and_pop`](Self::steal_into_and_pop).
    ///
    /// From one's own deque it takes nothing: [`Steal::Empty`].
    pub fn steal_into(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        self.take(limit, |item| worker.push(item))
    }

    /// Rule 3. The limit is of what there is at the first look.
    fn take(&self, limit: StealLimit, mut sink: impl FnMut(T)) -> Steal<()> {
        let mut head = self.deque.load_head();
        if head.is_copying() {
            return Steal::Retry;
        }
        let (mut moved, mut wanted, mut claim) = (0, None, None);
        loop {
            let len = open(&self.deque, head);
            let wanted = *wanted.get_or_insert_with(|| limit.of(len));
            if len == 0 || wanted == 0 {
                break;
            }
            let claimed = head.claimed(1);
            if self.deque.exchange_head(head, claimed).is_err() {
                break;
            }
            // Releases when it is dropped, the sink's panic included.
            claim.get_or_insert_with(|| Claim(&self.deque));
            // SAFETY: claimed.
            let slots = unsafe { self.deque.claimed_slots() };
            // SAFETY: claimed, not released, and read once.
            sink(unsafe { slots.read(head.top) });
            moved += 1;
            if moved == wanted {
                break;
            }
            head = claimed;
        }
        drop(claim);
        match (moved, wanted) {
            // Nothing to take at the first look, or nothing asked for.
            (0, Some(0)) => Steal::Empty,
            (0, _) => Steal::Retry,
            _ => Steal::Success {
                first: (),
                moved: moved as usize,
            },
        }
    }
}

/// Counts the first item apart.
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
