//! How what a thread has gets to another while it blocks, and back.
//!
//! One word, null or what is lent. Whoever has it offers it; whoever turns the word into another, by one exchange, has it, all of
//! it: the offer releases it, the exchange acquires. The lender may be the one. While it is on offer nobody touches it.
use std::{fmt, marker::PhantomData, ptr};
use sync_shim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire},
    Retire,
};

/// A place where a `T` is handed over: to another thread while this one blocks, or back to it if nobody took it.
///
/// ```
/// let lent = blocking_threads::Lent::new();
/// assert!(lent.offer(Box::new("a worker's queues")).is_none());
/// // Here it blocks. Then:
/// assert!(lent.take().is_some(), "nobody has taken it over");
/// ```
pub struct Lent<T: Send> {
    on_offer: AtomicPtr<T>,
    boxes: PhantomData<fn() -> Box<T>>,
}

impl<T: Send> Lent<T> {
    /// With nothing on offer.
    pub fn new() -> Self {
        Self {
            on_offer: AtomicPtr::new(ptr::null_mut()),
            boxes: PhantomData,
        }
    }

    /// Offers `value`, and gives what was on offer before, if anything was. One read-modify-write.
    pub fn offer(&self, value: Box<T>) -> Option<Box<T>> {
        // Ordering: AcqRel pairs with `take`, and with another offer.
        let before = self.on_offer.swap(Box::into_raw(value), AcqRel);
        // SAFETY: made by `offer` from a box, and taken by this exchange alone.
        (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
    }

    /// Takes what is on offer, if anything is. One read-modify-write.
    pub fn take(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with `offer`.
        let value = self.on_offer.swap(ptr::null_mut(), Acquire);
        // SAFETY: as in `offer`.
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
    }
}

impl<T: Send> Default for Lent<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}

impl<T: Send> Drop for Lent<T> {
    fn drop(&mut self) {
        self.on_offer.retire();
        drop(self.take());
    }
}

#[cfg(test)]
mod models;
