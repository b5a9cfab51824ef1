//! The values of a channel: a ring of slots, which each receiver reads in order.
//!
//! # The story
//!
//! Positions count the values that were sent. The value of position `p` is in slot `p` modulo the
//! capacity, until it is *released*: all receivers that are to get it have it, or the value of a
//! later position replaces it. The *sender* is the thread that holds the channel's tail; there is
//! one at a time. It puts a value with the number of receivers that are to get it. A receiver
//! clones the value and lowers that number. The last one takes the value itself.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `Slot::position` | written by the sender, read by anyone |
//! | `Slot::left` | a lock (`parking.rs`); above its two bits the number of receivers that still are to get the value |
//! | `Slot::value` | the lock's holder; the sender, if it has seen `left` zero |
//!
//! # Rules
//!
//! 1. `value` is initialised exactly while the number in `left` is not zero.
//! 2. `position` never goes back. It is the position of the last value that was put into the slot.
//!    It changes under the slot's lock, or while `left` is zero.
//! 3. A receiver at position `p` is counted in the slot of `p` from the put on until it lowers the
//!    number itself, or the value is replaced. It touches the value under the lock, after it has
//!    found `position` equal to `p` under that lock. So the number is then not zero.
//! 4. A receiver whose position has passed may take the lock of a slot for a moment: it looks at
//!    `position`, and touches nothing else.
//! 5. The clones of a value run one at a time, under the slot's lock: `T` need not be `Sync`.
//!
//! # Why the sender needs no lock if `left` is zero
//!
//! By rule 3 no receiver is at the slot's position, and none is at the next one before the sender
//! has stored that position. Receivers at older positions may lock (rule 4), so the sender sets the
//! number by an addition, which leaves their bits alone.
use crate::parking::{LOCKED, PARKED, Parking, UNIT};
use alloc::boxed::Box;
use core::mem::MaybeUninit;
use sync_shim::{
    atomic::{
        AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
};

/// The highest number of receivers that a slot counts.
pub(super) const MAX_RECEIVERS: usize = usize::MAX / UNIT;

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
            unsafe { slot.write(position, value, receivers * UNIT) };
            return None;
        }
        let locked = self.lock(slot);
        let left = locked & !(LOCKED | PARKED);
        // SAFETY: the lock is held, and the number tells whether there is a value (rule 1).
        let replaced = (left != 0).then(|| unsafe { slot.read() });
        let added = (receivers * UNIT).wrapping_sub(left);
        // SAFETY: the lock is held, and the value was read if there was one.
        unsafe { slot.write(position, value, added) };
        self.unlock(slot, 0);
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
        let guard = self.enter(position)?;
        if guard.is_last {
            // SAFETY: the guard holds the lock at `position`, and after it the number is zero.
            return Ok(unsafe { guard.slot.read() });
        }
        guard.slot.value.with(|value| {
            // SAFETY: the guard holds the lock at `position`, so the value is initialised.
            let value = unsafe { &*value.cast::<T>() };
            Ok(value.clone())
        })
    }

    /// Gives up the value of `position` for one receiver. Returns the value if the receiver was the
    /// last one.
    ///
    /// # Safety
    /// As of `take`.
    pub(super) unsafe fn skip(&self, position: u64) -> Result<Option<T>, Missing> {
        let guard = self.enter(position)?;
        // SAFETY: as in `take`.
        Ok(guard.is_last.then(|| unsafe { guard.slot.read() }))
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
            self.slot(tail.wrapping_sub(back)).left.load(Relaxed) >= UNIT
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

    /// Takes the lock of a slot for a receiver at `position`.
    #[inline]
    fn enter(&self, position: u64) -> Result<Entered<'_, T>, Missing> {
        self.missing(position).map_or(Ok(()), Err)?;
        let slot = self.slot(position);
        let locked = self.lock(slot);
        if let Some(missing) = self.missing(position) {
            self.unlock(slot, 0);
            return Err(missing);
        }
        Ok(Entered {
            ring: self,
            slot,
            is_last: locked < 2 * UNIT,
        })
    }

    #[inline]
    fn lock(&self, slot: &Slot<T>) -> usize {
        self.parking.lock(&slot.left, LOCKED, LOCKED)
    }

    #[inline]
    fn unlock(&self, slot: &Slot<T>, receivers: usize) {
        let subtracted = LOCKED + receivers * UNIT;
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

/// The lock of a slot, held by a receiver that is to get its value. The drop counts the receiver as
/// one that has got it.
struct Entered<'a, T> {
    ring: &'a Ring<T>,
    slot: &'a Slot<T>,
    is_last: bool,
}

impl<T> Drop for Entered<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.ring.unlock(self.slot, 1);
    }
}

impl<T> Drop for Ring<T> {
    /// Drops the values that no receiver has released: a drop of a receiver may have panicked.
    fn drop(&mut self) {
        for slot in &mut self.slots {
            // Ordering: Relaxed, as nobody else has the ring.
            if slot.left.load(Relaxed) & !(LOCKED | PARKED) != 0 {
                // SAFETY: there is a value (rule 1), and it is not read again.
                drop(unsafe { slot.read() });
            }
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
