//! Models of the pool: loom explores them, and shuttle runs them under random schedules.
//!
//! ```text
//! cargo xtask loom --crate adopt --model pool
//! cargo xtask shuttle --crate adopt --model pool
//! ```
use super::{Closed, Pool};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
};
use sync_shim::{
    Model,
    atomic::{AtomicBool, Ordering::Relaxed},
    model,
    sync::Arc,
    thread,
};
use task_sync::{Mutex, mpsc};
use worker_idle::park::ThreadPark;

/// A connection. Two owners at a time would lose an addition, and the checker reports the race.
struct Connection(u32);

fn pool(size: usize) -> Arc<Pool<Connection>> {
    Arc::new(Pool::new(size, || Connection(0)))
}

/// Fails if the drop of a lease releases the permit before the connection is back: then the second
/// thread makes another connection.
#[test]
fn one_connection_serves_two_threads_in_turn() {
    model(|| {
        let pool = pool(1);
        let other = pool.clone();
        let user = thread::spawn(move || {
            ThreadPark::block_on(async { other.get().await.ok().unwrap().0 += 1 });
        });
        ThreadPark::block_on(async { pool.get().await.ok().unwrap().0 += 1 });
        user.join().unwrap();
        let uses = ThreadPark::block_on(async { pool.get().await.ok().unwrap().0 });
        assert_eq!(uses, 2);
    });
}

/// A request that gives up beside a return leaves the connection to the next one. Fails if a
/// request that is dropped keeps its permit.
#[test]
fn request_dropped_beside_a_return_loses_nothing() {
    Model::new().bound(2).check(|| {
        let pool = pool(1);
        let other = pool.clone();
        let lease = ThreadPark::block_on(pool.get()).ok().unwrap();
        let gives_up = thread::spawn(move || {
            let mut cx = Context::from_waker(Waker::noop());
            let _ = pin!(other.get()).poll(&mut cx);
        });
        drop(lease);
        assert!(ThreadPark::block_on(pool.get()).is_ok());
        gives_up.join().unwrap();
    });
}

/// `close` returns after the lease's connection is back, and a request beside it is served or
/// refused. Fails if a request is counted after its permit, if the last one does
/// not notify, or if `close` reads the count by a load.
#[test]
fn close_beside_a_request_waits_for_its_connection() {
    Model::new().bound(2).check(|| {
        let pool = pool(1);
        let (other, is_closed) = (pool.clone(), Arc::new(AtomicBool::new(false)));
        let is_over = is_closed.clone();
        let user = thread::spawn(move || match ThreadPark::block_on(other.get()) {
            Ok(mut lease) => {
                lease.0 += 1;
                // Ordering: the pool orders the store below after the lease's end.
                assert!(!is_over.load(Relaxed), "closed beside a lease");
            }
            Err(error) => assert_eq!(error, Closed),
        });
        ThreadPark::block_on(pool.close());
        // Ordering: see above.
        is_closed.store(true, Relaxed);
        user.join().unwrap();
    });
}

/// The model of the README of `task-sync`. Fails if the total changes after it was announced.
#[test]
fn reader_sees_the_total_that_was_announced() {
    model(|| {
        let total = Arc::new(Mutex::new(0));
        let (done, mut end) = mpsc::channel(1);
        let shared = total.clone();
        let reader = thread::spawn(move || {
            end.blocking_recv();
            assert_eq!(*shared.blocking_lock(), 7);
        });
        *total.blocking_lock() += 7;
        done.blocking_send(()).unwrap();
        reader.join().unwrap();
    });
}
