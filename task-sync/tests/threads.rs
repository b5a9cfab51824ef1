//! The primitives on real threads: each message arrives once and in order, and each section under a
//! lock is alone.
//!
//! `SELVEDGE_ITEMS=100000000` makes the tests run long. `SELVEDGE_SEED` changes the capacities.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use futures::executor::block_on;
use std::{cell::UnsafeCell, sync::Arc, thread};
use task_sync::{Barrier, Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};

const THREADS: u64 = 2;

fn number(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(otherwise, |n| n.parse().expect("the variable is a number"))
}

/// Returns the number of items of each thread.
fn each() -> u64 {
    number("SELVEDGE_ITEMS", 20_000) / THREADS
}

/// Returns a capacity from 1 to 64.
fn capacity() -> usize {
    1 << (number("SELVEDGE_SEED", 5) % 7)
}

/// Runs `f` on each thread, with its number.
fn on_threads(f: impl Fn(u64) + Sync) {
    thread::scope(|threads| {
        for thread in 0..THREADS {
            let f = &f;
            threads.spawn(move || f(thread));
        }
    });
}

/// The next number that each sender's message must have.
#[derive(Default)]
struct InOrder([u64; THREADS as usize]);

impl InOrder {
    fn add(&mut self, (sender, number): (u64, u64)) {
        let next = &mut self.0[sender as usize];
        assert_eq!(number, *next, "of sender {sender}");
        *next += 1;
    }
}

#[test]
fn mpsc_messages_arrive_once_and_in_order() {
    let each = each() / 2;
    let (bounded, mut rx) = mpsc::channel(capacity());
    let (unbounded, mut rest) = mpsc::unbounded_channel();
    thread::scope(|threads| {
        for thread in 0..THREADS {
            let (bounded, unbounded) = (bounded.clone(), unbounded.clone());
            threads.spawn(move || {
                for n in 0..each {
                    block_on(bounded.send((thread, n))).unwrap();
                    unbounded.send((thread, n)).unwrap();
                }
            });
        }
        drop((bounded, unbounded));
        let (mut seen, mut seen_too) = (InOrder::default(), InOrder::default());
        let mut buffer = Vec::new();
        block_on(async {
            while rx.recv_many(&mut buffer, 16).await > 0 {
                buffer.drain(..).for_each(|message| seen.add(message));
                // So that the unbounded channel stays short.
                while let Ok(message) = rest.try_recv() {
                    seen_too.add(message);
                }
            }
            while let Some(message) = rest.recv().await {
                seen_too.add(message);
            }
        });
        assert_eq!(seen.0, [each; THREADS as usize]);
        assert_eq!(seen_too.0, [each; THREADS as usize]);
    });
}

#[test]
fn oneshot_values_arrive_once() {
    let each = each();
    let (tx, mut rx) = mpsc::channel(8);
    thread::scope(|threads| {
        threads.spawn(move || {
            for n in 0..each {
                let (answer, answered) = oneshot::channel();
                tx.blocking_send((n, answer)).unwrap();
                assert_eq!(block_on(answered), Ok(n));
            }
        });
        while let Some((n, answer)) = rx.blocking_recv() {
            answer.send(n).unwrap();
        }
    });
}

/// A number that only the owner of a lock changes.
struct Number(UnsafeCell<u64>);

// SAFETY: the tests check that a lock protects it. A sanitizer finds a race.
unsafe impl Sync for Number {}

impl Number {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    /// Adds one. The caller has a lock.
    fn add(&self) {
        // SAFETY: as above.
        unsafe { *self.0.get() += 1 };
    }
}

#[test]
fn sections_under_each_lock_are_alone() {
    let each = each() / 3;
    let (mutex, mut lock) = (Mutex::new(0), RwLock::with_max_readers(0, 3));
    let (semaphore, mut number) = (Semaphore::new(3), Number::new());
    on_threads(|_| {
        for n in 0..each {
            *block_on(mutex.lock()) += 1;
            match n % 2 {
                0 => *block_on(lock.write()) += 1,
                _ => assert!(*block_on(lock.read()) > 0),
            }
            drop(block_on(semaphore.acquire()).unwrap());
            let _all = block_on(semaphore.acquire_many(3)).unwrap();
            number.add();
        }
    });
    assert_eq!(mutex.into_inner(), THREADS * each);
    assert_eq!(*lock.get_mut(), THREADS * each.div_ceil(2));
    assert_eq!(*number.0.get_mut(), THREADS * each);
    assert_eq!(semaphore.available_permits(), 3);
}

#[test]
fn broadcast_values_are_got_or_missed_in_order() {
    let each = each();
    let (tx, _) = broadcast::channel::<Arc<u64>>(capacity());
    let receivers = [(); THREADS as usize].map(|()| tx.subscribe());
    thread::scope(|threads| {
        for mut rx in receivers {
            threads.spawn(move || {
                let mut next = 0;
                loop {
                    match block_on(rx.recv()) {
                        Ok(value) => assert_eq!(*value, next),
                        Err(broadcast::error::RecvError::Lagged(missed)) => {
                            next += missed;
                            continue;
                        }
                        Err(broadcast::error::RecvError::Closed) => break,
                    }
                    next += 1;
                }
                assert_eq!(next, each);
            });
        }
        (0..each).for_each(|n| assert!(tx.send(Arc::new(n)).is_ok()));
        drop(tx);
    });
}

#[test]
fn watch_values_grow_to_the_last_one() {
    let each = each();
    let (tx, rx) = watch::channel(0);
    thread::scope(|threads| {
        for _ in 0..THREADS {
            let mut rx = rx.clone();
            threads.spawn(move || {
                let mut last = 0;
                while block_on(rx.changed()).is_ok() {
                    let value = *rx.borrow_and_update();
                    assert!(last < value);
                    last = value;
                }
                assert_eq!(last, each);
            });
        }
        drop(rx);
        (1..=each).for_each(|n| assert!(tx.send(n).is_ok()));
        drop(tx);
    });
}

#[test]
fn notified_threads_meet_in_turns() {
    let each = each() / 4;
    let (turns, barrier, number) = (
        [Notify::new(), Notify::new()],
        Barrier::new(2),
        Number::new(),
    );
    turns[0].notify_one();
    on_threads(|thread| {
        for n in 0..each {
            block_on(turns[thread as usize % 2].notified());
            number.add();
            turns[(thread as usize + 1) % 2].notify_one();
            if n % 64 == 0 {
                block_on(barrier.wait());
            }
        }
    });
    assert_eq!(number.0.into_inner(), THREADS * each);
}
