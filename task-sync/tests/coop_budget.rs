//! Checks that an operation that is ready charges the budget of the poll that it is in.
#![cfg(feature = "coop-budget")]
use coop_budget::{Budget, Scope, remaining};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::{Context, Poll, Waker},
};
use task_sync::{Mutex, OnceCell, RwLock, Semaphore, mpsc, watch};

fn poll<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn acquires_and_locks_charge_one_unit_each() {
    let (semaphore, mutex, lock) = (Semaphore::new(9), Mutex::new(1), RwLock::new(1));
    Scope::new(Budget::new(4)).run(|| {
        assert!(poll(semaphore.acquire()).is_ready());
        assert!(poll(mutex.lock()).is_ready());
        assert!(poll(lock.read()).is_ready());
        assert!(poll(lock.write()).is_ready());
        assert_eq!(remaining(), Some(0));
        assert!(poll(semaphore.acquire()).is_pending());
        assert!(poll(mutex.lock()).is_pending());
        assert!(poll(lock.read()).is_pending());
    });
    assert_eq!(semaphore.available_permits(), 9);
    assert!(mutex.try_lock().is_ok() && lock.try_write().is_ok());
}

#[test]
fn waits_and_tries_charge_nothing() {
    let (semaphore, mutex, cell) = (Semaphore::new(1), Mutex::new(1), OnceCell::from(1));
    Scope::new(Budget::new(1)).run(|| {
        let held = (semaphore.try_acquire(), mutex.try_lock());
        assert!(poll(semaphore.acquire()).is_pending());
        assert!(poll(mutex.lock()).is_pending());
        assert!(poll(cell.get_or_init(|| async { 2 })).is_ready());
        assert_eq!(remaining(), Some(1));
        drop(held);
    });
}

/// Fails if the poll of a `blocking_*` method is refused: the thread would wait for ever.
#[test]
fn call_that_blocks_charges_nothing_and_is_not_refused() {
    let (tx, mut rx) = mpsc::channel(1);
    Scope::new(Budget::new(1)).run(|| {
        Scope::unlimited().run(|| tx.blocking_send(1).unwrap());
        assert_eq!(remaining(), Some(1));
        assert!(poll(tx.reserve()).is_pending());
        assert_eq!(poll(rx.recv()), Poll::Ready(Some(1)));
        assert_eq!(remaining(), Some(0));
        Scope::unlimited().run(|| {
            tx.blocking_send(2).unwrap();
            assert_eq!(rx.blocking_recv(), Some(2));
        });
    });
}

/// Fails if a call may block a thread that polls a task, also where it need not wait.
#[test]
fn call_that_would_block_a_poll_panics() {
    let (tx, _rx) = mpsc::channel(1);
    let (mutex, lock) = (Mutex::new(1), RwLock::new(1));
    let calls: [&dyn Fn(); 4] = [
        &|| tx.blocking_send(1).unwrap(),
        &|| *mutex.blocking_lock() += 1,
        &|| *lock.blocking_write() += 1,
        &|| assert_eq!(*lock.blocking_read(), 1),
    ];
    Scope::new(Budget::new(1)).run(|| {
        for call in calls {
            catch_unwind(AssertUnwindSafe(call)).unwrap_err();
        }
    });
    assert_eq!((mutex.into_inner(), lock.into_inner()), (1, 1));
}

#[test]
fn first_look_of_wait_for_is_charged() {
    let (_tx, mut rx) = watch::channel(1);
    Scope::new(Budget::new(1)).run(|| {
        assert!(poll(rx.wait_for(|_| true)).is_ready());
        assert_eq!(remaining(), Some(0));
        assert!(poll(rx.wait_for(|_| true)).is_pending());
    });
}
