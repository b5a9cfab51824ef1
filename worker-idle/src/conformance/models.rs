//! The conformance test under loom: on parkers that pass, and on two parkers with faults that only
//! a model finds.
use super::{park, unparks_from_other_threads_end_a_park};
use crate::park::{Park, ThreadPark};
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
    park(ThreadPark::new);
}

/// A parker that spins on its token. With `WHOLE` it takes the token with an exchange, else with a
/// load and a store. With `SHOWS` the token publishes earlier writes.
struct Spins<const WHOLE: bool, const SHOWS: bool>(Arc<Token<SHOWS>>);

struct Token<const SHOWS: bool>(AtomicBool);

impl<const WHOLE: bool, const SHOWS: bool> Spins<WHOLE, SHOWS> {
    fn new() -> Self {
        Self(Arc::new(Token(AtomicBool::new(false))))
    }

    fn take(&self) -> bool {
        if WHOLE {
            return self.0.0.swap(false, Acquire);
        }
        let token = self.0.0.load(Acquire);
        if token {
            self.0.0.store(false, Relaxed);
        }
        token
    }
}

impl<const WHOLE: bool, const SHOWS: bool> Park for Spins<WHOLE, SHOWS> {
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

impl<const SHOWS: bool> Wake for Token<SHOWS> {
    fn wake(self: Arc<Self>) {
        let order = if SHOWS { Release } else { Relaxed };
        self.0.swap(true, order);
    }
}

#[test]
fn token_that_synchronises_passes() {
    sync_shim::Model::new().bound(3).check(|| {
        unparks_from_other_threads_end_a_park(Spins::<true, true>::new);
    });
}

/// The parker's thread may never see the writes of the other threads.
#[test]
fn token_that_does_not_synchronise_fails() {
    model_must_fail("", || {
        unparks_from_other_threads_end_a_park(Spins::<true, false>::new);
    });
}

/// A token that arrives between the load and the store is overwritten.
#[test]
fn token_taken_in_two_steps_fails() {
    model_must_fail("", || {
        unparks_from_other_threads_end_a_park(Spins::<false, true>::new);
    });
}
