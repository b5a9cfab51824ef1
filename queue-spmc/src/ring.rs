//! A bounded FIFO ring with one owner and many thieves.
//!
//! The algorithm is Go's run queue with the two-position head of Tokio's scheduler. Two points
//! differ from Go's:
//!
//! - A thief claims a batch before it copies it, as in Tokio. Go's thief copies first, so it may
//!   read a slot that the owner overwrites before the thief's exchange fails: a data race on a
//!   plain slot.
//! - The owner can claim several items with one exchange, and gives them back when a thief requests
//!   items. So most of its pops need no read-modify-write.
//!
//! # Actors
//!
//! | actor | handle | does |
//! |---|---|---|
//! | *owner* | the one [`Worker`], by `&mut self` | pushes at the back, pops at the front |
//! | *thief* | a [`Stealer`]; any number of threads | takes from the front |
//!
//! # Fields
//!
//! | field | meaning | written by |
//! |---|---|---|
//! | `tail` | one past the newest published item | the owner |
//! | `head` | two positions in one word, `steal` and `real` | all, by compare-exchange |
//! | `request` | a flag: a thief found nothing | set by a thief, cleared by the owner |
//! | `slots[i]` | an item, or nothing | the owner, for positions in `tail..oldest + capacity` |
//! | `next`, `claimed` | the range that the owner has claimed | the owner, in its own memory |
//!
//! Positions count up and wrap at 2³²; an item's slot is its position modulo the capacity.
//! `steal ≤ real ≤ tail` and `next ≤ claimed ≤ real` (wrapping). `oldest` is `steal`, or `next` if
//! the owner has claimed items and `next` is older. `tail − oldest ≤ capacity`.
//!
//! # States of an item
//!
//! | state | position | may be taken by |
//! |---|---|---|
//! | *available* | in `real..tail` | the owner or a thief, by an exchange that moves `real` |
//! | *claimed* by the owner | in `next..claimed` | the owner, without exchange |
//! | *private* (rule 8) | at `tail`, unpublished; counts as claimed | the owner, without exchange |
//! | *being copied* | in `steal..real`, as of the thief's claim | the thief that claimed it |
//!
//! An item in none of these states is *taken*. At most one thief copies at a time.
//!
//! # Rules
//!
//! 1. The owner and every thief may take the items in `real..tail`. Moving `real` over an item
//!    takes it, so each item is taken once.
//! 2. While a thief copies, `steal..real` holds the slots that it has claimed, and those of items
//!    that the owner took since. The owner does not write to them. `steal == real` when no thief
//!    copies; only then may a thief claim.
//! 3. A thief claims by moving `real`, copies, and then moves `steal` up to the `real` of that
//!    moment. Meanwhile the owner claims as usual but moves `real` alone, and other thieves get
//!    [`Steal::Retry`].
//! 4. Only the owner writes slots. So a claimed item stays in its slot until the owner has seen the
//!    thief release it.
//! 5. The store of `tail` publishes an item. The exchange that moves `steal` past the item frees
//!    its slot for writing. The slot of an item that the owner has claimed is free only after the
//!    owner has also popped the item.
//! 6. The owner also claims by moving `real`: one item, or up to the number given to
//!    [`Worker::with_claim`], but never more than half of the items, rounded up. The items in
//!    `next..claimed` are then its own. To pop one of them it only reads `request`, and writes
//!    nothing that is shared.
//! 7. A thief that finds nothing to take sets `request`. The owner's next operation sees the flag
//!    and gives the claimed items back:
//!    - If no thief took items from behind the claimed ones, the owner moves `real` back to `next`.
//!    - If thieves took all items from behind them, the owner moves the claimed items to the tail.
//!    - If thieves took some and left others, the items that are left can be stolen already. The
//!      owner then only clears `request`, and exchanges `head` for the same value (claim 7).
//!
//!    The owner sees its items in order in each case. A thief may get a younger item before an
//!    older item that was given back.
//! 8. Suppose that an owner that claims more than one item at a time pushes an item into an empty
//!    ring, and that no thief has set `request`. Then the item is private: the owner writes the
//!    slot and does not move `tail`. The owner's next push, or rule 7, moves `tail` over the item,
//!    which makes the item available.
//! 9. Two operations give claimed items back by rule 7 without a request: the drop of an iterator
//!    of [`Worker::pop_n`] gives back the items that it claimed and did not yield, and
//!    [`Worker::with_claim`] gives back everything that is claimed.
//!
//! # Why it is correct
//!
//! 1. *Each item is taken once.* An available item is taken by an exchange that moves `real` over
//!    it. All exchanges are on one word, and each succeeds only on the value that the thread read.
//!    A claimed or private item belongs to the owner alone until rule 7 makes it available again.
//! 2. *A thief reads only written slots.* The owner writes a slot before it stores `tail` with
//!    Release. A thief loads `head` and then `tail`, both with Acquire, and claims nothing beyond
//!    that `tail`.
//! 3. *No slot is overwritten while a thief copies it.* The owner writes only positions in
//!    `tail..oldest + capacity`, as computed from a `head` that it loaded with Acquire. A thief
//!    moves `steal` with Release, after its copies (rules 2 to 5).
//! 4. *An old `head` does no harm.* Rule 7 moves `real` back. So a thief's exchange may succeed
//!    although `head` has changed twice since the thief read it. Then `real` still names the same
//!    item. The owner moves `real` back only over items that are still in their slots, and never
//!    below `next`. An item that moves to the tail gets a new position. So all items from `real` to
//!    the `tail` that the thief read are there. Apart from rule 7, a position returns only after
//!    2³² items. So the exchange could be wrong only if 2³² items pass between the thief's load and
//!    its exchange.
//! 5. *The owner never waits.* A thief that is descheduled while it copies keeps only the slots
//!    that it copies. A push that finds no room moves its one item to the overflow queue and
//!    continues. Other thieves retry for as long as one copy takes.
//! 6. *No item is hidden for long.* A claimed or private item waits at most until the owner's next
//!    operation: in a scheduler, until the end of the poll in progress. A thief can take an
//!    available item without the owner.
//! 7. *No request is lost.* It would be lost if the owner cleared it, kept claimed items, and left
//!    no other item to steal. An owner that has claimed items clears a request and keeps the items
//!    only in the third case of rule 7. Its exchange of `head` comes after the clear, and succeeds
//!    only while other items are left. Consider a thief that finds nothing:
//!    - If the thief loaded an older `head` than the exchange's, it loaded an older `tail` too. The
//!      items that it missed are available.
//!    - If the thief loaded the `head` of the exchange or a newer one, it loads `request` after the
//!      clear. So it finds the flag clear, and sets it, or the flag was set again since.
//!
//!    In the same way, a thief that finds nothing because of a claim loads `request` after
//!    everything that the owner did before the claim.
use alloc::{boxed::Box, vec::Vec};
use core::mem::MaybeUninit;
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicU32, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};

mod arc;
mod claim;
mod inline;
mod overflow;
mod pop_n;
mod storage;
mod taken;
mod thief;
mod worker;

pub use crate::steal::{Full, Steal, StealLimit};
pub use inline::{Borrowed, Inline};
pub use pop_n::PopN;
pub use storage::{Shared, Storage};
pub use thief::Stealer;
pub use worker::Worker;

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// The fields that the owner and the thieves share, except the slots.
#[derive(Debug)]
struct Header {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU32>,
    request: CachePadded<AtomicU32>,
}

/// Both positions of `head`, packed as in the atomic. So the owner's copy can be compared with the
/// atomic's value, and can be the expected value of an exchange, without a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head(u64);

impl Head {
    const fn new(steal: u32, real: u32) -> Self {
        // The halves share no bit, so `|` equals `^`: `.cargo/mutants.toml` leaves that mutant out.
        Self((steal as u64) << 32 | real as u64)
    }

    const fn both(at: u32) -> Self {
        Self::new(at, at)
    }

    const fn steal(self) -> u32 {
        (self.0 >> 32) as u32
    }

    const fn real(self) -> u32 {
        self.0 as u32
    }

    const fn is_copying(self) -> bool {
        self.steal() != self.real()
    }

    /// Returns the value after the owner moves `real`.
    const fn moved(self, real: u32) -> Self {
        if self.is_copying() {
            Self::new(self.steal(), real)
        } else {
            Self::both(real)
        }
    }
}

macro_rules! new {
    ($($constness:ident)?) => {
        $($constness)? fn new(at: u32) -> Self {
            Self {
                head: CachePadded::new(AtomicU64::new(Head::both(at).0)),
                tail: CachePadded::new(AtomicU32::new(at)),
                request: CachePadded::new(AtomicU32::new(0)),
            }
        }
    };
}

cfg_if::cfg_if! {
    if #[cfg(any(selvedge_loom, selvedge_shuttle))] {
        impl Header {
            new! {}
        }
    } else {
        impl Header {
            new! { const }
        }
    }
}

impl Header {
    #[inline]
    fn load_head(&self) -> Head {
        // Ordering: Acquire pairs with two Release exchanges in `exchange_head`. One is a thief's,
        // which moves `steal`: its copies end before the owner writes the slots again. The other is
        // any thread's, which moves `real`: a `tail` read after this load is not older than that
        // `real`.
        Head(self.head.load(Acquire))
    }

    #[inline]
    fn exchange_head(&self, from: Head, to: Head) -> Result<(), Head> {
        // Ordering: Release pairs with the Acquire of `load_head`: this thread's copies end before
        // the owner next loads `head`, and a thread that reads the new `real` also sees the `tail`
        // that the claim rests on. Success needs no Acquire, since the replaced value was loaded
        // with Acquire before. A failed exchange serves as a load, so it has Acquire as in
        // `load_head`: an owner that gives items back then writes slots that thieves copied before.
        match self.head.compare_exchange(from.0, to.0, Release, Acquire) {
            Ok(_) => Ok(()),
            Err(now) => Err(Head(now)),
        }
    }

    /// Returns the number of available items. A hint for every thread except the owner.
    #[inline]
    fn len(&self) -> u32 {
        let head = self.load_head();
        // Ordering: Relaxed, the value is only used for a count. After the load of `head` above,
        // `tail` is not older than `real`.
        self.tail.load(Relaxed).wrapping_sub(head.real())
    }

    #[inline(always)]
    fn request(&self) -> u32 {
        // Ordering: Relaxed, the flag carries no other data. A thief loads it after `head`, whose
        // Acquire orders this load after the owner's clear (claim 7). A thief that looks again
        // finds the flag set or sets it again.
        self.request.load(Relaxed)
    }

    fn set_request(&self, request: u32) {
        if self.request() != request {
            // Ordering: Relaxed, as in `request`.
            self.request.store(request, Relaxed);
        }
    }

    /// Returns the first position and the number of the items that are left when all handles are
    /// gone.
    fn remaining(&mut self) -> (u32, u32) {
        self.retire();
        // Ordering: Relaxed, no other handle exists, so no other thread touches the ring.
        let head = Head(self.head.load(Relaxed));
        // Ordering: as above.
        let tail = self.tail.load(Relaxed);
        (head.real(), tail.wrapping_sub(head.real()))
    }

    fn retire(&mut self) {
        self.head.retire();
        self.tail.retire();
        self.request.retire();
    }
}

/// # Safety
/// `index` is below the number of slots.
#[inline(always)]
unsafe fn slot<T>(slots: &[Slot<T>], index: u32) -> &Slot<T> {
    // SAFETY: by the caller's contract.
    unsafe { slots.get_unchecked(index as usize) }
}

/// # Safety
/// `index` is below the number of slots. The caller has taken the item in that slot and reads it
/// once.
#[inline(always)]
unsafe fn read<T>(slots: &[Slot<T>], index: u32) -> T {
    // SAFETY: by the caller's contract.
    let slot = unsafe { slot(slots, index) };
    // SAFETY: by the caller's contract; the slot was written before `tail` was published.
    slot.with(|slot| unsafe { slot.cast::<T>().read() })
}

/// # Safety
/// The caller is the owner. `index` is below the number of slots, and is the slot of a position in
/// `tail..oldest + capacity`.
#[inline(always)]
unsafe fn write<T>(slots: &[Slot<T>], index: u32, item: T) {
    // SAFETY: by the caller's contract.
    let slot = unsafe { slot(slots, index) };
    // SAFETY: by the caller's contract; no other thread touches a slot outside of `oldest..tail`.
    slot.with_mut(|slot| unsafe { slot.cast::<T>().write(item) });
}

/// Returns the slot index of a position. The number of slots is a power of two.
#[inline(always)]
fn index<T>(slots: &[Slot<T>], position: u32) -> u32 {
    position & (slots.len() as u32).wrapping_sub(1)
}

#[track_caller]
fn assert_capacity(capacity: usize) {
    assert!(
        capacity.is_power_of_two() && (2..=1 << 31).contains(&capacity),
        "a ring's capacity is a power of two from 2 to 2^31, not {capacity}"
    );
}

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
