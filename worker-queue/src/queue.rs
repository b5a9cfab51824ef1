//! The worker's end of its queue, and the rules for notifying sleepers.
//!
//! # Actors
//!
//! | actor | what it does |
//! |---|---|
//! | worker | owns the queue: pushes, requeues and takes items |
//! | thief | a worker that steals from another worker's ring; it is a *searcher* until it stops searching |
//! | watcher | takes from a slot an item that it has seen there for too long |
//! | sleeper | a worker that has announced its sleep and has looked at all queues after that |
//!
//! # Places
//!
//! | place | filled by | emptied by |
//! |---|---|---|
//! | the slot | the worker | the worker, a watcher |
//! | the ring | the worker | the worker, thieves |
//! | the requeued item | the worker | the worker |
//!
//! A worker *notifies of* an item if it calls `notify` after the item's push.
//!
//! # Rules
//!
//! As a rule, a worker that pushes an item into its ring notifies a sleeper. A requeue is the
//! exception: an item has run, and is to run again behind the others, because its task yielded or
//! was woken in its own poll. If the queue has no other item, the worker does not push the item: it
//! keeps the item as the *requeued item*, and runs it next. If the slot is empty and the ring has
//! other items, the worker pushes the item. In neither case does the worker notify, unless the ring
//! overflows. The rules prove that nevertheless no worker sleeps while another worker runs two
//! items in turns:
//!
//! 1. While the worker runs an item, there is no requeued item, because the worker takes the
//!    requeued item next. The worker may also take another item next: from a share of the injector,
//!    the oldest item of the injector by [`RunQueue::take_one`](crate::RunQueue::take_one), or the
//!    slot's item. Then it also pushes the requeued item into the ring. If the ring is not empty
//!    after that, the worker notifies.
//! 2. So while the worker runs another item, one of these holds for each item in the ring, unless
//!    it is an item of rule 3:
//!    - The worker has notified of the item, with a fence after the item's push.
//!    - The item came by a steal, and the worker, as its thief, still counts as a searcher.
//!    - `leave` pushed the item as the only one, and the worker takes it next.
//! 3. If the slot is empty and the ring is neither empty nor full, a requeue pushes the item into
//!    the ring, and the worker takes from the ring next. Consider the last push before this one, of
//!    a kind that rule 2 or rule 6 names. Either the ring has not been empty since, or thieves have
//!    emptied it and the worker next takes the item that it requeues. In the first case, a worker
//!    that slept at that last push was notified, or there was a searcher; and a worker that went to
//!    sleep since then saw an item in its last look at the ring. In the second case, no other
//!    worker is needed.
//! 4. If the slot is filled, a requeue pushes the item and notifies, because the slot's item runs
//!    next, for any length of time.
//! 5. A caller that breaks the order of a worker's calls delays items, but loses none. If it
//!    requeues two items without a take in between, the second requeue pushes the first item into
//!    the ring and notifies of it. The requeued item stays in its place until the worker takes its
//!    next item, even if items are stolen, or taken from the slot alone, meanwhile.
//! 6. A push that overflows notifies, whichever operation pushes, after it has passed the items to
//!    [`QueueHooks::overflow`]. Before that call no other worker can find the items: a worker may
//!    have emptied the ring and gone to sleep since they left it. After the call they wait behind
//!    whatever the worker takes next.
//! 7. [`WorkerQueue::between_items`] is for pushes between two items, such as those of the tasks
//!    that a look at sockets wakes. If the queue is empty at such a push, the item becomes the
//!    requeued item, as the worker takes it next. Each other push puts the requeued item into the
//!    ring, pushes its own item, and notifies. A requeue would not do: several items may come
//!    before the worker takes one, and thieves may empty the ring before them. Then the second case
//!    of rule 3 would hold only for one of the items.
//!
//! The ring is borrowed for one operation at a time. No user code runs during an operation, except
//! the methods of [`Linked`], which by their contract call no queue. An operation collects the
//! items that overflow, and the queue passes them to the hooks afterwards.
use crate::{Batch, Next, QueueHooks, Slot, Stealer, arc::Arc};
use core::{cell::Cell, fmt};
use queue_global::{Injector, Linked, List, Lock};
use queue_spmc::{
    Overflow,
    ring::{self, Full},
};
use sync_shim::{CachePadded, cell::UnsafeCell};

/// A worker's own queue: the worker's end. It is `Send`, but not `Sync`: one thread at a time uses
/// it.
///
/// Items are handles of [`Linked`] nodes. The queue allocates nothing after its creation. Dropping
/// the queue drops its items.
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
/// queue.push_next(item(3), &injector); // Displaces item 2, which goes behind item 1.
/// let items = std::iter::from_fn(|| queue.next(&injector));
/// let order: Vec<u32> = items.map(|next| next.item.value).collect();
/// assert_eq!(order, [3, 1, 2]);
/// ```
///
/// ```compile_fail,E0277
/// # use queue_global::Boxed;
/// let queue = worker_queue::WorkerQueue::<Boxed<u32>>::new(256);
/// std::thread::scope(|s| { s.spawn(|| queue.is_empty()); });
/// ```
pub struct WorkerQueue<T: Linked> {
    /// Borrowed only in [`ring`](Self::ring).
    ring: UnsafeCell<ring::Worker<T::Handle>>,
    /// The requeued item: the worker takes it next, and no other thread can take it (rule 1).
    requeued: Cell<Option<T::Handle>>,
    slot: Arc<CachePadded<Slot<T>>>,
    next_goes: Cell<NextGoes>,
    /// The state of the random numbers that choose the first victim.
    pub(crate) random: Cell<u64>,
}

/// The place of the items of [`WorkerQueue::push_next`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NextGoes {
    /// The slot.
    Slot,
    /// The place of the requeued item, if the queue is empty (rule 7).
    Aside,
    /// Behind the other items.
    Behind,
}

impl<T: Linked<Handle: Send>> WorkerQueue<T> {
    /// Makes an empty queue whose ring has room for `capacity` items.
    ///
    /// # Panics
    /// If `capacity` is not a power of two, is below 2, or is above 2³¹.
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        Self {
            ring: UnsafeCell::new(ring::Worker::new(capacity)),
            requeued: Cell::new(None),
            slot: Arc::new(CachePadded::new(Slot::new())),
            next_goes: Cell::new(NextGoes::Slot),
            random: Cell::new(1),
        }
    }

    /// Sets whether [`push_next`](Self::push_next) uses the slot, as it does by default. If not,
    /// `push_next` pushes the item behind the others.
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
    pub fn with_slot(self, on: bool) -> Self {
        let place = if on { NextGoes::Slot } else { NextGoes::Behind };
        self.next_goes.set(place);
        self
    }

    /// Seeds the random numbers from a seed for all workers and the worker's index, so that the
    /// workers begin their searches at different victims.
    ///
    /// ```
    /// # use queue_global::Boxed;
    /// use worker_queue::WorkerQueue;
    ///
    /// let queues = (0..4).map(|index| WorkerQueue::<Boxed<u32>>::new(256).with_seed(42, index));
    /// # drop(queues);
    /// ```
    pub fn with_seed(self, seed: u64, index: usize) -> Self {
        // Odd multiples of an odd number: never 0, and different for each worker.
        let random = (seed | 1).wrapping_mul((index as u64).wrapping_mul(2) | 1);
        self.random.set(random);
        self
    }

    /// Makes a handle for the other threads.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            ring: self.ring(|ring| ring.stealer()),
            slot: self.slot.clone(),
        }
    }

    /// Runs one operation on the ring: `f` calls that operation and nothing else. No operation on
    /// the ring runs user code or calls this function again.
    #[inline(always)]
    pub(crate) fn ring<R>(&self, f: impl FnOnce(&mut ring::Worker<T::Handle>) -> R) -> R {
        // SAFETY: only this thread uses the queue, and each `f` in this crate is one operation.
        self.ring.with_mut(|ring| f(unsafe { &mut *ring }))
    }

    /// Puts an item into the slot, to run next. The old item of the slot goes behind the others,
    /// and a sleeper is notified of it.
    #[inline]
    pub fn push_next(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        if self.next_goes.get() != NextGoes::Slot {
            return self.push_next_without_slot(item, hooks);
        }
        // SAFETY: only this queue fills the slot, and one thread at a time uses the queue.
        match unsafe { self.slot.put(item) } {
            Some(displaced) => self.push_back(displaced, hooks),
            None => hooks.slot_filled(),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_next_without_slot(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        if self.next_goes.get() == NextGoes::Aside {
            if self.is_surely_empty() {
                return self.requeued.set(Some(item));
            }
            self.publish_requeued(hooks);
        }
        self.push_back(item, hooks);
    }

    /// Returns whether the queue is empty. If thieves have emptied the ring, the answer may be
    /// false.
    fn is_surely_empty(&self) -> bool {
        let waits = self.has_requeued() || !self.slot.is_empty();
        !waits && self.ring(|ring| ring.is_surely_empty())
    }

    fn has_requeued(&self) -> bool {
        let requeued = self.requeued.take();
        let has_one = requeued.is_some();
        self.requeued.set(requeued);
        has_one
    }

    /// Runs `f`, in which the worker pushes items between two of its own: for example the tasks
    /// that the events of sockets wake. After this call, the worker takes its next item at once.
    ///
    /// Meanwhile [`push_next`](Self::push_next) does not use the slot, so the items run in the
    /// order of their pushes. An item that finds the queue empty is kept aside, as by
    /// [`requeue`](Self::requeue): no thief finds it, and nobody is notified of it. The next push
    /// also pushes that item into the ring, and notifies (rule 7 at the head of the source).
    ///
    /// If `f` runs code that may block, call [`open_slot`](Self::open_slot) before it blocks: it
    /// opens the item that is kept aside, too.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.between_items(|| queue.push_next(item(1), &injector));
    /// assert!(queue.slot_is_empty() && queue.stealer().is_empty());
    /// assert_eq!(queue.next(&injector).unwrap().item.value, 1);
    /// ```
    pub fn between_items<R>(&self, f: impl FnOnce() -> R) -> R {
        struct Restore<'a>(&'a Cell<NextGoes>, NextGoes);
        impl Drop for Restore<'_> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }
        let before = self.next_goes.replace(NextGoes::Aside);
        let _restore = Restore(&self.next_goes, before);
        f()
    }

    /// Pushes an item behind the others, and notifies.
    #[inline]
    pub fn push_back(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        match self.ring(|ring| ring.push(item)) {
            Ok(()) => hooks.notify(),
            Err(Full(item)) => self.overflow_and_notify(item, hooks),
        }
    }

    /// Pushes an item behind the others. Notifies if the ring has no room for it; otherwise the
    /// caller notifies.
    #[inline]
    fn push(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        if let Err(Full(item)) = self.ring(|ring| ring.push(item)) {
            self.overflow_and_notify(item, hooks);
        }
    }

    /// Passes the items for which the ring has no room to the hooks, and notifies (rule 6).
    #[cold]
    #[inline(never)]
    fn overflow_and_notify(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        let spilt = Spilt(Cell::default());
        self.ring(|ring| ring.push_or_overflow(item, &spilt));
        let items = spilt.0.into_inner();
        if !items.is_empty() {
            hooks.overflow(items);
        }
        hooks.notify();
    }

    /// Queues an item that has run and is to run again, behind the others. After this call, the
    /// worker takes its next item at once: it does not continue the current item.
    ///
    /// Notifies if the slot is filled, because this item then waits for the slot's item. Otherwise
    /// notifies only if there is a requeued item already, or if the ring overflows. The rules at
    /// the head of the source say why.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// // An item that yields alone is kept aside, and no sleeper is notified.
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
            // The slot and the ring are empty, so the item that has run is also the next to run.
            if let Some(before) = self.requeued.replace(Some(item)) {
                self.push_requeued(before, hooks);
            }
        } else {
            self.push(item, hooks); // Rule 3.
        }
    }

    /// Pushes the item and notifies (rule 4).
    #[cold]
    #[inline(never)]
    fn requeue_behind_slot(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push_back(item, hooks);
    }

    /// Pushes `before`, which was the requeued item, and then the new requeued item. Notifies (rule
    /// 5).
    #[cold]
    #[inline(never)]
    fn push_requeued(&self, before: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push(before, hooks);
        self.publish_and_notify(hooks);
    }

    /// Pushes the requeued item, if there is one, because another item runs next. Notifies if the
    /// ring has items after that (rule 1).
    #[cold]
    pub(crate) fn publish_and_notify(&self, hooks: &impl QueueHooks<T>) {
        self.publish_requeued(hooks);
        if !self.ring(|ring| ring.is_surely_empty()) {
            hooks.notify();
        }
    }

    /// Pushes the requeued item into the ring, where thieves can take it.
    fn publish_requeued(&self, hooks: &impl QueueHooks<T>) {
        if let Some(item) = self.requeued.take() {
            self.push(item, hooks);
        }
    }

    /// Prepares the worker for a time in which it runs no items: pushes the requeued item into the
    /// ring, and notifies if the ring had items before, or overflows. The slot keeps its item.
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

    /// Prepares the worker to block, in the middle of an item or between two of them: moves the
    /// slot's item and the requeued item into the ring, and notifies.
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
        let opened = [self.requeued.take(), self.slot.take()];
        for item in opened.into_iter().flatten() {
            self.push_back(item, hooks);
        }
    }

    /// Returns whether the slot is empty. The answer is exact, unless a watcher steals the item.
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

    /// Takes the slot's item, for a worker that runs this item before all others, as part of the
    /// current item's turn. Call this only after [`next`](Self::next) has returned the current
    /// item.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_back(item(1), &injector);
    /// let running = queue.next(&injector).unwrap();
    /// queue.push_next(item(2), &injector); // The running item does this.
    /// # drop(running);
    /// assert_eq!(queue.take_slot().unwrap().value, 2);
    /// ```
    #[inline]
    pub fn take_slot(&self) -> Option<T::Handle> {
        self.slot.take()
    }

    /// Requeues the slot's item behind the others, as [`requeue`](Self::requeue) does: for a worker
    /// that has run enough items from the slot in a row.
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

    /// Takes the item to run next: the slot's, or the requeued one, or else the ring's oldest.
    #[inline(always)]
    pub fn next(&self, hooks: &impl QueueHooks<T>) -> Option<Next<T::Handle>> {
        if let Some(item) = self.slot.take() {
            self.publish_and_notify(hooks);
            return Some(Next {
                item,
                from_slot: true,
            });
        }
        // This is not an `or_else`, because the compiler makes that a function of its own.
        let item = match self.requeued.take() {
            Some(item) => item,
            None => self.pop()?,
        };
        Some(Next {
            item,
            from_slot: false,
        })
    }

    #[inline(always)]
    fn pop(&self) -> Option<T::Handle> {
        self.ring(ring::Worker::pop)
    }

    /// Returns whether the slot and the ring are empty, and there is no requeued item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.has_requeued() && self.slot.is_empty() && self.ring(|ring| ring.is_empty())
    }

    /// Returns how many more items the ring has room for. It is a lower bound, since thieves only
    /// make room.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(4);
    /// queue.push_back(Box::new(Boxed::new(7)), &injector);
    /// assert_eq!(queue.spare_capacity(), 3);
    /// ```
    #[inline]
    pub fn spare_capacity(&self) -> usize {
        self.ring(|ring| ring.spare_capacity())
    }

    /// Takes any item that is left, and does not notify: for shutdown.
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

    /// Takes a fair share of the injector: the injector's length divided by the number of workers,
    /// plus one. The first item is to run now. The others go into the ring: at most half as many as
    /// the ring has room for. The requeued item goes into the ring too.
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
        let room = self.spare_capacity();
        let mut items = injector.pop_n(share.min(room / 2 + 1));
        let first = items.pop_front()?;
        let moved = items.len();
        while let Some(item) = items.pop_front() {
            self.push(item, hooks);
        }
        // All items in the ring, old and new, now wait for `first`.
        self.publish_and_notify(hooks);
        Some(Batch { first, moved })
    }
}

/// Collects the items for which the ring has no room, until the operation is over.
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
    /// Drops the slot's item. Stealers may outlive the queue, and would keep that item.
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
