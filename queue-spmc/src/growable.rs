//! The parts that the two growable queues share, the [`deque`](crate::deque) and the
//! [`fifo`](crate::fifo).
//!
//! # Actors
//!
//! | actor | handle | does |
//! |---|---|---|
//! | *owner* | the one `Worker`, by `&mut self` | pushes, pops, replaces the buffer |
//! | *thief* | a `Stealer`; any number of threads | takes the oldest items |
//! | *last handle* | the worker or the stealer that is dropped last | frees the queue |
//!
//! # Fields
//!
//! | field | meaning | written by |
//! |---|---|---|
//! | `bottom` | one past the newest item | the owner |
//! | `head` | two positions in one word, `steal` and `top` | all, by read-modify-write |
//! | `buffer` | the buffer in use | the owner |
//! | the buffer's slots | items | the owner, for positions in `bottom..steal + capacity` |
//! | `replaced` | buffers that wait to be freed | the owner, then the last handle |
//!
//! Positions count up and wrap at 2³²; an item's slot is its position modulo the capacity of the
//! buffer. So a thief could mistake an item for another only if 2³² items were taken between its
//! load of `head` and its exchange.
//!
//! # States
//!
//! | an item is | when its position is |
//! |---|---|
//! | *available* | in `top..bottom` |
//! | *being copied* | in `steal..top`, up to where `top` was after the thief's claim |
//!
//! | a buffer is | when |
//! |---|---|
//! | *in use* | `buffer` points to it |
//! | *replaced* | it is in `replaced`: a thief may still read it |
//! | *freed* | no thief reads it now or later (claim 2 below) |
//!
//! # Rules
//!
//! 1. `top..bottom` are the available items. The rules of the deque and of the FIFO say how an item
//!    is taken.
//! 2. A thief claims items by raising `top` alone, copies them, and then raises `steal` to the
//!    `top` of that moment. Until that release the owner raises `top` alone, too. So `steal..top`
//!    are the slots that the thief has claimed, and those of items that the owner took since. The
//!    owner does not write to them. While no thief copies, `steal` equals `top`; only then may a
//!    thief begin.
//! 3. A thief loads `buffer` after its claim. It uses that buffer until its release and no longer.
//! 4. A store of `bottom` publishes an item, and a store of `buffer` publishes a buffer. The owner
//!    copies `steal..bottom` to a new buffer, not only `top..bottom`.
//! 5. The owner replaces the buffer and then does a read-modify-write on `head` that leaves the
//!    value unchanged. If the value shows that no thief copies, the owner frees the replaced
//!    buffers. Otherwise the owner frees them when a later load of `head` shows that no thief
//!    copies.
//! 6. While a thief copies, the owner keeps replaced buffers and does not shrink the buffer.
//!
//! # Why it is correct
//!
//! 1. *Whichever buffer a thief loads holds the items that it claimed.* If the claim came before
//!    the replacement, the items' slots were at `steal` or later, and the owner copied them (rule
//!    4). If the replacement came first, the owner copied them like all other items. The thief
//!    cannot load a buffer from before an item's push, since its claim saw the push.
//! 2. *No thief uses a freed buffer.* Consider the order of the changes of `head`. A thief that
//!    claims after the owner's read-modify-write (rule 5) loads the new buffer or a newer one. An
//!    earlier claim that is not released shows in the value that the owner reads. So if the owner
//!    sees, at that moment or later, that no thief copies, then no thief uses a replaced buffer
//!    from that time on.
//! 3. *Replaced buffers are few.* Each buffer that is kept (rule 6) had become too small, so it has
//!    at most half of the capacity of the next one. One more buffer may have been replaced just
//!    before the thief began.
//! 4. *No thread waits.* A thief that is descheduled while it copies makes other thieves retry, and
//!    makes the owner's buffer grow instead of wrap around.
use alloc::{boxed::Box, vec::Vec};
use core::{
    mem::{self, MaybeUninit},
    panic::{RefUnwindSafe, UnwindSafe},
    ptr,
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicPtr, AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};

#[cfg(not(feature = "std"))]
pub(crate) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(crate) use sync_shim::sync::Arc;

mod buffer;

use buffer::Buffer;
pub(crate) use buffer::Slots;

/// The capacity of a new queue unless the user gives one.
pub(crate) const MIN_CAPACITY: usize = 32;
/// Half of 2³¹, the distance up to which an `i32` tells which of two positions is older.
const MAX_ITEMS: u32 = 1 << 30;

/// The fields that the owner and the thieves share.
pub(crate) struct Queue<T> {
    head: CachePadded<AtomicU64>,
    pub(crate) bottom: CachePadded<AtomicU32>,
    buffer: AtomicPtr<Buffer<T>>,
    replaced: UnsafeCell<Vec<*mut Buffer<T>>>,
}

// SAFETY: only the one thread that took an item reaches it (rules 1 and 2), so items only move
// between threads. `replaced` belongs to the owner until the last handle drops the queue.
unsafe impl<T: Send> Sync for Queue<T> {}

// SAFETY: as above; the buffers belong to the queue.
unsafe impl<T: Send> Send for Queue<T> {}

// Only an item's drop, a push of too many items or an allocation can panic. Each leaves the queue
// whole.
impl<T> UnwindSafe for Queue<T> {}
impl<T> RefUnwindSafe for Queue<T> {}

/// Both positions of `head`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    steal: u32,
    pub(crate) top: u32,
}

impl Head {
    pub(crate) const fn both(at: u32) -> Self {
        Self { steal: at, top: at }
    }

    const fn pack(self) -> u64 {
        (self.steal as u64) << 32 | self.top as u64
    }

    const fn unpack(word: u64) -> Self {
        Self {
            steal: (word >> 32) as u32,
            top: word as u32,
        }
    }

    pub(crate) const fn is_copying(self) -> bool {
        self.steal != self.top
    }

    /// Returns the number of available items below `bottom`. The number is −1 while a deque's owner
    /// looks for a last item that is gone.
    pub(crate) const fn len(self, bottom: u32) -> i32 {
        bottom.wrapping_sub(self.top) as i32
    }

    /// Returns the value of `head` after a thief claims `n` items, whether or not it has claimed
    /// others before.
    pub(crate) const fn claimed(self, n: u32) -> Self {
        Self {
            top: self.top.wrapping_add(n),
            ..self
        }
    }

    /// Returns the value of `head` after the owner takes one item.
    pub(crate) const fn taken(self) -> Self {
        if self.is_copying() {
            self.claimed(1)
        } else {
            Self::both(self.top.wrapping_add(1))
        }
    }
}

impl<T> Queue<T> {
    pub(crate) fn load_head(&self) -> Head {
        // Ordering: Acquire pairs with the Release exchange by which a thief releases its claim:
        // the thief's reads end before the owner writes the slots again or frees the buffer.
        Head::unpack(self.head.load(Acquire))
    }

    pub(crate) fn exchange_head(&self, from: Head, to: Head) -> Result<(), Head> {
        // Ordering: Release pairs with `load_head`: this thread's copies end before the owner next
        // loads `head`. Acquire pairs with `Owner::replace`: a thief that claims after the
        // replacement loads the new buffer.
        // A failed exchange is Relaxed: the value that it reads is only what the next exchange
        // expects.
        match self
            .head
            .compare_exchange(from.pack(), to.pack(), AcqRel, Relaxed)
        {
            Ok(_) => Ok(()),
            Err(now) => Err(Head::unpack(now)),
        }
    }

    pub(crate) fn len(&self) -> usize {
        let head = self.load_head();
        // Ordering: Relaxed, the value is only used for a count.
        usize::try_from(head.len(self.bottom.load(Relaxed))).unwrap_or(0)
    }

    /// Returns the slots that hold the items that the caller has claimed.
    ///
    /// # Safety
    /// The caller has a claim, and uses the slots only until it releases the claim.
    pub(crate) unsafe fn claimed_slots(&self) -> Slots<T> {
        // Ordering: Acquire pairs with the store in `Owner::replace`: the new buffer holds the
        // copies.
        let buffer = self.buffer.load(Acquire);
        // SAFETY: the owner does not free the buffer while the claim lasts (rule 5).
        unsafe { &*buffer }.slots()
    }

    /// # Safety
    /// The caller is the owner or the last handle. No thief copies, and the next thief that copies
    /// loads a newer buffer (rule 5).
    unsafe fn free_replaced(&self) {
        self.replaced.with_mut(|replaced| {
            // SAFETY: by the caller's contract.
            let replaced = unsafe { &mut *replaced };
            for buffer in replaced.drain(..) {
                // SAFETY: by the caller's contract; each buffer is in the list once.
                unsafe { Buffer::free(buffer) };
            }
        });
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        self.head.retire();
        self.bottom.retire();
        self.buffer.retire();
        // SAFETY: this is the last handle.
        unsafe { self.free_replaced() };
        self.replaced.retire();
        // Ordering: Relaxed here and twice below, since the last handle is alone.
        let head = Head::unpack(self.head.load(Relaxed));
        // Ordering: as above.
        let bottom = self.bottom.load(Relaxed);
        // Ordering: as above.
        let buffer = self.buffer.load(Relaxed);
        if buffer.is_null() {
            // The owner has freed the buffer, and left no items.
            return;
        }
        Rest(buffer, head.top, bottom).run();

        /// The buffer, `top` and `bottom`. If an item's drop panics, the drop of this value drops
        /// the other items. It frees the buffer in any case.
        struct Rest<T>(*mut Buffer<T>, u32, u32);
        impl<T> Rest<T> {
            fn run(&mut self) {
                // SAFETY: the buffer is freed only after this call.
                let slots = unsafe { &*self.0 }.slots();
                while self.1 != self.2 {
                    let at = self.1;
                    self.1 = at.wrapping_add(1);
                    // SAFETY: the remaining items belong to the last handle, and each is read once.
                    drop(unsafe { slots.read(at) });
                }
            }
        }
        impl<T> Drop for Rest<T> {
            fn drop(&mut self) {
                self.run();
                // SAFETY: the pointer came from a box, and there is no other pointer to it.
                unsafe { Buffer::free(self.0) };
            }
        }
    }
}

/// The owner's end, with the owner's own copies of some of the queue's fields.
pub(crate) struct Owner<T> {
    pub(crate) queue: Arc<Queue<T>>,
    pub(crate) bottom: u32,
    /// A copy of the queue's `buffer`, which only the owner changes. If the owner itself loaded
    /// `buffer`, the model checker would miss a thief's load between the owner's load and its next
    /// store.
    buffer: *mut Buffer<T>,
    /// The slots of the buffer in use, which only the owner replaces.
    pub(crate) slots: Slots<T>,
    /// The `bottom` at which the buffer is full, computed from a `steal` that the owner has seen.
    /// The true `steal` may be larger, so the owner never overestimates the room.
    limit: u32,
    /// A pop that leaves fewer items than this checks whether there is memory to free.
    shrink_below: u32,
    min_capacity: u32,
}

// SAFETY: the slots belong to the queue, which is `Send`.
unsafe impl<T: Send> Send for Owner<T> {}

// SAFETY: operations that take `&self` only read: the queue's atomics, and fields that are written
// only through `&mut self`. They reach no slot and hand out no reference to an item. They hand out
// only the queue, which is `Sync` if the items are `Send`.
unsafe impl<T: Send> Sync for Owner<T> {}

impl<T> UnwindSafe for Owner<T> {}
impl<T> RefUnwindSafe for Owner<T> {}

impl<T> Owner<T> {
    /// # Panics
    /// If `capacity` is above 2³⁰.
    #[track_caller]
    pub(crate) fn starting_at(capacity: usize, at: u32) -> Self {
        assert!(
            capacity <= MAX_ITEMS as usize,
            "a queue holds up to 2^30 items, not {capacity}"
        );
        let min_capacity = (capacity as u32).next_power_of_two().max(2);
        let buffer = Box::new(Buffer::new(min_capacity));
        let slots = buffer.slots();
        let buffer = Box::into_raw(buffer);
        let queue = Queue {
            head: CachePadded::new(AtomicU64::new(Head::both(at).pack())),
            bottom: CachePadded::new(AtomicU32::new(at)),
            buffer: AtomicPtr::new(buffer),
            replaced: UnsafeCell::new(Vec::new()),
        };
        Self {
            queue: Arc::new(queue),
            bottom: at,
            buffer,
            slots,
            limit: at.wrapping_add(min_capacity),
            shrink_below: 0,
            min_capacity,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.slots.capacity()
    }

    /// # Panics
    /// If there are 2³⁰ items. The item is then dropped.
    #[inline]
    #[track_caller]
    pub(crate) fn push(&mut self, item: T) {
        if self.bottom == self.limit {
            self.grow(1);
        }
        // SAFETY: this is the owner and its buffer, and there is room.
        unsafe { self.slots.write(self.bottom, item) };
        self.publish(self.bottom.wrapping_add(1));
    }

    #[inline]
    pub(crate) fn publish(&mut self, bottom: u32) {
        self.bottom = bottom;
        // Ordering: Release pairs with a thief's Acquire load of `bottom`: the slots before
        // `bottom` are written.
        self.queue.bottom.store(bottom, Release);
    }

    /// Returns the number of items that fit before the owner must load `head` again.
    pub(crate) fn room(&self) -> u32 {
        self.limit.wrapping_sub(self.bottom)
    }

    /// Makes room for `n` items.
    ///
    /// # Panics
    /// If there would be more than 2³⁰ items.
    #[cold]
    #[track_caller]
    pub(crate) fn grow(&mut self, n: u32) {
        let head = self.queue.load_head();
        let needed = self.used(head).saturating_add(n);
        if needed <= self.capacity() {
            return self.settle(head);
        }
        assert!(needed <= MAX_ITEMS, "a queue holds up to 2^30 items");
        self.replace(needed.next_power_of_two(), head);
    }

    /// Frees memory if possible, after a pop that left `len` items.
    #[inline]
    pub(crate) fn shrink(&mut self, len: u32) {
        if len < self.shrink_below {
            self.shrink_or_free();
        }
    }

    /// Frees what rules 5 and 6 allow. If less than a quarter of the buffer is in use, a smaller
    /// one replaces it. At least a quarter of the smaller one is in use, unless it has the initial
    /// capacity: the capacity never goes below that.
    #[cold]
    fn shrink_or_free(&mut self) {
        let head = self.queue.load_head();
        let used = self.used(head);
        let capacity = self.capacity();
        if capacity > self.min_capacity && used < capacity / 4 && !head.is_copying() {
            self.replace((2 * used).next_power_of_two().max(self.min_capacity), head);
        } else {
            self.settle(head);
        }
    }

    /// Returns the number of slots that the owner may not write.
    fn used(&self, head: Head) -> u32 {
        self.bottom.wrapping_sub(head.steal)
    }

    /// Replaces the buffer (rules 4 and 5). The caller has just loaded `head`. The new buffer then
    /// holds copies of all slots in use.
    fn replace(&mut self, capacity: u32, head: Head) {
        let new = Box::new(Buffer::new(capacity));
        let slots = new.slots();
        let mut at = head.steal;
        while at != self.bottom {
            // SAFETY: no other thread writes the slots from `steal` on. No item is read from both
            // buffers: an item that a thief has claimed is read by that thief alone, from one of
            // the two.
            unsafe { slots.copy(self.slots, at) };
            at = at.wrapping_add(1);
        }
        let old = mem::replace(&mut self.buffer, Box::into_raw(new));
        self.queue.replaced.with_mut(|replaced| {
            // SAFETY: only the owner uses the list.
            unsafe { &mut *replaced }.push(old);
        });
        // Ordering: Release pairs with the Acquire of `claimed_slots`: the copies are written.
        self.queue.buffer.store(self.buffer, Release);
        self.slots = slots;
        // Ordering: AcqRel, rule 5. Release pairs with later claims, which then load the new
        // buffer. Acquire pairs with earlier releases, whose thieves have read the old buffer. The
        // value stays unchanged.
        let head = self.queue.head.fetch_or(0, AcqRel);
        self.settle(Head::unpack(head));
    }

    /// Frees replaced buffers if rule 5 allows it, and sets when the owner looks at `head` again.
    ///
    /// `head` was loaded after the last replacement of the buffer.
    fn settle(&mut self, head: Head) {
        let capacity = self.capacity();
        self.limit = head.steal.wrapping_add(capacity);
        self.shrink_below = if head.is_copying() {
            // There may be a replaced buffer: check again at the next pop.
            u32::MAX
        } else {
            // SAFETY: this is the owner, and rule 5 allows it.
            unsafe { self.queue.free_replaced() };
            if capacity > self.min_capacity {
                capacity / 4
            } else {
                0
            }
        };
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        // Takes the items one by one, each by an exchange on `head`. So the owner's copy of
        // `bottom` does not matter. If an item's drop panics, the last handle drops the other
        // items.
        loop {
            let head = self.queue.load_head();
            // Ordering: Relaxed, only the owner writes `bottom`.
            if head.len(self.queue.bottom.load(Relaxed)) <= 0 {
                break;
            }
            if self.queue.exchange_head(head, head.taken()).is_ok() {
                // SAFETY: the exchange took the item, and no thread writes slots any more.
                drop(unsafe { self.slots.read(head.top) });
            }
        }
        if self.queue.load_head().is_copying() {
            return;
        }
        // Nothing is left to claim, so no thief will load a buffer.
        // SAFETY: this is the owner, no thief copies, and none will.
        unsafe { self.queue.free_replaced() };
        // Ordering: Relaxed, only the last handle will read `buffer`, and the `Arc`'s count orders
        // this store before that load.
        self.queue.buffer.store(ptr::null_mut(), Relaxed);
        // SAFETY: the pointer came from a box, and no thief uses it now or later.
        unsafe { Buffer::free(self.buffer) };
    }
}

/// A thief's claim (rule 2). Its drop releases the claim.
pub(crate) struct Claim<'a, T>(pub(crate) &'a Queue<T>);

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let mut head = self.0.load_head();
        while let Err(now) = self.0.exchange_head(head, Head::both(head.top)) {
            head = now;
        }
    }
}

#[cfg(test)]
mod models;
