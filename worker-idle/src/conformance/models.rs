//! The conformance test under loom: on parkers that pass, and on two parkers with faults that only
//! a model finds.
use super::unparks_from_other_threads_end_a_park;
use crate::{
    conformance,
    park::{Park, ThreadPark},
};
use alloc::{sync::Arc, task::Wake};
use core::{task::Waker, time::Duration};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    model_must_fail, thread,
};

/// Fails if `unpark` is Relaxed, or if `PARKED` is stored over a token.
#[test]
fn thread_park_passes() {
    conformance::park(ThreadPark::new);
}

/// A parker that spins on its token. It takes the token by a swap if `SWAPS` is true, otherwise by
/// a load and a store. If `RELEASES` is true, an unpark publishes the writes before it.
struct SpinPark<const SWAPS: bool, const RELEASES: bool>(Arc<Token<RELEASES>>);

struct Token<const RELEASES: bool>(AtomicBool);

impl<const SWAPS: bool, const RELEASES: bool> SpinPark<SWAPS, RELEASES> {
    fn new() -> Self {
        Self(Arc::new(Token(AtomicBool::new(false))))
    }

    fn take(&self) -> bool {
        if SWAPS {
            return self.0.0.swap(false, Acquire);
        }
        let token = self.0.0.load(Acquire);
        if token {
            self.0.0.store(false, Relaxed);
        }
        token
    }
}

impl<const SWAPS: bool, const RELEASES: bool> Park for SpinPark<SWAPS, RELEASES> {
    fn park(&mut self) {
        while !self.take() {
            thread::yield_now();
        }
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        Waker::from(self.0.clone())
    }
}

impl<const RELEASES: bool> Wake for Token<RELEASES> {
    fn wake(self: Arc<Self>) {
        let order = if RELEASES { Release } else { Relaxed };
        self.0.swap(true, order);
    }
}

#[test]
fn token_that_synchronises_passes() {
    sync_shim::Model::new().bound(3).check(|| {
        unparks_from_other_threads_end_a_park(SpinPark::<true, true>::new);
    });
}

/// The parker's thread may never see the writes of the other threads.
#[test]
fn token_that_does_not_synchronise_fails() {
    model_must_fail("", || {
        unparks_from_other_threads_end_a_park(SpinPark::<true, false>::new);
    });
}

/// A token that arrives between the load and the store is overwritten.
#[test]
fn token_taken_in_two_steps_fails() {
    model_must_fail("", || {
        unparks_from_other_threads_end_a_park(SpinPark::<false, true>::new);
    });
}
