//! A bounded FIFO ring with one owner and many thieves.
//!
//! The algorithm is Go's run queue as Tokio's scheduler took it over, with two changes. A batch is claimed before it is
//! copied: the source reads a slot that may be overwritten before its exchange fails, which is a
//! data race on a plain slot. And the owner claims a few items with one exchange and gives back what thieves ask for, so that most
//! of its pops have no read-modify-write.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `tail` | the owner: one past the newest item |
//! | `head`: two positions in one word, `steal` and `real` | owner and thieves, by compare-exchange |
//! | `wanted` | a thief that finds nothing sets it, the owner clears it |
//! | `slots[i]` | the owner, for positions in `tail..oldest + capacity` |
//! | `next`, `claimed` | the owner, for itself |
//!
//! Positions count up and wrap at 2³²; the slot is the position modulo the capacity. `steal ≤ real ≤ tail` and
//! `next ≤ claimed ≤ real` (wrapping). `oldest` is the older of `steal` and, if the owner has claimed something, `next`; `tail − oldest ≤ capacity`.
//!
//! # Rules
//!
//! 1. `real..tail` are the items that anyone may take. Moving `real` over an item takes it, so each is taken once.
//! 2. `steal..real` are slots that a thief has taken and is still copying. The owner does not
//!    write to them. `steal == real` when no thief copies; only then may a thief claim.
//! 3. A thief claims by moving `real`, copies, and then moves `steal` up to where `real` is by now.
//!    In between the owner claims as ever, moving `real` alone; other thieves get [`Steal::Retry`].
//! 4. Only the owner writes slots, so what has been taken stays in place until the owner has seen it released.
//! 5. An item is published by the store of `tail` and freed for writing by the exchange on `head`.
//! 6. The owner claims by moving `real` as well: one item, or up to [as many as it was told](Worker::with_claim) and never more than half of them, rounded up.
//!    `next..claimed` are its own then, and popping them touches nothing that is shared but `wanted`, to read it.
//! 7. A thief that finds nothing to take sets `wanted`. The owner's next operation sees it and gives back what it has claimed: if nobody took items
//!    from behind the claimed ones, by moving `real` back to `next`; else, if all of those are gone, by moving its own to the tail. If others are left
//!    behind the claimed ones there is something to steal already, and it clears `wanted` alone. The owner sees its items in order in each case; a
//!    thief may get an item that came back after younger ones.
//! 8. An owner that claims more than one item at a time claims one that it pushes into an empty ring at birth, unless a thief has asked: it writes the slot and
//!    does not move `tail`. Its next push, or rule 7, moves `tail` over it and so opens it.
//!
//! 9. What [`Worker::pop_n`] has claimed and not given out when its iterator goes, and what is
//!    claimed when the owner is [told a new number](Worker::with_claim), goes back by rule 7, asked
//!    for or not.
//!
//! A thief that is descheduled in mid-copy holds back the slots it copies, not the owner: a push that finds no
//! room overflows its one item and goes on. It holds back other thieves for as long as one copy takes.
//!
//! What the owner has claimed waits, at worst, until its next operation: in a scheduler, for the end of the poll in progress. Items
//! that are open wait for nobody.
//!
//! # Why an old `head` does no harm
//!
//! Rule 7 moves `real` back, so a thief's exchange may find the value that it read although `head` has changed twice in between. Then `real` names
//! the same item as before: the owner moves it back only over items that are still in their slots, and never below `next`.
//! An item that is moved to the tail gets a new position. So the items from `real` to the `tail` that the thief has read are there.
//! A position returns after 2³² items only, which is what it takes between a thief's load and its exchange to deceive it.
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
mod storage;
mod taken;
mod thief;
mod worker;

pub use crate::steal::{Full, Steal, StealLimit};
pub use storage::{Borrowed, Inline, Shared, Storage};
pub use thief::Stealer;
pub use worker::{PopN, Worker};

type Slot<T> = UnsafeCell<MaybeUninit<T>>;

/// What owner and thieves share, but for the slots.
#[derive(Debug)]
struct Core {
    head: CachePadded<AtomicU64>,
    tail: CachePadded<AtomicU32>,
    wanted: CachePadded<AtomicU32>,
}

/// Both positions of `head`, as they are there: an owner's copy in one word is compared and expected as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head(u64);

impl Head {
    const fn new(steal: u32, real: u32) -> Self {
        // The halves share no bit, so `|` is `^`: `.cargo/mutants.toml` leaves that mutant out.
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

    /// With `real` moved by the owner.
    const fn moved(self, real: u32) -> Self {
        if self.is_copying() {
            Self::new(self.steal(), real)
        } else {
            Self::both(real)
        }
    }
}

impl Core {
    #[inline]
    fn load_head(&self) -> Head {
        // Ordering: Acquire pairs with the release of `head` by a thief (its copies end before the owner writes the
        // slots again) and by whoever moved `real` (a `tail` read after this is not older than `real`).
        Head(self.head.load(Acquire))
    }

    #[inline]
    fn exchange_head(&self, from: Head, to: Head) -> Result<(), Head> {
        // Ordering: Release ends this thread's copies before the owner's next look, and carries
        // the `tail` that the claim rests on. What is replaced was read with Acquire before. What is found instead takes the place of a look: Acquire
        // as in `load_head`, as an owner that gives items back then writes the slots of earlier copies.
        match self.head.compare_exchange(from.0, to.0, Release, Acquire) {
            Ok(_) => Ok(()),
            Err(now) => Err(Head(now)),
        }
    }

    /// Items that anyone may take; a hint for everybody but the owner.
    #[inline]
    fn len(&self) -> u32 {
        let head = self.load_head();
        // Ordering: Relaxed, only counted: the look at `head` keeps it from being older than `real`.
        self.tail.load(Relaxed).wrapping_sub(head.real())
    }

    #[inline(always)]
    fn wanted(&self) -> u32 {
        // Ordering: Relaxed, the flag is all there is to know. Who asks again finds it set or sets it again.
        self.wanted.load(Relaxed)
    }

    fn set_wanted(&self, wanted: u32) {
        if self.wanted() != wanted {
            // Ordering: Relaxed, as in `wanted`.
            self.wanted.store(wanted, Relaxed);
        }
    }

    /// Where the items lie that are left when all handles are gone.
    fn rest(&mut self) -> (u32, u32) {
        self.retire();
        // Ordering: Relaxed, the last handle is alone.
        let head = Head(self.head.load(Relaxed));
        // Ordering: as above.
        let tail = self.tail.load(Relaxed);
        (head.real(), tail.wrapping_sub(head.real()))
    }

    fn retire(&mut self) {
        self.head.retire();
        self.tail.retire();
        self.wanted.retire();
    }
}

/// # Safety
/// `index` is below the number of slots.
#[inline(always)]
unsafe fn slot<T>(slots: &[Slot<T>], index: u32) -> &Slot<T> {
    // SAFETY: the caller's.
    unsafe { slots.get_unchecked(index as usize) }
}

/// # Safety
/// The caller has taken the item in the slot `index`, which is below their number, and reads it once.
#[inline(always)]
unsafe fn read<T>(slots: &[Slot<T>], index: u32) -> T {
    // SAFETY: the caller's.
    let slot = unsafe { slot(slots, index) };
    // SAFETY: the caller's; the slot was written before `tail` was published.
    slot.with(|slot| unsafe { slot.cast::<T>().read() })
}

/// # Safety
/// The caller is the owner, and `index`, which is below the number of slots, that of a position in `tail..oldest + capacity`.
#[inline(always)]
unsafe fn write<T>(slots: &[Slot<T>], index: u32, item: T) {
    // SAFETY: the caller's.
    let slot = unsafe { slot(slots, index) };
    // SAFETY: nobody else touches a slot outside of `oldest..tail`.
    slot.with_mut(|slot| unsafe { slot.cast::<T>().write(item) });
}

/// The slot of a position, of a power of two of slots.
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
mod crowd {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
