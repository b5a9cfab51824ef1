//! The worker's end, and who is notified of what it queues.
//!
//! | what | who puts in | who takes out |
//! |---|---|---|
//! | the slot | the worker | the worker; another that has seen the item there for too long |
//! | the ring | the worker | the worker; thieves |
//! | the item at hand | the worker | the worker |
//!
//! Of a push into the ring a sleeper is notified, as a rule. But an item that goes behind the others (its task yielded, or was woken in its own poll) finds none there or many. Where it
//! finds none it is not queued but kept at hand, to be run next; where there are some it goes into the ring. Neither is notified of. Why none sleeps on beside two
//! items that a worker runs in turns:
//!
//! 1. While an item is run, nothing is at hand: it is what the worker takes up next. Where something else is next after all (a share of the injector, an item in the
//!    slot), what is at hand goes into the ring, and if the ring has anything then, a sleeper is notified.
//! 2. So what is in the ring while an item is run was notified of, by a fence after its push, or is there by a theft, whose thief looks after it as a searcher, or by `leave`, as the
//!    only one, which the worker takes next.
//! 3. A requeue with the slot empty adds to the ring, and the worker takes from it next. If the ring was not empty, then since the push that rule 2 names it never was, or thieves
//!    have emptied it and the worker takes what it has just pushed. In the first case whoever slept at that push was notified, or a searcher was there, and who has gone to sleep since
//!    looked at the ring last, and saw something. In the second nobody else is needed.
//! 4. A requeue with something in the slot tells: the slot's item runs next, for as long as it likes.
//! 5. Who uses the queue otherwise than a worker does delays others, and loses nothing: of two requeues without taking one in between the first goes into the ring, and is notified of; what is
//!    at hand when something is stolen, or taken from the slot alone, stays there until the next one is taken.
//!
//! The ring is borrowed for one operation at a time, and no code of a user runs within: an overflow is collected, and leaves when the operation is over. Those of [`Linked`] do, which call no
//! queue by their contract.
use crate::{Batch, QueueHooks, Slot, Stealer, arc::Arc};
use core::{cell::Cell, fmt};
use queue_global::{Injector, Linked, List, Lock};
use queue_spmc::{
    Overflow,
    ring::{self, Full},
};
use sync_shim::{CachePadded, cell::UnsafeCell};

/// A worker's own queue: its end. `Send`, but not `Sync`: it is one thread's at a time.
///
/// Items are handles of [`Linked`] nodes. None is allocated for, nor is anything else once the queue is there. When it is dropped, its items are.
///
/// ```
/// # use queue_global::{Boxed, Injector};
/// # let item = |n| Box::new(Boxed::new(n));
/// # let injector = Injector::<Boxed<u32>>::new();
/// use worker_queue::WorkerQueue;
///
/// let queue = WorkerQueue::new(256); // Its overflow goes to `injector`.
/// queue.push_back(item(1), &injector);
/// queue.push_next(item(2), &injector);
/// queue.push_next(item(3), &injector); // Displaces the other, which goes behind.
/// let order: Vec<u32> = std::iter::from_fn(|| queue.next(&injector)).map(|next| next.item.value).collect();
/// assert_eq!(order, [3, 1, 2]);
/// ```
///
/// ```compile_fail,E0277
/// # use queue_global::Boxed;
/// let queue = worker_queue::WorkerQueue::<Boxed<u32>>::new(256);
/// std::thread::scope(|s| { s.spawn(|| queue.is_empty()); });
/// ```
pub struct WorkerQueue<T: Linked> {
    /// See [`ring`](Self::ring).
    ring: UnsafeCell<ring::Worker<T::Handle>>,
    /// Rule 1.
    requeued: Cell<Option<T::Handle>>,
    slot: Arc<CachePadded<Slot<T>>>,
    has_slot: bool,
    /// What says whom it steals from first.
    pub(crate) random: Cell<u64>,
}

/// What a worker runs next; see [`WorkerQueue::next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next<H> {
    /// The item.
    pub item: H,
    /// Whether it was in the slot.
    pub from_slot: bool,
}

impl<T: Linked<Handle: Send>> WorkerQueue<T> {
    /// An empty one, whose ring has room for so many.
    ///
    /// # Panics
    /// When `capacity` is no power of two, below 2, or above 2³¹.
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        Self {
            ring: UnsafeCell::new(ring::Worker::new(capacity)),
            requeued: Cell::new(None),
            slot: Arc::new(CachePadded::new(Slot::new())),
            has_slot: true,
            random: Cell::new(1),
        }
    }

    /// Has [`push_next`](Self::push_next) push behind the others, or not, as it is unless notified.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256).with_slot(false);
    /// queue.push_next(item(1), &injector);
    /// queue.push_next(item(2), &injector);
    /// assert_eq!(queue.next(&injector).unwrap().item.value, 1);
    /// ```
    pub fn with_slot(mut self, on: bool) -> Self {
        self.has_slot = on;
        self
    }

    /// Has a worker begin its searches elsewhere than the others: what is random in it comes from a seed of all, and from its index.
    ///
    /// ```
    /// # use queue_global::Boxed;
    /// let queues = (0..4).map(|index| worker_queue::WorkerQueue::<Boxed<u32>>::new(256).with_seed(42, index));
    /// # drop(queues);
    /// ```
    pub fn with_seed(self, seed: u64, index: usize) -> Self {
        // Odd multiples of an odd number: never 0, and different for each worker.
        let random = (seed | 1).wrapping_mul((index as u64).wrapping_mul(2) | 1);
        self.random.set(random);
        self
    }

    /// The others' end.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            ring: self.ring(|ring| ring.stealer()),
            slot: self.slot.clone(),
        }
    }

    /// One operation on the ring: `f` does that and nothing else. None of them runs a user's code, or gets here again.
    #[inline(always)]
    pub(crate) fn ring<R>(&self, f: impl FnOnce(&mut ring::Worker<T::Handle>) -> R) -> R {
        // SAFETY: the queue is this thread's, and each `f` in this crate is one operation.
        self.ring.with_mut(|ring| f(unsafe { &mut *ring }))
    }

    /// What is to run next, or soon: to the slot. What was there goes behind the others, and only then is there something for a thief.
    #[inline]
    pub fn push_next(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        if !self.has_slot {
            return self.push_back(item, hooks);
        }
        // SAFETY: nobody else puts anything in, and this handle is one thread's at a time.
        match unsafe { self.slot.put(item) } {
            Some(displaced) => self.push_back(displaced, hooks),
            None => hooks.slot_filled(),
        }
    }

    /// What is to run after the others. Tells.
    #[inline]
    pub fn push_back(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push(item, hooks);
        hooks.notify();
    }

    /// The caller tells.
    #[inline]
    fn push(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        if let Err(Full(item)) = self.ring(|ring| ring.push(item)) {
            self.overflow(item, hooks);
        }
    }

    #[cold]
    #[inline(never)]
    fn overflow(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        let spilt = Spilt(Cell::default());
        self.ring(|ring| ring.push_or_overflow(item, &spilt));
        let items = spilt.0.into_inner();
        if !items.is_empty() {
            hooks.overflow(items);
        }
    }

    /// What has run and is to run again goes behind the others. The worker takes the next one now: it doesn't run this one's caller any longer.
    ///
    /// Tells only where somebody else is next for whom this one would wait: see the rules at the head of the source.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// // One that yields and yields, alone: it is passed through, and nobody hears of it.
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.requeue(item(1), &injector);
    /// let again = queue.next(&injector).unwrap().item;
    /// queue.requeue(again, &injector);
    /// assert!(queue.stealer().is_empty() && !queue.is_empty());
    /// ```
    #[inline(always)]
    pub fn requeue(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        if !self.slot.is_empty() {
            self.requeue_behind_slot(item, hooks);
        } else if self.ring(|ring| ring.is_surely_empty()) {
            // There was nothing: the one that has run was next.
            if let Some(before) = self.requeued.replace(Some(item)) {
                self.push_requeued(before, hooks);
            }
        } else {
            self.push(item, hooks); // Rule 3.
        }
    }

    /// Rule 4.
    #[cold]
    #[inline(never)]
    fn requeue_behind_slot(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push_back(item, hooks);
    }

    /// Rule 5: `before` was at hand.
    #[cold]
    #[inline(never)]
    fn push_requeued(&self, before: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push(before, hooks);
        self.publish_and_notify(hooks);
    }

    /// Rule 1: another item is next.
    #[cold]
    fn publish_and_notify(&self, hooks: &impl QueueHooks<T>) {
        self.publish_requeued(hooks);
        if !self.ring(|ring| ring.is_surely_empty()) {
            hooks.notify();
        }
    }

    /// What is at hand goes where others can have it.
    fn publish_requeued(&self, hooks: &impl QueueHooks<T>) {
        if let Some(item) = self.requeued.take() {
            self.push(item, hooks);
        }
    }

    /// Before the worker does something else for a while than to run its items: what is at hand is opened to others, who are told, unless it is all there is. What is in the slot stays.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.requeue(item(1), &injector);
    /// queue.leave(&injector);
    /// assert_eq!(queue.stealer().len(), 1);
    /// ```
    pub fn leave(&self, hooks: &impl QueueHooks<T>) {
        let alone = self.ring(|ring| ring.is_surely_empty());
        self.publish_requeued(hooks);
        if !alone {
            hooks.notify();
        }
    }

    /// Before the worker is held up in the middle of an item: what is in the slot is opened to others, who are notified.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_next(item(1), &injector);
    /// assert!(queue.stealer().is_empty());
    /// queue.open_slot(&injector);
    /// assert!(!queue.stealer().is_empty());
    /// ```
    pub fn open_slot(&self, hooks: &impl QueueHooks<T>) {
        if let Some(item) = self.slot.take() {
            self.push_back(item, hooks);
        }
    }

    /// Whether the slot is empty: certain, unless it is robbed.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_next(item(1), &injector);
    /// assert!(!queue.slot_is_empty());
    /// ```
    #[inline]
    pub fn slot_is_empty(&self) -> bool {
        self.slot.is_empty()
    }

    /// Takes from the slot, for a worker that runs what an item has put there in that item's own turn, without a look at the others. Not before
    /// [`next`](Self::next) has given that one.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_back(item(1), &injector);
    /// let running = queue.next(&injector).unwrap();
    /// queue.push_next(item(2), &injector); // What it does.
    /// # drop(running);
    /// assert_eq!(queue.take_slot().unwrap().value, 2);
    /// ```
    #[inline]
    pub fn take_slot(&self) -> Option<T::Handle> {
        self.slot.take()
    }

    /// What is in the slot goes behind the others, as by [`requeue`](Self::requeue): for a worker that has run enough of such in a row.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_back(item(1), &injector);
    /// queue.push_next(item(2), &injector);
    /// queue.requeue_slot(&injector);
    /// assert_eq!(queue.next(&injector).unwrap().item.value, 1);
    /// ```
    #[cold]
    #[inline(never)]
    pub fn requeue_slot(&self, hooks: &impl QueueHooks<T>) {
        if let Some(last) = self.slot.take() {
            self.requeue(last, hooks);
        }
    }

    /// What the worker is to run next: what is in the slot, or at hand, or else the ring's oldest.
    #[inline]
    pub fn next(&self, hooks: &impl QueueHooks<T>) -> Option<Next<T::Handle>> {
        if let Some(item) = self.slot.take() {
            self.publish_and_notify(hooks);
            return Some(Next {
                item,
                from_slot: true,
            });
        }
        let item = self.requeued.take().or_else(|| self.pop())?;
        Some(Next {
            item,
            from_slot: false,
        })
    }

    #[inline]
    fn pop(&self) -> Option<T::Handle> {
        self.ring(ring::Worker::pop)
    }

    /// Whether slot and ring are empty, and nothing is at hand.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let requeued = self.requeued.take();
        let nothing = requeued.is_none();
        self.requeued.set(requeued);
        nothing && self.slot.is_empty() && self.ring(|ring| ring.is_empty())
    }

    /// Takes anything that is left, and tells nobody: for the end.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_back(item(1), &injector);
    /// queue.push_next(item(2), &injector);
    /// while let Some(item) = queue.take_any() {
    ///     drop(item);
    /// }
    /// assert!(queue.is_empty());
    /// ```
    pub fn take_any(&self) -> Option<T::Handle> {
        let own = self.requeued.take().or_else(|| self.slot.take());
        own.or_else(|| self.pop())
    }

    /// Takes a fair share of the queue that all workers share: its length by their number, and one; at most half of what the ring has room for. The first of them is to
    /// run, the others go into the ring, and what is at hand, too.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// injector.requeue_batch((0..9).map(item).collect());
    /// assert_eq!(injector.pop().unwrap().value, 0); // Leaves eight, for four workers.
    /// let share = queue.take_share(&injector, 4, &injector).unwrap();
    /// assert_eq!((share.first.value, share.moved), (1, 2));
    /// ```
    pub fn take_share<L: Lock>(
        &self,
        injector: &Injector<T, L>,
        workers: usize,
        hooks: &impl QueueHooks<T>,
    ) -> Option<Batch<T::Handle>> {
        let waiting = injector.len();
        if waiting == 0 {
            return None;
        }
        let share = waiting / workers.max(1) + 1;
        let room = self.ring(|ring| ring.spare_capacity());
        let mut items = injector.pop_n(share.min(room / 2 + 1));
        let first = items.pop_front()?;
        let moved = items.len();
        while let Some(item) = items.pop_front() {
            self.push(item, hooks);
        }
        // What is in the ring, also from before, waits for this one now.
        self.publish_and_notify(hooks);
        Some(Batch { first, moved })
    }
}

/// What a ring had no room for, until the operation is over.
struct Spilt<T: Linked>(Cell<List<T>>);

impl<T: Linked> Spilt<T> {
    fn take(&self, items: impl Iterator<Item = T::Handle>) {
        let mut list = self.0.take();
        list.extend(items);
        self.0.set(list);
    }
}

impl<T: Linked> Overflow<T::Handle> for Spilt<T> {
    fn push(&self, item: T::Handle) {
        self.take(core::iter::once(item));
    }

    fn push_batch(&self, items: impl ExactSizeIterator<Item = T::Handle>) {
        self.take(items);
    }
}

impl<T: Linked> Drop for WorkerQueue<T> {
    /// The stealers may outlive it, and would keep the slot's item.
    fn drop(&mut self) {
        drop(self.slot.take());
    }
}

impl<T: Linked> fmt::Debug for WorkerQueue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerQueue")
            .field("slot", &self.slot)
            .finish_non_exhaustive()
    }
}
