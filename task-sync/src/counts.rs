//! Checks the tables of costs of the semaphore, the locks and the cell: how many read-modify-writes
//! an operation does.
use crate::{
    Mutex, OnceCell, RwLock, Semaphore,
    testing::{now, poll},
};
use std::{pin::Pin, task::Waker};
use sync_shim::count::counted;

fn cost<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let (output, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    (output, counts.rmws)
}

/// Polls a future that must wait, and returns it with the poll's cost.
fn waits<F: Future>(future: F, waker: &Waker) -> (Pin<Box<F>>, u64) {
    let mut future = Box::pin(future);
    let (polled, rmws) = cost(|| poll(&mut future, waker).is_pending());
    assert!(polled);
    (future, rmws)
}

#[test]
fn semaphore_costs_what_its_table_says() {
    let semaphore = Semaphore::new(2);
    let (permit, rmws) = cost(|| now(semaphore.acquire_many(2)).unwrap());
    assert_eq!(rmws, 1);
    let waker = Waker::noop().clone(); // Its wake is no operation of the shim.
    let (mut next, rmws) = waits(semaphore.acquire(), &waker);
    assert_eq!(rmws, 2, "the lock of the queue, and the flag");
    let (_, rmws) = waits(semaphore.acquire(), &waker);
    assert_eq!(rmws, 1, "the flag is set");
    let (_, rmws) = cost(|| drop(permit));
    assert_eq!(rmws, 2, "the lock of the queue, which is empty then");
    let (permit, rmws) = cost(|| poll(&mut next, &waker));
    assert_eq!(rmws, 0, "it was granted");
    let (_, rmws) = cost(|| drop(permit));
    assert_eq!(rmws, 1);
    assert_eq!(cost(|| drop(semaphore.try_acquire().unwrap())).1, 2);
}

#[test]
fn mutex_costs_what_its_table_says() {
    let mutex = Mutex::new(0);
    let (guard, rmws) = cost(|| now(mutex.lock()));
    assert_eq!(rmws, 1);
    assert_eq!(cost(|| drop(guard)).1, 1);
    let guard = now(mutex.lock());
    let waker = Waker::noop().clone(); // Its wake is no operation of the shim.
    let (mut first, rmws) = waits(mutex.lock(), &waker);
    assert_eq!(
        rmws, 3,
        "one that fails, the lock of the queue, and the flag"
    );
    let (second, _) = waits(mutex.lock(), &waker);
    assert_eq!(cost(|| drop(guard)).1, 3, "wakes the first");
    let (guard, rmws) = cost(|| mutex.try_lock().unwrap());
    assert_eq!(rmws, 2, "one that fails, and one that overtakes");
    assert_eq!(cost(|| drop(guard)).1, 1, "the first is on its way");
    let (guard, rmws) = cost(|| poll(&mut first, &waker));
    assert_eq!(rmws, 1);
    assert!(guard.is_ready());
    drop((guard, second));
}

#[test]
fn rwlock_costs_what_its_table_says() {
    let lock = RwLock::new(0);
    let (guard, rmws) = cost(|| now(lock.read()));
    assert_eq!(rmws, 1);
    assert_eq!(cost(|| drop(guard)).1, 1);
    let (guard, rmws) = cost(|| now(lock.write()));
    assert_eq!(rmws, 1);
    assert_eq!(cost(|| drop(guard)).1, 1);
}

#[test]
fn set_cell_is_read_by_loads_alone() {
    let cell = OnceCell::new();
    assert_eq!(cost(|| cell.set(1)).1, 3);
    assert_eq!(cost(|| cell.get().copied()), (Some(1), 0));
    assert_eq!(cost(|| *now(cell.get_or_init(|| async { 2 }))), (1, 0));
}
