//! A ring of records that one thread writes and any thread may copy, without a lock.
//!
//! A record is `WORDS` words. The records have numbers from 0 on, and record `n` is in slot `n`
//! modulo the capacity: a new record overwrites the oldest one.
//!
//! | field | written by | it says |
//! |---|---|---|
//! | `begun` | the writer, before it writes record `n` | `n + 1`: record `n - capacity` may be torn |
//! | the slots' words | the writer | the records |
//! | `written` | the writer, after it has written record `n` | `n + 1`: record `n` is whole |
//!
//! 1. *A reader copies each record below `written` whole, unless the writer has begun a newer
//!    record in the same slot.* The writer publishes the words by its release store of `written`,
//!    and the reader acquires them.
//! 2. *A reader notices that a newer record may be in a slot.* The writer stores `begun`, fences,
//!    and then writes the words. The reader copies the words, fences, and then loads `begun`. If
//!    the reader copied a word of record `n`, the fences synchronise by that word, and the load
//!    returns at least `n + 1`. Then the reader drops all records up to `n - capacity`, and so the
//!    torn one.
//! 3. The writer never waits, and a reader copies once. If the writer is fast, the reader gets
//!    fewer old records, but does not copy again.
//! 4. There must be one writer at a time. Two writers may tear records, so the code that decodes a
//!    record must accept any words. A torn record is no undefined behaviour, because every word is
//!    an atomic.
use std::{
    alloc::{Layout, alloc_zeroed, handle_alloc_error},
    ptr,
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        fence,
    },
};

/// A ring of the newest records of one writer.
///
/// ```
/// use task_trace::recorder::Ring;
///
/// let ring = Ring::<2>::new(4);
/// for n in 0..5 {
///     ring.push([n, n * n]);
/// }
/// let copy = ring.copy();
/// assert_eq!(copy.records, [[1, 1], [2, 4], [3, 9], [4, 16]]);
/// assert_eq!(copy.lost, 1);
/// ```
pub struct Ring<const WORDS: usize> {
    slots: Box<[[AtomicU64; WORDS]]>,
    state: CachePadded<State>,
}

struct State {
    begun: AtomicU64,
    written: AtomicU64,
}

/// The records of a [`Ring`] at one moment, the oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RingCopy<const WORDS: usize> {
    /// The records that the ring still had.
    pub records: Vec<[u64; WORDS]>,
    /// The number of older records, which were overwritten.
    pub lost: u64,
}

impl<const WORDS: usize> Ring<WORDS> {
    /// Makes an empty ring. It allocates `capacity` records.
    ///
    /// # Panics
    /// If `capacity` is not a power of two, or if that many records exceed the address space.
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two(),
            "a ring's capacity is a power of two, not {capacity}"
        );
        Self {
            slots: zeroed(capacity),
            state: CachePadded::new(State {
                begun: AtomicU64::new(0),
                written: AtomicU64::new(0),
            }),
        }
    }

    fn slot(&self, number: u64) -> &[AtomicU64; WORDS] {
        &self.slots[number as usize & (self.slots.len() - 1)]
    }

    /// Returns the number of records that were ever appended.
    #[inline]
    pub(super) fn written(&self) -> u64 {
        // Ordering: Relaxed; the number publishes nothing.
        self.state.written.load(Relaxed)
    }

    /// Appends a record, and overwrites the oldest one if the ring is full. Only the one writer
    /// calls it. Costs `WORDS + 2` stores, no read-modify-write, and a fence that is free on x86.
    #[inline]
    pub fn push(&self, record: [u64; WORDS]) {
        // Ordering: Relaxed; only the writer stores it.
        let number = self.state.written.load(Relaxed);
        // Ordering: Relaxed; the fence below orders it.
        self.state.begun.store(number + 1, Relaxed);
        // Ordering: Release pairs with the fence of `copy` (rule 2).
        fence(Release);
        for (word, value) in self.slot(number).iter().zip(record) {
            // Ordering: Relaxed; published by `written`, and guarded by the fences of rule 2.
            word.store(value, Relaxed);
        }
        // Ordering: Release pairs with the load in `copy` (rule 1).
        self.state.written.store(number + 1, Release);
    }

    /// Copies the records that the ring has now. Any thread may call it, at any time.
    pub fn copy(&self) -> RingCopy<WORDS> {
        let capacity = self.slots.len() as u64;
        // Ordering: Acquire pairs with the store in `push` (rule 1).
        let end = self.state.written.load(Acquire);
        let oldest = end.saturating_sub(capacity);
        let record = |number| {
            // Ordering: Relaxed; acquired above, and guarded by the fences of rule 2.
            let word = |at: usize| self.slot(number)[at].load(Relaxed);
            std::array::from_fn(word)
        };
        let mut records: Vec<[u64; WORDS]> = (oldest..end).map(record).collect();
        // Ordering: Acquire pairs with the fence of `push` (rule 2).
        fence(Acquire);
        // Ordering: Relaxed; the fence orders it after the words.
        let begun = self.state.begun.load(Relaxed);
        let whole = begun.saturating_sub(capacity).max(oldest).min(end);
        records.drain(..(whole - oldest) as usize);
        RingCopy {
            records,
            lost: whole,
        }
    }
}

/// Allocates records of zeros. The system gives a large ring its pages as they are first written,
/// so a ring that is not full takes no more memory than its records.
fn zeroed<const WORDS: usize>(capacity: usize) -> Box<[[AtomicU64; WORDS]]> {
    /// Whether the atomics are those of `std`, of which zeros are valid values.
    const IS_PLAIN: bool = cfg!(not(any(
        selvedge_loom,
        selvedge_shuttle,
        selvedge_count,
        selvedge_sim,
        selvedge_tsan
    )));
    let layout = Layout::array::<[AtomicU64; WORDS]>(capacity);
    let layout = layout.expect("a ring's records do not exceed the address space");
    if layout.size() == 0 || !IS_PLAIN {
        let slot = |_| std::array::from_fn(|_| AtomicU64::new(0));
        return (0..capacity).map(slot).collect();
    }
    // SAFETY: the size of the layout is not 0.
    let start = unsafe { alloc_zeroed(layout) }.cast::<[AtomicU64; WORDS]>();
    if start.is_null() {
        handle_alloc_error(layout);
    }
    let slots = ptr::slice_from_raw_parts_mut(start, capacity);
    // SAFETY: the global allocator has returned this memory for the layout of these slots. Zeros
    // are valid values of them, and nobody else has the pointer.
    unsafe { Box::from_raw(slots) }
}

impl<const WORDS: usize> RingCopy<WORDS> {
    pub(super) fn empty() -> Self {
        Self {
            records: Vec::new(),
            lost: 0,
        }
    }
}

impl<const WORDS: usize> std::fmt::Debug for Ring<WORDS> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring")
            .field("capacity", &self.slots.len())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(test)]
mod models;
