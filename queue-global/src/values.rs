//! A FIFO of values: a chain of blocks of slots, with one lock for pushers and one for consumers.
//!
//! | field | written by |
//! |---|---|
//! | `pushed` | a pusher or `close`, under the pushers' lock. Twice the number of values pushed, plus the bit [`CLOSED`]. |
//! | `popped` | a consumer, under the consumers' lock. Twice the number of values popped. |
//! | `limit` | a consumer, under the consumers' lock. The value of `pushed` that a consumer read last, without the bit CLOSED. |
//! | `tail` | as `pushed`. The block of the last push, and a copy of `pushed`. |
//! | `head` | as `popped`. The block of the last pop, and copies of `popped` and `limit`. |
//! | `first` | the first pusher: the first block |
//! | `spare` | pushers and consumers, by exchanges: a block for the next pusher that needs one |
//!
//! 1. The *position* of a value is the number of values pushed before it. `pushed`, `popped` and
//!    `limit` are *counts*: they hold twice a number of values, so position p is the count 2p. The
//!    value at position p is in slot p modulo [`SLOTS`]. Position 0 is in the first block. Slot 0
//!    of each later block follows the last slot of the block that links to it. A pusher links a new
//!    block before it fills the block's slot 0.
//! 2. The slot of a position holds a value if the position's count is at least `popped` and below
//!    `pushed`. A pusher writes slots and links, and then stores `pushed`. A consumer that has
//!    acquired a `pushed` above a position's count may read the slot of this position, and the
//!    links up to the slot's block.
//! 3. A consumer leaves a block when it pops slot 0 of the next block. By then the pushers have
//!    left the old block too. So the consumer owns the old block alone: it makes that block the
//!    spare, or frees it.
//! 4. A block is allocated and freed under no lock. A pusher that needs a new block unlocks before
//!    it allocates the block.
//! 5. The only user code that runs under a lock is the user's [`Lock`]: values are moved as bytes.
//! 6. `popped` never passes `pushed`, and neither ever decreases. So if a thread reads `popped` and
//!    then `pushed`, and both are equal, then the queue was empty when the thread read `popped`.
//! 7. A pusher that pushes and then fences (`SeqCst`), and a sleeper that announces its sleep and
//!    then fences before [`is_empty`](ValueInjector::is_empty), can't miss each other: the pusher
//!    sees the announcement, or the sleeper sees the value.
//! 8. Pushes and [`close`](ValueInjector::close) write `pushed` under one lock: so each value is
//!    either queued or handed back.
//! 9. The holder of a lock does not load the counts that it stores to: it reads copies of them. If
//!    the holder loaded and then stored the same atomic, loom 0.7.2 would skip the executions in
//!    which the store comes before another thread's earlier load. A pop does load `popped` and
//!    `limit` before it takes the lock, to find an empty queue without the lock.
//! 10. If the user's [`Lock`] panics, the queue stays consistent. The values of that push or pop
//!     are either in the queue or leaked: they are never dropped twice.
mod batch;
mod block;
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(test)]
mod tests;

pub use batch::Batch;

use crate::{Closed, Lock, lock::Locked};
use block::{Block, SLOTS};
use core::{
    fmt,
    iter::{Chain, Fuse},
    mem::{self, ManuallyDrop, MaybeUninit},
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::{self, NonNull},
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicPtr, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};

/// The bit in `pushed` that marks a closed queue.
const CLOSED: usize = 1;
/// The increment of the counts for one value (rule 1): the lowest bit of `pushed` is [`CLOSED`].
const PER_VALUE: usize = 2;

/// Returns the slot of the position whose count this is (rule 1).
fn slot_of(count: usize) -> usize {
    (count / PER_VALUE) % SLOTS
}

/// A queue of values that need no node. Threads outside of a scheduler use it to hand work to the
/// scheduler's workers.
///
/// Values lie in blocks of 128, so no value has an allocation of its own. A push takes the pushers'
/// lock and a pop the consumers': a pusher waits for no consumer. A pop from an empty queue is
/// three loads and no lock.
///
/// Blocks are allocated and freed as values come and go. The queue keeps at most two blocks that
/// hold no value.
///
/// ```
/// use queue_global::ValueInjector;
///
/// static QUEUE: ValueInjector<&str> = ValueInjector::new();
///
/// QUEUE.push("a").unwrap();
/// QUEUE.push_batch(["b", "c", "d"]).unwrap();
/// assert_eq!(QUEUE.pop(), Some("a"));
///
/// // Two workers share the queue: this one takes half, plus one value that it runs at once.
/// let mut share = QUEUE.pop_n(QUEUE.len() / 2 + 1);
/// assert_eq!(share.next(), Some("b"));
/// assert!(share.eq(["c"]));
/// assert_eq!(QUEUE.len(), 1);
/// ```
#[cfg(feature = "std")]
pub struct ValueInjector<T, L: Lock = crate::DefaultLock> {
    inner: Inner<T, L>,
}

/// A queue of values that need no node. Threads outside of a scheduler use it to hand work to the
/// scheduler's workers.
///
/// Values lie in blocks of 128, so no value has an allocation of its own. A push takes the pushers'
/// lock and a pop the consumers': a pusher waits for no consumer. A pop from an empty queue is
/// three loads and no lock.
///
/// Blocks are allocated and freed as values come and go. The queue keeps at most two blocks that
/// hold no value.
///
/// Without the feature `std` there is no default lock: name [one of your own](Lock), and make the
/// queue by [`with_locks`](Self::with_locks).
///
/// ```compile_fail,E0107
/// fn push(queue: &queue_global::ValueInjector<u32>) {
///     queue.push(7).unwrap();
/// }
/// ```
///
/// ```
/// use queue_global::{Lock, ValueInjector};
///
/// fn push<L: Lock>(queue: &ValueInjector<u32, L>) {
///     queue.push(7).unwrap();
/// }
/// ```
#[cfg(not(feature = "std"))]
pub struct ValueInjector<T, YourLock: Lock> {
    inner: Inner<T, YourLock>,
}

struct Inner<T, L: Lock> {
    pushers: CachePadded<Pushers<T, L>>,
    consumers: CachePadded<Consumers<T, L>>,
    spare: CachePadded<AtomicPtr<Block<T>>>,
}

struct Pushers<T, L> {
    tail: Locked<L, Tail<T>>,
    pushed: AtomicUsize,
    first: UnsafeCell<*mut Block<T>>,
}

struct Tail<T> {
    block: *mut Block<T>,
    /// A copy of the atomic `pushed` (rule 9).
    pushed: usize,
}

struct Consumers<T, L> {
    head: Locked<L, Head<T>>,
    popped: AtomicUsize,
    limit: AtomicUsize,
}

struct Head<T> {
    block: *mut Block<T>,
    /// A copy of the atomic `popped` (rule 9).
    popped: usize,
    /// A copy of the atomic `limit` (rule 9).
    limit: usize,
}

// SAFETY: the queue owns its values and blocks.
unsafe impl<T: Send, L: Lock + Send> Send for ValueInjector<T, L> {}

// SAFETY: values go in on one thread and come out on another; none is shared. One thread at a time
// touches the shared blocks, by the rules at the head of this file.
unsafe impl<T: Send, L: Lock + Sync> Sync for ValueInjector<T, L> {}

// Nothing that unwinds runs while the queue is half changed (rule 5).
impl<T, L: Lock> UnwindSafe for ValueInjector<T, L> {}
impl<T, L: Lock> RefUnwindSafe for ValueInjector<T, L> {}

#[cfg(feature = "std")]
impl<T> ValueInjector<T> {
    sync_shim::const_fn! {
        /// Makes an empty, open queue whose locks are std's mutexes. `const`, except under a model.
        pub const fn new() -> Self {
            Self::with_locks(std::sync::Mutex::new(()), std::sync::Mutex::new(()))
        }
    }
}

impl<T, L: Lock> ValueInjector<T, L> {
    sync_shim::const_fn! {
        /// Makes an empty, open queue with two locks of your own, which nobody holds. `const`,
        /// except under a model.
        pub const fn with_locks(pushers: L, consumers: L) -> Self {
            let tail = Tail {
                block: ptr::null_mut(),
                pushed: 0,
            };
            let head = Head {
                block: ptr::null_mut(),
                popped: 0,
                limit: 0,
            };
            let inner = Inner {
                pushers: CachePadded::new(Pushers {
                    tail: Locked::new(pushers, tail),
                    pushed: AtomicUsize::new(0),
                    first: UnsafeCell::new(ptr::null_mut()),
                }),
                consumers: CachePadded::new(Consumers {
                    head: Locked::new(consumers, head),
                    popped: AtomicUsize::new(0),
                    limit: AtomicUsize::new(0),
                }),
                spare: CachePadded::new(AtomicPtr::new(ptr::null_mut())),
            };
            Self { inner }
        }
    }

    /// Pushes a value at the back, under the pushers' lock. One push in 128 needs a block.
    ///
    /// # Errors
    /// Hands the value back if the queue is closed.
    ///
    /// # Panics
    /// If the queue already holds a quarter of `usize::MAX` values. Only values without a size can
    /// be so many. The pushed value is leaked.
    #[inline]
    pub fn push(&self, value: T) -> Result<(), Closed<T>> {
        let value = ManuallyDrop::new(value);
        // SAFETY: one value, which is forgotten unless the push is refused.
        match unsafe { self.put(&raw const *value, 1, false) } {
            true => Ok(()),
            false => Err(Closed(ManuallyDrop::into_inner(value))),
        }
    }

    /// Pushes values at the back, 32 at a time under the pushers' lock. The iterator runs under no
    /// lock. Other threads' values may come between two groups of 32. The 32 values of a group lie
    /// on the thread's stack: box large values.
    ///
    /// # Errors
    /// If the queue is closed before or during the call, hands back the values that are not queued,
    /// in order. A closed queue also refuses an empty iterator.
    ///
    /// # Panics
    /// As for [`push`](Self::push); then up to 32 values are leaked. Also if the iterator panics:
    /// then the full groups of 32 that the iterator has returned are queued, and the values after
    /// them, at most 31, are dropped.
    #[expect(
        clippy::type_complexity,
        reason = "the error is an iterator, like the argument"
    )]
    pub fn push_batch<I: IntoIterator<Item = T>>(
        &self,
        values: I,
    ) -> Result<(), Closed<Chain<Batch<T>, Fuse<I::IntoIter>>>> {
        let mut values = values.into_iter().fuse();
        let mut batch = Batch::of(&mut values);
        if batch.len() == 0 && self.is_closed() {
            return Err(Closed(batch.chain(values)));
        }
        loop {
            let is_last = batch.len() < Batch::<T>::CAPACITY;
            if !self.put_batch(&mut batch, false) {
                return Err(Closed(batch.chain(values)));
            }
            if is_last {
                return Ok(());
            }
            batch = Batch::of(&mut values);
        }
    }

    /// Pushes a value at the back, even if the queue is closed: for a value that was accepted
    /// before the close, such as a task that was spawned in time and is woken later.
    ///
    /// # Panics
    /// As for [`push`](Self::push).
    pub fn requeue(&self, value: T) {
        let value = ManuallyDrop::new(value);
        // SAFETY: one value, which is forgotten.
        let queued = unsafe { self.put(&raw const *value, 1, true) };
        debug_assert!(queued);
    }

    /// Pushes many values as [`requeue`](Self::requeue) does with one, in groups as
    /// [`push_batch`](Self::push_batch) does.
    ///
    /// # Panics
    /// As for [`push_batch`](Self::push_batch).
    pub fn requeue_batch(&self, values: impl IntoIterator<Item = T>) {
        let mut values = values.into_iter();
        loop {
            let mut batch = Batch::of(&mut values);
            let is_last = batch.len() < Batch::<T>::CAPACITY;
            self.put_batch(&mut batch, true);
            if is_last {
                return;
            }
        }
    }

    /// Queues a batch, and returns `true`: the batch is then empty. Returns `false` if the queue
    /// refuses the batch.
    fn put_batch(&self, batch: &mut Batch<T>, even_closed: bool) -> bool {
        if batch.len() == 0 {
            return true;
        }
        batch.give(|values, len| {
            // SAFETY: the batch owns the values, and gets them back only if `put` returns `false`.
            unsafe { self.put(values, len, even_closed) }
        })
    }

    /// Queues `len` values with no other value between them, and returns `true`. A closed queue
    /// refuses them, and returns `false`, unless `even_closed` is set.
    ///
    /// # Safety
    /// The caller owns the values: at least 1, and at most a batch's capacity. If this returns
    /// `true`, the queue owns them.
    #[inline(always)]
    unsafe fn put(&self, values: *const T, len: usize, even_closed: bool) -> bool {
        let pushers = &self.inner.pushers;
        let put = pushers.tail.with(|tail| {
            // SAFETY: this thread holds the lock; the values are the caller's.
            unsafe { self.put_in(tail, &mut None, values, len, even_closed) }
        });
        match put {
            Put::Queued => true,
            Put::Refused => false,
            // SAFETY: the values are the caller's.
            Put::NeedsBlock { queued } => unsafe {
                self.put_with_block(queued, values, len, even_closed)
            },
        }
    }

    /// Allocates a block, and then queues values as [`put`](Self::put) does.
    ///
    /// # Safety
    /// As for `put`.
    #[cold]
    unsafe fn put_with_block(
        &self,
        queued: usize,
        values: *const T,
        len: usize,
        even_closed: bool,
    ) -> bool {
        // `usize::MAX / 4` values are half of what the count can hold. Each push that needs a block
        // checks this limit, unless the push gets the one spare block. So the count does not
        // overflow, however many threads push.
        assert!(queued < usize::MAX / 4, "a queue of too many values");
        let mut new = Some(Block::new());
        let put = self.inner.pushers.tail.with(|tail| {
            // SAFETY: this thread holds the lock; the values are the caller's.
            unsafe { self.put_in(tail, &mut new, values, len, even_closed) }
        });
        if let Some(unused) = new {
            self.keep(unused);
        }
        matches!(put, Put::Queued)
    }

    /// Queues values as [`put`](Self::put) does, unless they need a block and there is none.
    ///
    /// # Safety
    /// As for `put`. `tail` is the queue's, and the caller holds its lock. The caller owns the
    /// block in `new`.
    #[inline(always)]
    unsafe fn put_in(
        &self,
        tail: &mut Tail<T>,
        new: &mut Option<NonNull<Block<T>>>,
        values: *const T,
        len: usize,
        even_closed: bool,
    ) -> Put {
        if tail.pushed & CLOSED != 0 && !even_closed {
            return Put::Refused;
        }
        let slot = slot_of(tail.pushed);
        let is_written = if slot != 0 && len <= SLOTS - slot {
            // SAFETY: these slots follow that of the last push, in the same block (rule 1).
            unsafe { Block::write(tail.block, slot, values, len) };
            true
        } else {
            // SAFETY: the values are the caller's.
            unsafe { self.put_across(&mut tail.block, new, slot, values, len) }
        };
        if !is_written {
            // Ordering: Relaxed. Each pop that this load sees took values that were pushed before.
            // No push comes in between, because this thread holds the pushers' lock. So `popped` is
            // at most `tail.pushed`.
            let popped = self.inner.consumers.popped.load(Relaxed);
            let queued = (tail.pushed & !CLOSED).wrapping_sub(popped) / PER_VALUE;
            return Put::NeedsBlock { queued };
        }
        tail.pushed = tail.pushed.wrapping_add(len * PER_VALUE);
        // Ordering: Release publishes slots and links to `take_in`. It also pairs with `is_closed`,
        // which may read the store of a requeue after the close.
        self.inner.pushers.pushed.store(tail.pushed, Release);
        Put::Queued
    }

    /// Writes values, the last of which go to a new block, and returns `true`. If there is neither
    /// a block in `new` nor a spare one, writes nothing, and returns `false`.
    ///
    /// # Safety
    /// As for [`put_in`](Self::put_in). `tail` is the block of the queue's tail, and `slot` is the
    /// slot of the first value.
    #[inline(never)]
    unsafe fn put_across(
        &self,
        tail: &mut *mut Block<T>,
        new: &mut Option<NonNull<Block<T>>>,
        slot: usize,
        values: *const T,
        len: usize,
    ) -> bool {
        let Some(next) = new.take().or_else(|| self.take_spare()) else {
            return false;
        };
        // The number of values that go into the old block: none if that block is full, or if there
        // is no old block.
        let here = if slot == 0 { 0 } else { SLOTS - slot };
        // SAFETY: these slots follow that of the last push, up to the end of the block (rule 1).
        unsafe { Block::write(*tail, slot, values, here) };
        match NonNull::new(*tail) {
            // SAFETY: the block is the pushers', and no consumer reads the link yet (rule 2).
            Some(tail) => unsafe { Block::link(tail, next) },
            None => (self.inner.pushers.first).with_mut(|first| {
                // SAFETY: this is the first push, so no consumer reads `first` yet.
                unsafe { *first = next.as_ptr() }
            }),
        }
        *tail = next.as_ptr();
        // SAFETY: `here` of the `len` values are written so far.
        let rest = unsafe { values.add(here) };
        // SAFETY: these are the new block's first slots, one for each value left.
        unsafe { Block::write(*tail, 0, rest, len - here) };
        true
    }

    fn take_spare(&self) -> Option<NonNull<Block<T>>> {
        // Ordering: Acquire pairs with `keep`: the reads of the block's last values are over.
        NonNull::new(self.inner.spare.swap(ptr::null_mut(), Acquire))
    }

    /// Makes a block the spare one, or frees the block if the queue has a spare one already.
    fn keep(&self, block: NonNull<Block<T>>) {
        let spare = &self.inner.spare;
        // Ordering: Release pairs with `take_spare`. If there is a spare block, it is not replaced.
        let kept = spare.compare_exchange(ptr::null_mut(), block.as_ptr(), Release, Relaxed);
        if kept.is_err() {
            // SAFETY: the block is the caller's, and not in the queue.
            unsafe { Block::free(block) };
        }
    }

    /// Takes the oldest value, under the consumers' lock. Takes no lock if the queue is empty.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        let mut value = MaybeUninit::uninit();
        // SAFETY: there is room for one value.
        match unsafe { self.take(value.as_mut_ptr(), 1) } {
            0 => None,
            // SAFETY: the value was written.
            _ => Some(unsafe { value.assume_init() }),
        }
    }

    /// Takes up to `n` of the oldest values, and at most 32. It takes the consumers' lock once, and
    /// not at all if the queue is empty or `n` is 0.
    ///
    /// The batch has room for 32 values, on the thread's stack: box large values.
    pub fn pop_n(&self, n: usize) -> Batch<T> {
        let mut batch = Batch::new();
        if n == 0 {
            return batch;
        }
        // SAFETY: the batch has room for that many values.
        let taken = unsafe { self.take(batch.room(), n.min(Batch::<T>::CAPACITY)) };
        // SAFETY: `taken` values are written.
        unsafe { batch.set_len(taken) };
        batch
    }

    /// Moves up to `n` of the oldest values to `to`, and returns their number.
    ///
    /// # Safety
    /// `to` has room for `n` values, at least 1 and at most a batch's capacity.
    #[inline(always)]
    unsafe fn take(&self, to: *mut T, n: usize) -> usize {
        let consumers = &self.inner.consumers;
        // Ordering: Acquire pairs with the store of `popped` in `take_in`, for `len_after`.
        let popped = consumers.popped.load(Acquire);
        // Ordering: Relaxed; a hint. It saves the consumer a load of the word that pushers write.
        if popped == consumers.limit.load(Relaxed) && self.len_after(popped) == 0 {
            return 0;
        }
        let (taken, left_block) = consumers.head.with(|head| {
            // SAFETY: this thread holds the lock; the room is the caller's.
            unsafe { self.take_in(head, to, n) }
        });
        if let Some(block) = left_block {
            self.keep(block);
        }
        taken
    }

    /// Moves values as [`take`](Self::take) does. Returns their number, and the block that the
    /// consumers left, if any.
    ///
    /// # Safety
    /// As for [`take`](Self::take). `head` is the queue's, and the caller holds its lock.
    #[inline(always)]
    unsafe fn take_in(
        &self,
        head: &mut Head<T>,
        to: *mut T,
        n: usize,
    ) -> (usize, Option<NonNull<Block<T>>>) {
        let consumers = &self.inner.consumers;
        // The lock orders this consumer after the one that acquired `limit`.
        if head.limit.wrapping_sub(head.popped) < n * PER_VALUE {
            // Ordering: Acquire pairs with the push of the last value that `pushed` counts (rule
            // 2).
            head.limit = self.inner.pushers.pushed.load(Acquire) & !CLOSED;
            // Ordering: Relaxed; a hint for threads without the lock.
            consumers.limit.store(head.limit, Relaxed);
        }
        let n = n.min(head.limit.wrapping_sub(head.popped) / PER_VALUE);
        if n == 0 {
            return (0, None);
        }
        let slot = slot_of(head.popped);
        let mut left_block = None;
        if slot != 0 && n <= SLOTS - slot {
            // SAFETY: these slots follow that of the last pop, in the same block. Their values are
            // written (rule 2).
            unsafe { Block::read(head.block, slot, to, n) };
        } else {
            // SAFETY: the room is the caller's, and the values are written.
            left_block = unsafe { self.take_across(&mut head.block, slot, to, n) };
        }
        head.popped = head.popped.wrapping_add(n * PER_VALUE);
        // Ordering: Release pairs with the Acquire loads of `popped` in `take` and `len`: a thread
        // that sees this count also sees the pushes of the popped values.
        consumers.popped.store(head.popped, Release);
        (n, left_block)
    }

    /// Moves values to `to`. The last of them are in the next block. Returns the block that the
    /// consumers left.
    ///
    /// # Safety
    /// As for [`take_in`](Self::take_in). `head` is the block of the queue's head, `slot` the slot
    /// of the first value, and the `n` values are written.
    #[inline(never)]
    unsafe fn take_across(
        &self,
        head: &mut *mut Block<T>,
        slot: usize,
        to: *mut T,
        n: usize,
    ) -> Option<NonNull<Block<T>>> {
        let here = if slot == 0 { 0 } else { SLOTS - slot };
        // SAFETY: these slots follow that of the last pop, up to the end of the block (rule 2).
        unsafe { Block::read(*head, slot, to, here) };
        let left_block = NonNull::new(*head);
        *head = match left_block {
            // SAFETY: this block links to the next value's block (rule 2).
            Some(head) => unsafe { Block::next(head) },
            // SAFETY: `first` was written before the first push was published.
            None => (self.inner.pushers.first).with(|first| unsafe { *first }),
        };
        // SAFETY: `here` of the `n` values are written so far.
        let rest = unsafe { to.add(here) };
        // SAFETY: these are the next block's first slots, whose values are written.
        unsafe { Block::read(*head, 0, rest, n - here) };
        left_block
    }

    /// Returns the number of values that the queue had when the caller read `popped`, plus the
    /// values pushed since.
    fn len_after(&self, popped: usize) -> usize {
        // Ordering: Relaxed, because the caller acquired `popped`: the value of `pushed` is no
        // older than the pushes of the popped values, so the difference is not negative.
        let pushed = self.inner.pushers.pushed.load(Relaxed) & !CLOSED;
        pushed.wrapping_sub(popped) / PER_VALUE
    }

    /// Returns the number of values in the queue, without a lock. This is a hint, but it is 0
    /// exactly if the queue is [empty](Self::is_empty). Values that others pop meanwhile may still
    /// count.
    pub fn len(&self) -> usize {
        // Ordering: Acquire pairs with the store of `popped` in `take_in`, for `len_after`.
        self.len_after(self.inner.consumers.popped.load(Acquire))
    }

    /// Returns whether the queue is empty, without a lock. Exact, as is a [`pop`](Self::pop) or a
    /// [`pop_n`](Self::pop_n) that finds nothing.
    ///
    /// The answer accounts for:
    ///
    /// 1. every push and pop that happens before this call;
    /// 2. every push and pop that another thread follows by a `SeqCst` fence, if a later `SeqCst`
    ///    fence precedes this call.
    ///
    /// If it is true, the queue was empty at some moment after all these.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue to pushes; its values stay. Returns `false` if it was closed already.
    pub fn close(&self) -> bool {
        let pushers = &self.inner.pushers;
        pushers.tail.with(|tail| {
            let was_open = tail.pushed & CLOSED == 0;
            tail.pushed |= CLOSED;
            // Ordering: Release pairs with `is_closed`. It also pairs with `take_in`, which may
            // read this store in place of the last push's.
            pushers.pushed.store(tail.pushed, Release);
            was_open
        })
    }

    /// Returns whether the queue is closed. One load. A thread that finds it closed also sees all
    /// writes that happened before [`close`](Self::close).
    pub fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with `close`.
        self.inner.pushers.pushed.load(Acquire) & CLOSED != 0
    }
}

/// The result of an attempt to queue values.
#[must_use]
enum Put {
    Queued,
    /// The queue is closed. The caller still owns the values.
    Refused,
    /// No block is free. The caller still owns the values, allocates a block, and tries again.
    /// Holds the number of values in the queue.
    NeedsBlock {
        queued: usize,
    },
}

impl<T, L: Lock> Drop for ValueInjector<T, L> {
    fn drop(&mut self) {
        /// Drops the other values if the drop of one panics.
        struct Rest<'a, T, L: Lock>(&'a ValueInjector<T, L>);

        impl<T, L: Lock> Drop for Rest<'_, T, L> {
            fn drop(&mut self) {
                while let Some(value) = self.0.pop() {
                    drop(value);
                }
            }
        }

        while let Some(value) = self.pop() {
            let rest = Rest(self);
            drop(value);
            mem::forget(rest);
        }
    }
}

/// Frees the blocks after the values are dropped, even if a value's drop panicked.
impl<T, L: Lock> Drop for Inner<T, L> {
    fn drop(&mut self) {
        let tail = self.pushers.tail.with(|tail| tail.block);
        // Ordering: Relaxed; no other thread is left.
        for block in [tail, self.spare.load(Relaxed)] {
            if let Some(block) = NonNull::new(block) {
                // SAFETY: these are the last block and the spare one. The consumers have left all
                // others.
                unsafe { Block::free(block) };
            }
        }
        self.pushers.pushed.retire();
        self.pushers.first.retire();
        self.consumers.popped.retire();
        self.consumers.limit.retire();
        self.spare.retire();
    }
}

impl<T, L: Lock + Default> Default for ValueInjector<T, L> {
    fn default() -> Self {
        Self::with_locks(L::default(), L::default())
    }
}

impl<T, L: Lock> fmt::Debug for ValueInjector<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ValueInjector")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
