//! The conformance test under loom: on parkers that pass, and on two parkers with faults that only
//! a model finds.
use super::{park, unparks_from_other_threads_end_a_park};
use crate::park::{Park, ThreadPark, Unpark};
use core::time::Duration;
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    model_must_fail,
    sync::Arc,
    thread,
};

/// Fails if `unpark` is Relaxed, or if `PARKED` is stored over a token.
#[test]
fn thread_park_passes() {
    park(ThreadPark::new);
}

/// A `ThreadPark` whose unparker is a waker.
struct ByWaker(ThreadPark);

#[derive(Clone)]
struct Wakes(core::task::Waker);

impl Park for ByWaker {
    type Unpark = Wakes;

    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn unparker(&self) -> Wakes {
        Wakes(crate::park::waker(self.0.unparker()))
    }
}

impl Unpark for Wakes {
    fn unpark(&self) {
        self.0.wake_by_ref();
    }
}

/// Fails if `wake_by_ref` does nothing, or unparks only from the second time on.
#[test]
fn parker_unparked_by_its_waker_passes() {
    park(|| ByWaker(ThreadPark::new()));
}

/// A parker that spins on its token. With `WHOLE` it takes the token with an exchange, else with a
/// load and a store. With `SHOWS` the token publishes earlier writes.
struct Spins<const WHOLE: bool, const SHOWS: bool>(Arc<AtomicBool>);

#[derive(Clone)]
struct Token<const SHOWS: bool>(Arc<AtomicBool>);

impl<const WHOLE: bool, const SHOWS: bool> Spins<WHOLE, SHOWS> {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    fn take(&self) -> bool {
        if WHOLE {
            return self.0.swap(false, Acquire);
        }
        let token = self.0.load(Acquire);
        if token {
            self.0.store(false, Relaxed);
        }
        token
    }
}

impl<const WHOLE: bool, const SHOWS: bool> Park for Spins<WHOLE, SHOWS> {
    type Unpark = Token<SHOWS>;

    fn park(&mut self) {
        while !self.take() {
            thread::yield_now();
        }
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn unparker(&self) -> Token<SHOWS> {
        Token(self.0.clone())
    }
}

impl<const SHOWS: bool> Unpark for Token<SHOWS> {
    fn unpark(&self) {
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
