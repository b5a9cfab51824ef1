//! How a worker's core gets to another thread, and back.
//!
//! One word, null or what is lent. Whoever has a core offers it; whoever turns the word back into null, by one exchange, has the
//! core, all of it: the offer releases it, the exchange acquires. The lender may be the one. While it is on offer nobody
//! touches it.
use std::{marker::PhantomData, ptr};
use sync_shim::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
    Retire,
};

/// A place where a `T` is handed over.
pub(crate) struct Lent<T: Send> {
    on_offer: AtomicPtr<T>,
    boxes: PhantomData<fn() -> Box<T>>,
}

impl<T: Send> Lent<T> {
    pub(crate) fn new() -> Self {
        Self {
            on_offer: AtomicPtr::new(ptr::null_mut()),
            boxes: PhantomData,
        }
    }

    /// Offers `value`. There is one of it, so nothing else is on offer.
    pub(crate) fn offer(&self, value: Box<T>) {
        // Ordering: Release pairs with `take`.
        let before = self.on_offer.swap(Box::into_raw(value), Release);
        debug_assert!(before.is_null(), "two offers at a time");
    }

    /// Takes what is on offer, if anything is.
    pub(crate) fn take(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with `offer`.
        let value = self.on_offer.swap(ptr::null_mut(), Acquire);
        // SAFETY: made by `offer` from a box, and taken by this exchange alone.
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
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
