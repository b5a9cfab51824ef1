//! A waker for tests and models that counts its wakes.
use core::task::Waker;
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
    sync::Arc,
};
use waker_vtable::{WakeRef, from_arc};

/// The count of a waker's wakes.
pub(crate) struct Woken(AtomicUsize);

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let this = Arc::new(Self(AtomicUsize::new(0)));
        let waker = from_arc(this.clone());
        (this, waker)
    }

    pub(crate) fn times(&self) -> usize {
        // Ordering: Acquire pairs with `wake`, as a poll is ordered after the wake that caused it.
        self.0.load(Acquire)
    }
}

impl WakeRef for Woken {
    fn wake(&self) {
        // Ordering: Release pairs with `times`.
        self.0.fetch_add(1, Release);
    }
}
