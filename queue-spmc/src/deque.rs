//! A growable LIFO deque with one owner and many thieves, after Chase and Lev.
//!
//! The owner's side is the published algorithm with the fences of Lê, Pop, Cohen and Zappa Nardelli ("Correct and efficient
//! work-stealing for weak memory models", PPoPP 2013). The thief's differs: there a thief copies the item first and then claims it, so that it may read a
//! slot while the owner overwrites it, a data race on a plain slot. Here it claims first, copies, and then releases the slot, as in
//! [`ring`](crate::ring).
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `bottom` | the owner: one past the newest item, or that while it tries to pop it |
//! | `head`: two positions in one word, `steal` and `top` | thieves, and the owner for the last item, by compare-exchange |
//! | `buffer` | the owner |
//! | the buffer's slots | the owner, for positions in `bottom..steal + capacity` |
//!
//! Positions count up and wrap at 2³²; the slot is the position modulo the buffer's capacity. `steal ≤ top`, and `top ≤ bottom` but while the owner
//! looks for a last item that is gone: then `bottom` is `top − 1`.
//!
//! # Rules
//!
//! 1. `top..bottom` are the items. The owner takes the newest by lowering `bottom`, a thief the oldest by raising `top`.
//! 2. Both may want the last one. The owner lowers `bottom` and then reads `head`, a thief reads `head` and then `bottom`, each with a
//!    `SeqCst` fence in between. So either the owner sees that the thief has claimed, or the thief sees that the owner took the item; and if the owner
//!    sees that there is but one left, it claims by the exchange on `head`, like a thief.
//! 3. `steal..top` are slots that a thief has taken and is still copying. The owner does not write to them. `steal == top` when no thief copies; only
//!    then may a thief begin.
//! 4. A thief claims items one by one, each with an exchange after a look at `bottom`, and releases all of them with one more. Several with one exchange
//!    is unsound: the owner takes items without an exchange as long as it sees two or more, so it may have taken what the thief counted.
//! 5. An item is published by a store of `bottom`, a buffer by the store of `buffer`. The owner copies `steal..bottom` to a new buffer, not `top..bottom`. A
//!    thief loads `buffer` after its claim: so whichever it finds holds the item. If the claim came first, its slot was in `steal..` and so was copied; if the new buffer
//!    came first, the item was copied as any other; and a buffer from before the item's push can't be loaded, since the claim saw the push.
//! 6. A buffer that is replaced is freed when no thief can still be reading it: crossbeam's epochs. A thief is pinned from before its look at
//!    `buffer` until its last copy.
//!
//! A thief that is descheduled in mid-copy makes other thieves retry, and the owner's buffer grow instead of wrapping; nobody waits.
use crate::{Steal, StealLimit};
use alloc::boxed::Box;
use core::{fmt, marker::PhantomData, mem::MaybeUninit};
use reclaim::{Default as Reclaimer, Reclaim};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicPtr, AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        Retire, fence,
    },
    cell::UnsafeCell,
    sync::Arc,
};

mod buffer;
mod reclaim;

use buffer::Buffer;

const LEAST: usize = 32;
/// Half of what positions tell apart in both directions.
const MOST: u32 = 1 << 30;

struct Deque<T> {
    head: CachePadded<AtomicU64>,
    bottom: CachePadded<AtomicU32>,
    buffer: AtomicPtr<Buffer<T>>,
    reclaimer: Reclaimer<T>,
}

// SAFETY: an item is reached by the one thread that took it (rules 1 to 3), so it only moves between threads.
unsafe impl<T: Send> Sync for Deque<T> {}

// SAFETY: as above; the buffers are the deque's own.
unsafe impl<T: Send> Send for Deque<T> {}

/// Both positions of `head`.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Head {
    steal: u32,
    top: u32,
}

impl Head {
    const fn both(at: u32) -> Self {
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

    const fn is_copying(self) -> bool {
        self.steal != self.top
    }

    /// Items below `bottom`; less than nothing while the owner looks for one that is gone.
    const fn len(self, bottom: u32) -> i32 {
        bottom.wrapping_sub(self.top) as i32
    }
}

impl<T> Deque<T> {
    fn load_head(&self) -> Head {
        // Ordering: Acquire pairs with a thief's release of its slots, which the owner writes again.
        Head::unpack(self.head.load(Acquire))
    }

    fn exchange_head(&self, from: Head, to: Head) -> Result<(), Head> {
        // Ordering: Release ends this thread's copies before the owner's next look, by `load_head`. What an exchange reads is only expected by the
        // next one.
        match self
            .head
            .compare_exchange(from.pack(), to.pack(), Release, Relaxed)
        {
            Ok(_) => Ok(()),
            Err(now) => Err(Head::unpack(now)),
        }
    }

    fn len(&self) -> usize {
        let head = self.load_head();
        // Ordering: Relaxed, only counted.
        usize::try_from(head.len(self.bottom.load(Relaxed))).unwrap_or(0)
    }

    /// Rule 2: how many items a thief that has just read `head` sees.
    fn open(&self, head: Head) -> u32 {
        // Ordering: SeqCst, between the load of `head` and that of `bottom`. Pairs with the fence in `pop`.
        fence(SeqCst);
        // Ordering: Acquire pairs with the owner's stores: the slots below are written, in a buffer that the load after the claim finds.
        let bottom = self.bottom.load(Acquire);
        u32::try_from(head.len(bottom)).unwrap_or(0)
    }

    /// # Safety
    /// The caller has claimed `position`, hasn't released it, reads it once, and is pinned.
    unsafe fn read_claimed(&self, position: u32) -> T {
        // Ordering: Acquire pairs with the store in `resize`: the copies are there.
        let buffer = self.buffer.load(Acquire);
        // SAFETY: the pin keeps it (rule 6).
        let buffer = unsafe { &*buffer };
        // SAFETY: the caller's; it holds the item (rule 5).
        unsafe { buffer.read(position) }
    }
}

impl<T> Drop for Deque<T> {
    fn drop(&mut self) {
        self.head.retire();
        self.bottom.retire();
        self.buffer.retire();
        // Ordering: Relaxed three times, the last handle is alone.
        let head = Head::unpack(self.head.load(Relaxed));
        // Ordering: as above.
        let bottom = self.bottom.load(Relaxed);
        // Ordering: as above.
        let buffer = self.buffer.load(Relaxed);
        // SAFETY: it came from a box, and nobody has another pointer to it.
        let buffer = unsafe { Box::from_raw(buffer) };
        let mut rest = Rest(buffer, head.top, bottom);
        rest.run();

        /// Goes on with the others when an item's drop panics.
        struct Rest<T>(Box<Buffer<T>>, u32, u32);
        impl<T> Rest<T> {
            fn run(&mut self) {
                while self.1 != self.2 {
                    let at = self.1;
                    self.1 = at.wrapping_add(1);
                    // SAFETY: the items that are left are the last handle's, and each is read once.
                    drop(unsafe { self.0.read(at) });
                }
            }
        }
        impl<T> Drop for Rest<T> {
            fn drop(&mut self) {
                self.run();
                self.0.retire();
            }
        }
    }
}

/// The owner's end: pushes and pops the newest.
///
/// There is one, and every operation takes `&mut self`. When it is dropped it drops the items; what thieves have claimed by then is
/// theirs. A worker that is forgotten leaves its items to the stealers, and the deque is never freed.
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
/// ```compile_fail
/// let worker = queue_spmc::deque::Worker::<u8>::new();
/// std::thread::scope(|s| { s.spawn(|| worker.len()); });
/// ```
pub struct Worker<T> {
    deque: Arc<Deque<T>>,
    /// The owner's own copies.
    bottom: u32,
    buffer: *mut Buffer<T>,
    /// A `steal` that the owner has seen: never beyond the real one, so that room is only ever underestimated.
    steal: u32,
    least: usize,
    not_sync: PhantomData<core::cell::Cell<()>>,
}

// SAFETY: the pointer is to a buffer of the deque, which is `Send`.
unsafe impl<T: Send> Send for Worker<T> {}

/// A thief's end: takes the oldest. Clones share the deque.
pub struct Stealer<T> {
    deque: Arc<Deque<T>>,
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

    /// An empty deque with room for so many items, rounded up to a power of two, at least two. It never shrinks below that.
    ///
    /// # Panics
    /// When `capacity` is above 2³⁰.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::starting_at(capacity, 0)
    }

    fn starting_at(capacity: usize, at: u32) -> Self {
        assert!(
            capacity <= MOST as usize,
            "a deque holds up to 2^30 items, not {capacity}"
        );
        let least = capacity.next_power_of_two().max(2);
        let buffer = Box::into_raw(Box::new(Buffer::new(least)));
        let deque = Deque {
            head: CachePadded::new(AtomicU64::new(Head::both(at).pack())),
            bottom: CachePadded::new(AtomicU32::new(at)),
            buffer: AtomicPtr::new(buffer),
            reclaimer: Reclaimer::new(),
        };
        Self {
            deque: Arc::new(deque),
            bottom: at,
            buffer,
            steal: at,
            least,
            not_sync: PhantomData,
        }
    }

    /// A thief's end of this deque.
    pub fn stealer(&self) -> Stealer<T> {
        Stealer {
            deque: self.deque.clone(),
        }
    }

    /// Items in the deque. Thieves may take some at any time.
    pub fn len(&self) -> usize {
        self.deque.len()
    }

    /// Whether the deque is empty. True stays true until the next push.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What fits before the buffer grows.
    pub fn capacity(&self) -> usize {
        self.buffer().capacity() as usize
    }

    /// Puts an item on top. No read-modify-write. When the buffer is full it doubles.
    ///
    /// # Panics
    /// When there are 2³⁰ items. The item is dropped then.
    #[inline]
    pub fn push(&mut self, item: T) {
        self.reserve(1);
        // SAFETY: the owner, and there is room.
        unsafe { self.buffer().write(self.bottom, item) };
        self.publish(self.bottom.wrapping_add(1));
    }

    /// Pushes all items.
    pub fn extend(&mut self, items: impl IntoIterator<Item = T>) {
        items.into_iter().for_each(|item| self.push(item));
    }

    /// Takes the newest item. A `SeqCst` fence, and a read-modify-write for the last one only.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let bottom = self.bottom.wrapping_sub(1);
        // Ordering: Release, as every store of `bottom`: a thief that reads this one must see the pushes below as well.
        self.deque.bottom.store(bottom, Release);
        // Ordering: SeqCst, rule 2: between the store of `bottom` and the load of `head`. Pairs with the fence in `open`.
        fence(SeqCst);
        let head = self.deque.load_head();
        let below = head.len(bottom);
        if below < 0 {
            self.publish(self.bottom);
            self.shrink(0);
            return None;
        }
        if below == 0 {
            let won = self.take_last(head);
            self.publish(self.bottom);
            // SAFETY: the exchange took it.
            let last = won.then(|| unsafe { self.buffer().read(bottom) });
            self.shrink(0);
            return last;
        }
        self.bottom = bottom;
        // SAFETY: taken (rule 1): no thief can claim it, having seen either this `bottom` or less than this `head`.
        let item = unsafe { self.buffer().read(bottom) };
        self.shrink(below as u32);
        Some(item)
    }

    /// Rule 2: by exchange, whatever thieves do. False when one of them took it.
    fn take_last(&self, mut head: Head) -> bool {
        let last = head.top;
        loop {
            let top = last.wrapping_add(1);
            let taken = Head {
                steal: if head.is_copying() { head.steal } else { top },
                top,
            };
            match self.deque.exchange_head(head, taken) {
                Ok(()) => return true,
                // A thief released what it took before.
                Err(now) if now.top == last => head = now,
                Err(_) => return false,
            }
        }
    }

    fn buffer(&self) -> &Buffer<T> {
        // SAFETY: only the owner replaces it, taking `&mut self`.
        unsafe { &*self.buffer }
    }

    #[inline]
    fn publish(&mut self, bottom: u32) {
        self.bottom = bottom;
        // Ordering: Release publishes the slots to `open`.
        self.deque.bottom.store(bottom, Release);
    }

    /// Makes room for `n` items.
    #[inline]
    fn reserve(&mut self, n: u32) {
        if self.used().saturating_add(n) > self.buffer().capacity() {
            self.grow(n);
        }
    }

    fn used(&self) -> u32 {
        self.bottom.wrapping_sub(self.steal)
    }

    #[cold]
    fn grow(&mut self, n: u32) {
        self.steal = self.deque.load_head().steal;
        let needed = self.used().saturating_add(n);
        if needed <= self.buffer().capacity() {
            return;
        }
        assert!(needed <= MOST, "a deque holds up to 2^30 items");
        self.resize(needed.next_power_of_two());
    }

    /// Halves a buffer of which less than a quarter is in use.
    #[inline]
    fn shrink(&mut self, len: u32) {
        let capacity = self.buffer().capacity();
        if capacity as usize > self.least && len < capacity / 4 {
            self.steal = self.deque.load_head().steal;
            if self.used() <= capacity / 2 {
                self.resize(capacity / 2);
            }
        }
    }

    /// Rule 5. The caller has looked that what is in use fits, with the `steal` that it has just loaded.
    #[cold]
    fn resize(&mut self, capacity: u32) {
        let new = Buffer::new(capacity as usize);
        let mut at = self.steal;
        while at != self.bottom {
            // SAFETY: the slots from `steal` on are not written by others; the copy of an item that a thief has claimed is never read
            // as an item by the owner, and by the thief from one of both buffers.
            unsafe { new.copy(self.buffer(), at) };
            at = at.wrapping_add(1);
        }
        let new = Box::into_raw(Box::new(new));
        // Pinned before the old one is out of reach, as whoever retires must be.
        let pin = self.deque.reclaimer.pin();
        // Ordering: Release publishes the copies to `read_claimed`.
        self.deque.buffer.store(new, Release);
        let old = core::mem::replace(&mut self.buffer, new);
        // SAFETY: a box's, and no longer to be found by whoever pins from now on.
        unsafe { self.deque.reclaimer.retire(&pin, old) };
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        // As a thief would, one by one, so that nothing rests on the owner's copies. An item whose drop panics leaves the others to the last handle.
        loop {
            let head = self.deque.load_head();
            // Ordering: Relaxed, the owner's own.
            if head.len(self.deque.bottom.load(Relaxed)) <= 0 {
                return;
            }
            let top = head.top.wrapping_add(1);
            let taken = Head {
                steal: if head.is_copying() { head.steal } else { top },
                top,
            };
            if self.deque.exchange_head(head, taken).is_ok() {
                // SAFETY: only the owner replaces the buffer.
                let buffer = unsafe { &*self.buffer };
                // SAFETY: the exchange took it, and nobody writes slots any more.
                drop(unsafe { buffer.read(head.top) });
            }
        }
    }
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
        Arc::ptr_eq(&self.deque, &worker.deque)
    }

    /// Whether both steal from one deque.
    pub fn same_queue(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.deque, &other.deque)
    }

    /// Takes the oldest item. Two read-modify-writes, a `SeqCst` fence and a pin.
    pub fn steal(&self) -> Steal<T> {
        let mut first = None;
        let stolen = self.take(StealLimit::AtMost(1), |item| first = Some(item));
        with_first(stolen, first)
    }

    /// Takes up to `limit` of the oldest items: the first to run at once, the others on top of `worker`'s deque, the newest uppermost. A
    /// read-modify-write and a `SeqCst` fence an item, and one read-modify-write and a pin.
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

    /// Moves up to `limit` of the oldest items on top of `worker`'s deque, the newest uppermost, and tells how many. Costs as
    /// [`steal_into_and_pop`](Self::steal_into_and_pop).
    ///
    /// From one's own deque it takes nothing: [`Steal::Empty`].
    pub fn steal_into(&self, worker: &mut Worker<T>, limit: StealLimit) -> Steal<()> {
        if self.is_of(worker) {
            return Steal::Empty;
        }
        self.take(limit, |item| worker.push(item))
    }

    /// Rule 4. The limit is of what there is at the first look.
    fn take(&self, limit: StealLimit, mut sink: impl FnMut(T)) -> Steal<()> {
        let _pin = self.deque.reclaimer.pin();
        let mut head = self.deque.load_head();
        if head.is_copying() {
            return Steal::Retry;
        }
        let (mut moved, mut wanted, mut claim) = (0, None, None);
        loop {
            let len = self.deque.open(head);
            let wanted = *wanted.get_or_insert_with(|| limit.of(len));
            if len == 0 || wanted == 0 {
                break;
            }
            let top = head.top.wrapping_add(1);
            let claimed = Head { top, ..head };
            if self.deque.exchange_head(head, claimed).is_err() {
                break;
            }
            // Releases when it is dropped, the sink's panic included.
            claim.get_or_insert_with(|| Claim(&self.deque));
            // SAFETY: claimed, not released, read once, and pinned.
            sink(unsafe { self.deque.read_claimed(head.top) });
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

/// Slots that a thief holds (rule 3).
struct Claim<'a, T>(&'a Deque<T>);

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        let mut head = self.0.load_head();
        while let Err(now) = self.0.exchange_head(head, Head::both(head.top)) {
            head = now;
        }
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
            .field("len", &self.deque.len())
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
