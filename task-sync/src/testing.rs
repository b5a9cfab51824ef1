//! Tools of the tests and models: a waker that counts, one poll of a future, and random numbers.
#![cfg_attr(any(selvedge_loom, selvedge_shuttle), allow(dead_code))]
use core::{
    pin::Pin,
    task::{Context, Poll, Waker},
};
use std::boxed::Box;
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
    sync::Arc,
};
use waker_vtable::{WakeRef, from_arc};

/// A task that counts its wakes.
pub(crate) struct Woken(AtomicUsize);

impl Woken {
    pub(crate) fn new() -> (Arc<Self>, Waker) {
        let this = Arc::new(Self(AtomicUsize::new(0)));
        let waker = from_arc(this.clone());
        (this, waker)
    }

    /// Returns the number of wakes.
    pub(crate) fn times(&self) -> usize {
        // Ordering: Acquire pairs with `wake`, as a poll is ordered after the wake that caused it.
        self.0.load(Acquire)
    }

    /// Returns the number of wakes since the last call.
    pub(crate) fn take(&self) -> usize {
        // Ordering: as in `times`.
        self.0.swap(0, Acquire)
    }
}

impl WakeRef for Woken {
    fn wake(&self) {
        // Ordering: Release pairs with `times` and `take`.
        self.0.fetch_add(1, Release);
    }
}

/// Polls a future once.
pub(crate) fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>, waker: &Waker) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(waker))
}

/// Polls a future once, and asserts that it is ready.
pub(crate) fn now<F: Future>(future: F) -> F::Output {
    match poll(&mut Box::pin(future), Waker::noop()) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future waits"),
    }
}

/// Returns the seeds of the rounds of a test of random operations. `SELVEDGE_ITEMS` replaces the
/// usual number of operations in all rounds, 100,000, and `SELVEDGE_SEED` the first seed.
pub(crate) fn seeds(operations_in_a_round: usize) -> impl Iterator<Item = u64> {
    let number = |name, usual: u64| match std::env::var(name) {
        Ok(said) => said.parse().expect("the variable is a number"),
        Err(_) => usual,
    };
    let rounds = number("SELVEDGE_ITEMS", 100_000).div_ceil(operations_in_a_round as u64);
    let first = number("SELVEDGE_SEED", 0);
    (0..rounds).map(move |round| first.wrapping_add(round))
}

/// Random numbers by a seed (xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }
}
