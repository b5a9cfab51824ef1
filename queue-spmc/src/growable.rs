//! What the growable queues share: the [`deque`](crate::deque) and the [`fifo`](crate::fifo).
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `bottom` | the owner: one past the newest item |
//! | `head`: two positions in one word, `steal` and `top` | owner and thieves, by read-modify-write |
//! | `buffer` | the owner |
//! | the buffer's slots | the owner, for positions in `bottom..steal + capacity` |
//! | `replaced`: buffers that wait to be freed | the owner, then the last handle |
//!
//! Positions count up and wrap at 2³²; the slot is the position modulo the buffer's capacity.
//! So only 2³² items taken between a thief's load of `head` and its exchange could deceive it.
//!
//! # Rules
//!
//! 1. `top..bottom` are the items. Each flavour's own rules say how one is taken.
//! 2. A thief claims items by raising `top` alone, copies them, and then raises `steal` to where
//!    `top` is by then. So `steal..top` are slots that a thief is still copying, and the owner does
//!    not write to them. `steal == top` when no thief copies; only then may a thief begin. Until it
//!    releases its claim, the owner raises `top` alone, too.
//! 3. A thief loads `buffer` after its claim, and uses it until its release and no longer.
//! 4. An item is published by a store of `bottom`, a buffer by the store of `buffer`. The owner
//!    copies `steal..bottom` to a new buffer, not `top..bottom`. So whichever buffer a thief loads
//!    holds the items that it claimed: if the claim came first, their slots were in `steal..` and
//!    were copied; if the new buffer came first, they were copied as any other; and it can't load a
//!    buffer from before an item's push, since its claim saw the push.
//! 5. The owner replaces the buffer and then does a read-modify-write on `head`, which leaves the
//!    value. A claim after it, in the order of `head`'s changes, loads the new buffer or a newer
//!    one. A claim before it that is not released shows in what it reads. So if no thief copies by
//!    then, or at any later look of the owner's, no thief uses a replaced buffer, nor will: the
//!    owner frees it.
//! 6. While a thief copies, replaced buffers are kept, and the buffer doesn't shrink. So those that
//!    are kept grew too small meanwhile, each at most half of the next, but for one that may have
//!    been replaced just as the thief began.
//!
//! A thief that is descheduled in mid-copy makes other thieves retry, and the owner's buffer grow
//! instead of wrapping; no thread waits.
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

/// The capacity of a new queue.
pub(crate) const LEAST: usize = 32;
/// Half of what positions tell apart in both directions.
const MOST: u32 = 1 << 30;

/// What owner and thieves share.
pub(crate) struct Queue<T> {
    head: CachePadded<AtomicU64>,
    pub(crate) bottom: CachePadded<AtomicU32>,
    buffer: AtomicPtr<Buffer<T>>,
    replaced: UnsafeCell<Vec<*mut Buffer<T>>>,
}

// SAFETY: an item is reached by the one thread that took it (rules 1 and 2), so it only moves
// between threads. `replaced` is the owner's until the last handle drops the queue.
unsafe impl<T: Send> Sync for Queue<T> {}

// SAFETY: as above; the buffers are the queue's own.
unsafe impl<T: Send> Send for Queue<T> {}

// A panic, which only an item's drop, a push of too many or an allocation makes, leaves the queue
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

    /// Items below `bottom`; less than none while a deque's owner looks for one that is gone.
    pub(crate) const fn len(self, bottom: u32) -> i32 {
        bottom.wrapping_sub(self.top) as i32
    }

    /// With `n` items claimed by the thief that copies, or begins to.
    pub(crate) const fn claimed(self, n: u32) -> Self {
        Self {
            top: self.top.wrapping_add(n),
            ..self
        }
    }

    /// With one item taken by the owner.
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
        // Ordering: Acquire pairs with a thief's release of its slots, which the owner writes
        // again, and of its buffer, which the owner frees.
        Head::unpack(self.head.load(Acquire))
    }

    pub(crate) fn exchange_head(&self, from: Head, to: Head) -> Result<(), Head> {
        // Ordering: Release ends this thread's copies before the owner's next look. Acquire pairs
        // with `Owner::replace`: a claim after it loads the new buffer. What a failed exchange
        // reads is only expected by the next one.
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
        // Ordering: Relaxed, only counted.
        usize::try_from(head.len(self.bottom.load(Relaxed))).unwrap_or(0)
    }

    /// The slots that hold what the caller has claimed.
    ///
    /// # Safety
    /// The caller has a claim, and uses the slots no longer than it has.
    pub(crate) unsafe fn claimed_slots(&self) -> Slots<T> {
        // Ordering: Acquire pairs with the store in `Owner::replace`: the copies are there.
        let buffer = self.buffer.load(Acquire);
        // SAFETY: the claim keeps it (rule 5).
        unsafe { &*buffer }.slots()
    }

    /// # Safety
    /// The caller is the owner or the last handle. No thief copies, and the next one that does
    /// loads a newer buffer (rule 5).
    unsafe fn free_replaced(&self) {
        self.replaced.with_mut(|replaced| {
            // SAFETY: the caller's.
            let replaced = unsafe { &mut *replaced };
            for buffer in replaced.drain(..) {
                // SAFETY: the caller's; it is in the list once.
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
        // SAFETY: the last handle.
        unsafe { self.free_replaced() };
        self.replaced.retire();
        // Ordering: Relaxed three times, the last handle is alone.
        let head = Head::unpack(self.head.load(Relaxed));
        // Ordering: as above.
        let bottom = self.bottom.load(Relaxed);
        // Ordering: as above.
        let buffer = self.buffer.load(Relaxed);
        if buffer.is_null() {
            // The owner has freed it, and left no items.
            return;
        }
        Rest(buffer, head.top, bottom).run();

        /// Goes on with the others when an item's drop panics.
        struct Rest<T>(*mut Buffer<T>, u32, u32);
        impl<T> Rest<T> {
            fn run(&mut self) {
                // SAFETY: it is freed after this.
                let slots = unsafe { &*self.0 }.slots();
                while self.1 != self.2 {
                    let at = self.1;
                    self.1 = at.wrapping_add(1);
                    // SAFETY: the items that are left are the last handle's, and each is read once.
                    drop(unsafe { slots.read(at) });
                }
            }
        }
        impl<T> Drop for Rest<T> {
            fn drop(&mut self) {
                self.run();
                // SAFETY: it came from a box, and there is no other pointer to it.
                unsafe { Buffer::free(self.0) };
            }
        }
    }
}

/// The owner's half: what it keeps for itself.
pub(crate) struct Owner<T> {
    pub(crate) queue: Arc<Queue<T>>,
    pub(crate) bottom: u32,
    /// A copy of the queue's, which only the owner changes: with a load before its store a model would
    /// miss a thief's load between the two.
    buffer: *mut Buffer<T>,
    /// Those of the buffer in use, which only the owner replaces.
    pub(crate) slots: Slots<T>,
    /// The `bottom` at which the buffer is full, by a `steal` that the owner has seen: never beyond
    /// the real one, so that room is only ever underestimated.
    limit: u32,
    /// A pop that leaves fewer items looks whether there is memory to free.
    low: u32,
    least: u32,
}

// SAFETY: the slots are the queue's, which is `Send`.
unsafe impl<T: Send> Send for Owner<T> {}

// SAFETY: what takes `&self` reads the fields, which only `&mut self` writes, and the queue's
// atomics. It reaches no slot, and hands out no reference to an item, only the queue, which is
// `Sync` if the items are `Send`.
unsafe impl<T: Send> Sync for Owner<T> {}

impl<T> UnwindSafe for Owner<T> {}
impl<T> RefUnwindSafe for Owner<T> {}

impl<T> Owner<T> {
    /// # Panics
    /// When `capacity` is above 2³⁰.
    #[track_caller]
    pub(crate) fn starting_at(capacity: usize, at: u32) -> Self {
        assert!(
            capacity <= MOST as usize,
            "a queue holds up to 2^30 items, not {capacity}"
        );
        let least = (capacity as u32).next_power_of_two().max(2);
        let buffer = Box::new(Buffer::new(least));
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
            limit: at.wrapping_add(least),
            low: 0,
            least,
        }
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.slots.capacity()
    }

    /// # Panics
    /// When there are 2³⁰ items. The item is dropped then.
    #[inline]
    #[track_caller]
    pub(crate) fn push(&mut self, item: T) {
        if self.bottom == self.limit {
            self.grow(1);
        }
        // SAFETY: the owner's buffer, and there is room.
        unsafe { self.slots.write(self.bottom, item) };
        self.publish(self.bottom.wrapping_add(1));
    }

    #[inline]
    pub(crate) fn publish(&mut self, bottom: u32) {
        self.bottom = bottom;
        // Ordering: Release publishes the slots to a thief's look at `bottom`.
        self.queue.bottom.store(bottom, Release);
    }

    /// What fits before the owner has to look again.
    pub(crate) fn room(&self) -> u32 {
        self.limit.wrapping_sub(self.bottom)
    }

    /// Makes room for `n` items.
    ///
    /// # Panics
    /// When there would be more than 2³⁰.
    #[cold]
    #[track_caller]
    pub(crate) fn grow(&mut self, n: u32) {
        let head = self.queue.load_head();
        let needed = self.used(head).saturating_add(n);
        if needed <= self.capacity() {
            return self.settle(head);
        }
        assert!(needed <= MOST, "a queue holds up to 2^30 items");
        self.replace(needed.next_power_of_two(), head);
    }

    /// After a pop that left so many items.
    #[inline]
    pub(crate) fn shrink(&mut self, len: u32) {
        if len < self.low {
            self.free();
        }
    }

    /// Frees what rules 5 and 6 allow: a buffer of which less than a quarter is in use gives way to
    /// one of which at least a quarter is, but for the capacity at birth.
    #[cold]
    fn free(&mut self) {
        let head = self.queue.load_head();
        let used = self.used(head);
        let capacity = self.capacity();
        if capacity > self.least && used < capacity / 4 && !head.is_copying() {
            self.replace((2 * used).next_power_of_two().max(self.least), head);
        } else {
            self.settle(head);
        }
    }

    /// Slots that are not the owner's to write.
    fn used(&self, head: Head) -> u32 {
        self.bottom.wrapping_sub(head.steal)
    }

    /// Rules 4 and 5, by a `head` just loaded: what is in use then fits.
    fn replace(&mut self, capacity: u32, head: Head) {
        let new = Box::new(Buffer::new(capacity));
        let slots = new.slots();
        let mut at = head.steal;
        while at != self.bottom {
            // SAFETY: the slots from `steal` on are not written by others; the copy of an item that
            // a thief has claimed is never read as an item by the owner, and by the thief from one
            // of both buffers.
            unsafe { slots.copy(self.slots, at) };
            at = at.wrapping_add(1);
        }
        let old = mem::replace(&mut self.buffer, Box::into_raw(new));
        self.queue.replaced.with_mut(|replaced| {
            // SAFETY: only the owner uses the list.
            unsafe { &mut *replaced }.push(old);
        });
        // Ordering: Release publishes the copies to `claimed_slots`.
        self.queue.buffer.store(self.buffer, Release);
        self.slots = slots;
        // Ordering: AcqRel, rule 5: Release shows the new buffer to later claims, Acquire pairs
        // with the release of earlier ones, whose thieves have read the old buffer. It changes
        // nothing.
        let head = self.queue.head.fetch_or(0, AcqRel);
        self.settle(Head::unpack(head));
    }

    /// What is to be freed and when to look again, by a `head` that was read after the buffer was
    /// replaced, if it was.
    fn settle(&mut self, head: Head) {
        let capacity = self.capacity();
        self.limit = head.steal.wrapping_add(capacity);
        self.low = if head.is_copying() {
            // There may be a replaced buffer: look again at the next pop.
            u32::MAX
        } else {
            // SAFETY: the owner, by rule 5.
            unsafe { self.queue.free_replaced() };
            if capacity > self.least {
                capacity / 4
            } else {
                0
            }
        };
    }
}

impl<T> Drop for Owner<T> {
    fn drop(&mut self) {
        // As a thief would, one by one, so that nothing rests on the owner's copies. An item whose
        // drop panics leaves the others to the last handle.
        loop {
            let head = self.queue.load_head();
            // Ordering: Relaxed, the owner's own.
            if head.len(self.queue.bottom.load(Relaxed)) <= 0 {
                break;
            }
            if self.queue.exchange_head(head, head.taken()).is_ok() {
                // SAFETY: the exchange took it, and no thread writes slots any more.
                drop(unsafe { self.slots.read(head.top) });
            }
        }
        if self.queue.load_head().is_copying() {
            return;
        }
        // Nothing is left to claim, so no thief loads a buffer any more.
        // SAFETY: the owner, and as said.
        unsafe { self.queue.free_replaced() };
        // Ordering: Relaxed, for the last handle, which the count orders after this.
        self.queue.buffer.store(ptr::null_mut(), Relaxed);
        // SAFETY: it came from a box, and no thief uses it, nor will.
        unsafe { Buffer::free(self.buffer) };
    }
}

/// Slots that a thief holds (rule 2).
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
