//! The values of a channel: a ring of slots, which each receiver reads in order.
//!
//! # The story
//!
//! Positions count the values that were sent. The value of position `p` is in slot `p` modulo the
//! capacity, until it is *released*: all receivers that are to get it have it, or the value of a
//! later position replaces it. The *sender* is the thread that holds the channel's tail; there is
//! one at a time. It puts a value with the number of receivers that are to get it. A receiver
//! lowers that number. The last one takes the value itself. Any other takes the value *out*, clones
//! it, and puts it back. Meanwhile the sender may replace the value; then the receiver drops it.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `Slot::position` | written by the sender, read by anyone |
//! | `Slot::left` | a lock (`parking.rs`); the bit `OUT`; above it the number of receivers that still are to get the value |
//! | `Slot::value` | the lock's holder; the sender, if it has seen `left` zero |
//!
//! # Rules
//!
//! 1. `value` is initialised exactly while the number in `left` is not zero and `OUT` is clear.
//! 2. `position` never goes back. It is the position of the last value that was put into the slot.
//!    It changes under the slot's lock, or while `left` is zero.
//! 3. A receiver at position `p` is counted in the slot of `p` from the put on until it lowers the
//!    number itself, or the value is replaced. It touches the value under the lock, after it has
//!    found `position` equal to `p` under that lock. So the number is then not zero.
//! 4. A receiver whose position has passed may take the lock of a slot for a moment: it looks at
//!    `position`, and touches nothing else.
//! 5. No user code runs under the lock. While `OUT` is set, the value is with one receiver, which
//!    clones it, and which is counted. Others that are to get the value wait: so the clones of a
//!    value run one at a time, and `T` need not be `Sync`. A sender and a receiver that gives the
//!    value up do not wait. Nor does the receiver with the value, when it puts that back: it finds
//!    the value replaced (`position`), or that it is the last that is counted, or neither.
//!
//! # Why the sender needs no lock if `left` is zero
//!
//! By rule 3 no receiver is at the slot's position, and none is at the next one before the sender
//! has stored that position. Receivers at older positions may lock (rule 4), so the sender sets the
//! number by an addition, which leaves their bits alone.
mod nested;

use crate::{
    panics::{drop_each, resume},
    parking::{LOCKED, PARKED, Parking, UNIT},
};
use alloc::boxed::Box;
use core::{
    iter,
    mem::{ManuallyDrop, MaybeUninit},
    ptr,
};
use sync_shim::{
    atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
};

/// The value is with a receiver.
const OUT: usize = UNIT;
/// The unit of the number of receivers.
const ONE: usize = 2 * UNIT;

/// The highest number of receivers that a slot counts. It leaves the highest bits of `left` clear,
/// as a lock demands.
pub(super) const MAX_RECEIVERS: usize = usize::MAX / 32;

pub(super) struct Ring<T> {
    slots: Box<[Slot<T>]>,
    parking: Parking,
}

struct Slot<T> {
    position: AtomicU64,
    left: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// Why a receiver gets no value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Missing {
    /// It was not sent yet.
    Unsent,
    /// It was replaced.
    Replaced,
}

// SAFETY: values move between threads. They are shared under a lock only (rule 5).
unsafe impl<T: Send> Send for Ring<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    /// Creates a ring of at least `capacity` slots.
    pub(super) fn new(capacity: usize) -> Self {
        let capacity = capacity.next_power_of_two();
        let empty = |slot| Slot {
            // The lap before the first one.
            position: AtomicU64::new((slot as u64).wrapping_sub(capacity as u64)),
            left: AtomicUsize::new(0),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        };
        Self {
            slots: (0..capacity).map(empty).collect(),
            parking: Parking::new(),
        }
    }

    pub(super) fn capacity(&self) -> u64 {
        self.slots.len() as u64
    }

    #[inline]
    fn slot(&self, position: u64) -> &Slot<T> {
        // The capacity is a power of two, and `position` may lose high bits.
        &self.slots[position as usize & (self.slots.len() - 1)]
    }

    /// Puts the value of the next position, for `receivers` receivers. Returns the value that it
    /// replaces.
    ///
    /// # Safety
    /// The caller is the sender. `position` is one more than that of the last put, or zero at the
    /// first, and `receivers` is from 1 to `MAX_RECEIVERS`.
    #[inline]
    pub(super) unsafe fn put(&self, position: u64, value: T, receivers: usize) -> Option<T> {
        let slot = self.slot(position);
        // Ordering: Acquire pairs with the Release of the unlock by which the last receiver left:
        // it has taken the value out.
        if slot.left.load(Acquire) == 0 {
            // SAFETY: no receiver is at the position of this slot.
            unsafe { slot.write(position, value, receivers * ONE) };
            return None;
        }
        let locked = self.lock(slot, LOCKED);
        let left = locked & !(LOCKED | PARKED);
        let is_here = left != 0 && left & OUT == 0;
        // SAFETY: the lock is held, and there is a value (rule 1).
        let replaced = is_here.then(|| unsafe { slot.read() });
        let added = (receivers * ONE).wrapping_sub(left);
        // SAFETY: the lock is held, and the value was read if there was one.
        unsafe { slot.write(position, value, added) };
        self.unlock(slot, LOCKED);
        replaced
    }

    /// Takes the value of `position` for one receiver: the value itself if it is the last, and a
    /// clone otherwise.
    ///
    /// # Errors
    /// The value was not sent yet, or is replaced.
    ///
    /// # Panics
    /// If the clone panics. The receiver then counts as having got the value.
    ///
    /// # Safety
    /// The caller is a receiver that is to get the value of `position`, and has not got it yet.
    #[inline]
    pub(super) unsafe fn take(&self, position: u64) -> Result<T, Missing>
    where
        T: Clone,
    {
        let slot = self.slot(position);
        // Ordering: Relaxed. The answer matters if this thread has taken the value out.
        if nested::CAN_TELL
            && slot.left.load(Relaxed) & OUT != 0
            && nested::is_cloning(ptr::from_ref(slot).cast(), position)
        {
            // SAFETY: the caller's. The receiver does not get the value.
            let _other = unsafe { self.skip(position) }?;
            panic!("the clone of a broadcast value receives that value");
        }
        let is_last = self.enter(position, LOCKED | OUT)? < 2 * ONE;
        // SAFETY: the lock is held at `position` with `OUT` clear, so there is a value. After the
        // unlock the number is zero, or `OUT` is set.
        let value = unsafe { slot.read() };
        if is_last {
            self.unlock(slot, LOCKED + ONE);
            return Ok(value);
        }
        self.unlock(slot, LOCKED.wrapping_sub(OUT));
        let taken = TakenOut {
            ring: self,
            position,
            value: ManuallyDrop::new(value),
        };
        nested::within(ptr::from_ref(slot).cast(), position, || {
            Ok((*taken.value).clone())
        })
    }

    /// Gives up the value of `position` for one receiver. Returns the value if the receiver was the
    /// last one.
    ///
    /// # Safety
    /// As of `take`.
    pub(super) unsafe fn skip(&self, position: u64) -> Result<Option<T>, Missing> {
        // If `OUT` is set, a second receiver is counted.
        let is_last = self.enter(position, LOCKED)? < 2 * ONE;
        let slot = self.slot(position);
        // SAFETY: the lock is held at `position`, and after the unlock the number is zero.
        let value = is_last.then(|| unsafe { slot.read() });
        self.unlock(slot, LOCKED + ONE);
        Ok(value)
    }

    /// Returns why `position` has no value to receive, or `None` if it has one.
    #[inline]
    pub(super) fn missing(&self, position: u64) -> Option<Missing> {
        // Ordering: Acquire pairs with the Release of `Slot::write`: the number is there.
        let last = self.slot(position).position.load(Acquire);
        match last.wrapping_sub(position) as i64 {
            0 => None,
            ..0 => Some(Missing::Unsent),
            1.. => Some(Missing::Replaced),
        }
    }

    /// Returns how many values before `tail`, which is the next position, are not released.
    ///
    /// They are the last ones before `tail`: a receiver gets values in order, so a value is
    /// released only after the values before it.
    pub(super) fn unreleased(&self, tail: u64) -> usize {
        let is_left = |back: u64| {
            // Ordering: Relaxed, the answer is a snapshot.
            self.slot(tail.wrapping_sub(back)).left.load(Relaxed) >= ONE
        };
        let (mut left, mut released) = (0, self.capacity() + 1);
        while left + 1 < released {
            let middle = left + (released - left) / 2;
            match is_left(middle) {
                true => left = middle,
                false => released = middle,
            }
        }
        left as usize
    }

    /// Takes the lock of the slot of `position` for a receiver at that position. Waits while a bit
    /// of `blocking` is set. Returns `left`.
    #[inline]
    fn enter(&self, position: u64, blocking: usize) -> Result<usize, Missing> {
        self.missing(position).map_or(Ok(()), Err)?;
        let slot = self.slot(position);
        let left = self.lock(slot, blocking);
        if let Some(missing) = self.missing(position) {
            self.unlock(slot, LOCKED);
            return Err(missing);
        }
        Ok(left)
    }

    #[inline]
    fn lock(&self, slot: &Slot<T>, blocking: usize) -> usize {
        self.parking.lock(&slot.left, blocking, LOCKED)
    }

    /// Unlocks by a subtraction from `left`.
    #[inline]
    fn unlock(&self, slot: &Slot<T>, subtracted: usize) {
        self.parking.unlock(&slot.left, subtracted, LOCKED);
    }
}

impl<T> Slot<T> {
    /// Writes a value and its position, and adds `added` to `left`.
    ///
    /// # Safety
    /// The caller is the sender. The slot has no value that must be dropped. The lock is held, or
    /// `left` was zero. After the addition `left` has the number of receivers.
    #[inline]
    unsafe fn write(&self, position: u64, value: T, added: usize) {
        self.value.with_mut(|slot| {
            // SAFETY: the caller's.
            unsafe { (*slot).write(value) };
        });
        // Ordering: Relaxed, the store below has the Release.
        self.left.fetch_add(added, Relaxed);
        // Ordering: Release pairs with the Acquire of `missing`.
        self.position.store(position, Release);
    }

    /// Moves the value out.
    ///
    /// # Safety
    /// The lock is held, or nobody else has the ring. There is a value, and the caller sees to it
    /// that the number in `left` becomes zero.
    #[inline]
    unsafe fn read(&self) -> T {
        self.value.with(|value| {
            // SAFETY: the caller's.
            unsafe { value.cast::<T>().read() }
        })
    }
}

/// A value that a receiver has taken out of its slot, to clone it. The drop puts it back, and
/// counts the receiver as one that has got it.
struct TakenOut<'a, T> {
    ring: &'a Ring<T>,
    position: u64,
    value: ManuallyDrop<T>,
}

impl<T> Drop for TakenOut<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let slot = self.ring.slot(self.position);
        // SAFETY: the value is not used in this place again.
        let value = unsafe { ManuallyDrop::take(&mut self.value) };
        let left = self.ring.lock(slot, LOCKED);
        let kept = if self.ring.missing(self.position).is_some() {
            // It was replaced, and `OUT` is of another value, if it is set.
            self.ring.unlock(slot, LOCKED);
            Some(value)
        } else if left < 2 * ONE {
            // The other receivers have given it up.
            self.ring.unlock(slot, LOCKED + OUT + ONE);
            Some(value)
        } else {
            slot.value.with_mut(|slot| {
                // SAFETY: the lock is held at `position`, and the value is out.
                unsafe { (*slot).write(value) };
            });
            self.ring.unlock(slot, LOCKED + OUT + ONE);
            None
        };
        resume(drop_each(kept.into_iter()));
    }
}

impl<T> Drop for Ring<T> {
    /// Drops the values that no receiver has released: without `std`, a drop of a receiver may have
    /// unwound.
    fn drop(&mut self) {
        let mut slots = self.slots.iter_mut();
        let values = iter::from_fn(|| {
            // Ordering: Relaxed, as nobody else has the ring.
            let slot = slots.find(|slot| slot.left.load(Relaxed) >= ONE)?;
            // SAFETY: there is a value (rule 1), as no receiver has one out, and it is not read
            // again.
            Some(unsafe { slot.read() })
        });
        resume(drop_each(values));
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
