//! Models of acquirers against releasers: no permit is lost or doubled, and no wake is lost.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::{blocking::block_on, wait::Wait};
use core::{pin::pin, task::Context};
use std::sync::Arc;
use sync_shim::{Model, cell::UnsafeCell, model, thread};

/// A semaphore and a value that the permits protect: a holder of all permits writes it.
struct Protected {
    semaphore: RawSemaphore,
    value: UnsafeCell<u32>,
}

// SAFETY: the models check that the accesses are in order.
unsafe impl Sync for Protected {}

impl Protected {
    fn new(permits: usize) -> Arc<Self> {
        let (semaphore, value) = (RawSemaphore::new(permits), UnsafeCell::new(0));
        Arc::new(Self { semaphore, value })
    }

    fn add(&self) {
        self.value.with_mut(|value| {
            // SAFETY: the caller has all permits.
            unsafe { *value += 1 };
        });
    }

    fn acquire(&self, permits: u32) -> impl Future<Output = Result<(), Closed>> {
        let of = &self.semaphore;
        Wait::new(Permits { of, permits }, |_, result| result)
    }
}

/// Two threads take the only permit in turns. Fails if an Acquire or a Release of `try_acquire`,
/// `acquire_or_push` or `release` is Relaxed, or if `grant_word` is not called.
#[test]
fn two_threads_with_one_permit_take_turns() {
    model(|| {
        let shared = Protected::new(1);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                block_on(shared.acquire(1)).unwrap();
                shared.add();
                shared.semaphore.release(1);
            })
        };
        block_on(shared.acquire(1)).unwrap();
        shared.add();
        shared.semaphore.release(1);
        other.join().unwrap();
        assert_eq!(shared.semaphore.available(), 1);
    });
}

/// A request for two waits while permits come one by one. Fails if `acquire_or_push` sets
/// `WAITERS` without taking the permits, or if an Acquire or a Release is Relaxed on the way of
/// either permit.
#[test]
fn big_request_gets_permits_that_come_one_by_one() {
    model(|| {
        let shared = Protected::new(0);
        let releaser = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.semaphore.release(1);
                shared.semaphore.release(1);
            })
        };
        block_on(shared.acquire(2)).unwrap();
        releaser.join().unwrap();
        assert_eq!(shared.semaphore.available(), 0);
    });
}

/// A wait is dropped while a permit is released, and another wait is behind it. Fails if
/// `cancel` does not grant what the waiter had, or does not clear `WAITERS`.
#[test]
fn cancel_against_a_release_loses_no_permit() {
    model(|| {
        let shared = Protected::new(0);
        let releaser = {
            let shared = shared.clone();
            thread::spawn(move || shared.semaphore.release(1))
        };
        {
            let mut gone = pin!(shared.acquire(1));
            let mut cx = Context::from_waker(Waker::noop());
            if gone.as_mut().poll(&mut cx).is_ready() {
                shared.semaphore.release(1);
            }
        }
        block_on(shared.acquire(1)).unwrap();
        shared.semaphore.release(1);
        releaser.join().unwrap();
        assert_eq!(shared.semaphore.available(), 1);
        assert!(
            shared.semaphore.try_acquire(1).is_ok(),
            "the queue is empty"
        );
    });
}

/// A request waits while another thread closes the semaphore and releases a permit: the request
/// ends either way. Fails if `close` does not clear `WAITERS`, or wakes nobody.
#[test]
fn close_against_a_wait_ends_it() {
    model(|| {
        let shared = Protected::new(1);
        let closer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.semaphore.release(1);
                shared.semaphore.close();
            })
        };
        let result = block_on(shared.acquire(3));
        assert_eq!(result, Err(Closed));
        closer.join().unwrap();
        assert_eq!(shared.semaphore.available(), 2);
        assert_eq!(shared.semaphore.try_acquire(1), Err(Refused::Closed));
    });
}

/// A permit is forgotten by one thread or taken by another. Fails if the exchange of `forget` is a
/// store.
#[test]
fn forget_against_an_acquire_takes_the_permit_once() {
    model(|| {
        let shared = Protected::new(1);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.semaphore.forget(1))
        };
        let taken = shared.semaphore.try_acquire(1).is_ok();
        assert!(taken ^ (other.join().unwrap() == 1));
        assert_eq!(shared.semaphore.available(), 0);
    });
}

/// A value, and a semaphore without permits: one thread writes the value and releases a permit.
fn write_and_release(shared: &Protected) {
    shared.add();
    shared.semaphore.release(1);
}

/// Asserts that the value was written.
fn check(shared: &Protected) {
    let value = shared.value.with(|value| {
        // SAFETY: the model checks that the write comes before.
        unsafe { *value }
    });
    assert_eq!(value, 1);
}

/// A permit goes to a waiter that is dropped, and from there to another thread. Fails if the
/// exchange of `settle` is Relaxed.
#[test]
fn permit_of_a_dropped_wait_is_ordered() {
    model(|| {
        let shared = Protected::new(0);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                if shared.semaphore.try_acquire(1).is_ok() {
                    check(&shared);
                }
            })
        };
        {
            let mut waits = pin!(shared.acquire(2));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(waits.as_mut().poll(&mut cx).is_pending());
            write_and_release(&shared);
        }
        other.join().unwrap();
    });
}

/// Reads the value if `look` finds the permit.
fn look_at_a_permit(look: impl Fn(&RawSemaphore) -> usize) {
    let shared = Protected::new(0);
    let other = {
        let shared = shared.clone();
        thread::spawn(move || write_and_release(&shared))
    };
    if look(&shared.semaphore) == 1 {
        check(&shared);
    }
    other.join().unwrap();
}

/// A thread sees that a permit is there. Fails if the load of `available` is Relaxed.
#[test]
fn permit_that_is_seen_is_ordered() {
    model(|| look_at_a_permit(RawSemaphore::available));
}

/// A thread takes a permit for ever. Fails if the exchange of `forget` is Relaxed.
#[test]
fn permit_that_is_forgotten_is_ordered() {
    model(|| look_at_a_permit(|semaphore| semaphore.forget(1)));
}

/// Two threads write and release at the moment that a request for two queues: one of them may grant
/// the permits of both. Fails if the fetch_and of `grant_word` is Relaxed.
#[test]
fn permits_of_two_threads_are_ordered() {
    Model::new().bound(3).check(|| {
        let (one, two) = (Protected::new(0), Protected::new(0));
        let first = {
            let one = one.clone();
            thread::spawn(move || write_and_release(&one))
        };
        let second = {
            let (one, two) = (one.clone(), two.clone());
            thread::spawn(move || {
                two.add();
                one.semaphore.release(1);
            })
        };
        block_on(one.acquire(2)).unwrap();
        check(&one);
        check(&two);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// Two threads add permits, of which none is lost, and a third one that acquires them sees what the
/// others did before.
///
/// Fails if the exchange of `add` is a store, or Relaxed.
#[test]
fn permits_that_two_threads_add_are_all_there_and_ordered() {
    use sync_shim::atomic::{AtomicUsize, Ordering::Relaxed};
    Model::new().bound(3).check(|| {
        let (semaphore, done) = (
            Arc::new(RawSemaphore::new(0)),
            Arc::new(AtomicUsize::new(0)),
        );
        let adds = [(); 2].map(|()| {
            let (semaphore, done) = (semaphore.clone(), done.clone());
            thread::spawn(move || {
                // Ordering: Relaxed, the semaphore must order it.
                done.fetch_add(1, Relaxed);
                assert!(semaphore.add(1));
            })
        });
        if semaphore.try_acquire(2).is_ok() {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 2);
            semaphore.release(2);
        }
        for add in adds {
            add.join().unwrap();
        }
        assert_eq!(semaphore.available(), 2);
    });
}

/// A thread writes and closes the semaphore. Another one that is refused sees the write: whether it
/// tries, or waits.
///
/// Fails if the load of `refused_by_close` is Relaxed, or the exchange of `close`.
#[test]
fn refusal_shows_what_came_before_the_close() {
    for waits in [false, true] {
        model(move || {
            let shared = Protected::new(usize::from(!waits));
            let closer = {
                let shared = shared.clone();
                thread::spawn(move || {
                    shared.add();
                    shared.semaphore.close();
                })
            };
            let is_refused = match waits {
                true => block_on(shared.acquire(1)) == Err(Closed),
                false => shared.semaphore.try_acquire(1) == Err(Refused::Closed),
            };
            if is_refused {
                check(&shared);
            }
            closer.join().unwrap();
        });
    }
}
