//! An array of values that go into a queue or come out of it.
use super::block::BATCH;
use core::{
    fmt,
    iter::FusedIterator,
    mem::{self, MaybeUninit},
    ptr,
};

/// Up to 32 values that [`ValueInjector::pop_n`](crate::ValueInjector::pop_n) took, oldest first.
///
/// The values lie in the batch itself, so a batch allocates nothing. Box large values, to keep the
/// batch small. Dropping the batch drops the values that are left.
pub struct Batch<T> {
    /// The slots from `next` to `end` are initialised.
    values: [MaybeUninit<T>; BATCH],
    next: usize,
    end: usize,
}

impl<T> Batch<T> {
    /// The most values that a batch holds.
    pub const CAPACITY: usize = BATCH;

    pub(super) fn new() -> Self {
        Self {
            values: [const { MaybeUninit::uninit() }; BATCH],
            next: 0,
            end: 0,
        }
    }

    /// Fills a batch from an iterator, until the batch is full or the iterator ends.
    pub(super) fn of(values: &mut impl Iterator<Item = T>) -> Self {
        let mut batch = Self::new();
        while batch.end < BATCH {
            let Some(value) = values.next() else { break };
            batch.values[batch.end].write(value);
            batch.end += 1;
        }
        batch
    }

    /// Returns the memory of a new batch, with room for [`CAPACITY`](Self::CAPACITY) values.
    pub(super) fn room(&mut self) -> *mut T {
        self.values.as_mut_ptr().cast()
    }

    /// Sets the number of values of a new batch.
    ///
    /// # Safety
    /// `len` values are written to the batch's [`room`](Self::room).
    pub(super) unsafe fn set_len(&mut self, len: usize) {
        self.end = len;
    }

    /// Offers the remaining values to `take`, which returns whether it takes them. If `take`
    /// panics, the values are leaked, or `take` owns them.
    pub(super) fn give(&mut self, take: impl FnOnce(*const T, usize) -> bool) -> bool {
        let end = mem::replace(&mut self.end, self.next);
        let left = &self.values[self.next..end];
        let taken = take(left.as_ptr().cast(), left.len());
        if !taken {
            self.end = end;
        }
        taken
    }

    /// Returns the values that are left.
    fn as_slice(&self) -> &[T] {
        let values = &raw const self.values[self.next..self.end];
        // SAFETY: these slots are initialised.
        unsafe { &*(values as *const [T]) }
    }
}

impl<T> Iterator for Batch<T> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        if self.next == self.end {
            return None;
        }
        let value = &self.values[self.next];
        self.next += 1;
        // SAFETY: the slot was initialised, and is not read again.
        Some(unsafe { value.assume_init_read() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }
}

impl<T> ExactSizeIterator for Batch<T> {}

impl<T> FusedIterator for Batch<T> {}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        if mem::needs_drop::<T>() {
            let left = &raw mut self.values[self.next..self.end];
            // SAFETY: the slots are initialised, and not used again.
            unsafe { ptr::drop_in_place(left as *mut [T]) };
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Batch").field(&self.as_slice()).finish()
    }
}
