//! Tests of the lock on one thread.
use super::*;
use crate::testing::{Random, Woken, now, poll, seeds};
use core::{pin::Pin, task::Poll};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

#[test]
fn futures_take_no_more_bytes_than_those_of_tokio() {
    let (ours, tokios) = (RwLock::new(1), tokio::sync::RwLock::new(1));
    assert!(size_of_val(&ours.read()) <= size_of_val(&tokios.read()));
    assert!(size_of_val(&ours.write()) <= size_of_val(&tokios.write()));
    let (ours, tokios) = (Arc::new(ours), Arc::new(tokios));
    let (theirs, theirs_too) = (tokios.clone().read_owned(), tokios.write_owned());
    assert!(size_of_val(&ours.clone().read_owned()) <= size_of_val(&theirs));
    assert!(size_of_val(&ours.write_owned()) <= size_of_val(&theirs_too));
    assert!(size_of::<RwLock<()>>() <= size_of::<tokio::sync::RwLock<()>>());
    type TheirRead = tokio::sync::RwLockReadGuard<'static, u32>;
    type TheirWrite = tokio::sync::RwLockWriteGuard<'static, u32>;
    assert!(size_of::<RwLockReadGuard<'static, u32>>() <= size_of::<TheirRead>());
    assert!(size_of::<RwLockWriteGuard<'static, u32>>() <= size_of::<TheirWrite>());
}

#[test]
fn reader_behind_a_waiting_writer_waits() {
    let lock = RwLock::new(0);
    let (woken, waker) = Woken::new();
    let reader = now(lock.read());
    let mut writes = Box::pin(lock.write());
    assert!(poll(&mut writes, &waker).is_pending());
    let mut reads = Box::pin(lock.read());
    assert!(poll(&mut reads, &waker).is_pending());
    assert!(lock.try_read().is_err());
    drop(reader);
    assert_eq!(woken.take(), 1);
    assert!(poll(&mut reads, &waker).is_pending());
    let Poll::Ready(mut writer) = poll(&mut writes, &waker) else {
        panic!("the writer is first")
    };
    *writer += 1;
    drop(writer);
    assert_eq!(woken.take(), 1);
    let Poll::Ready(reader) = poll(&mut reads, &waker) else {
        panic!("the reader is next")
    };
    assert_eq!(*reader, 1);
}

#[test]
fn dropped_writer_lets_readers_in() {
    let lock = RwLock::new(0);
    let (woken, waker) = Woken::new();
    let reader = now(lock.read());
    let mut writes = Box::pin(lock.write());
    assert!(poll(&mut writes, &waker).is_pending());
    let mut reads: Vec<_> = (0..3).map(|_| Box::pin(lock.read())).collect();
    for read in &mut reads {
        assert!(poll(read, &waker).is_pending());
    }
    drop(writes);
    assert_eq!(woken.take(), 3);
    drop(reads);
    drop(reader);
    assert!(lock.try_write().is_ok());
}

#[test]
fn downgrade_wakes_the_readers_before_a_writer() {
    let lock = RwLock::new(0);
    let (woken, waker) = Woken::new();
    let writer = now(lock.write());
    let mut first = Box::pin(lock.read());
    let mut second = Box::pin(lock.write());
    let mut third = Box::pin(lock.read());
    assert!(poll(&mut first, &waker).is_pending());
    assert!(poll(&mut second, &waker).is_pending());
    assert!(poll(&mut third, &waker).is_pending());
    let reader = writer.downgrade();
    assert_eq!(woken.take(), 1);
    assert!(poll(&mut first, &waker).is_ready());
    assert!(poll(&mut third, &waker).is_pending());
    drop(reader);
    assert_eq!(woken.take(), 1, "both readers have left");
    assert!(poll(&mut second, &waker).is_ready());
    assert!(poll(&mut third, &waker).is_ready());
}

#[test]
fn panic_under_the_lock_unlocks_it() {
    let lock = RwLock::new(1);
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = now(lock.write());
        *guard = 2;
        panic!("under the lock");
    }));
    assert!(panics.is_err());
    let panics = catch_unwind(AssertUnwindSafe(|| {
        RwLockReadGuard::map(now(lock.read()), |_| -> &u8 { panic!("in a map") })
    }));
    assert!(panics.is_err());
    assert_eq!(*lock.try_write().unwrap(), 2);
}

#[test]
fn debug_shows_the_data_or_that_it_is_locked() {
    let lock = RwLock::new(1);
    let reader = now(lock.read());
    assert_eq!(
        format!("{lock:?} {reader:?} {reader}"),
        "RwLock { data: 1 } 1 1"
    );
    drop(reader);
    let writer = now(lock.write());
    assert_eq!(
        format!("{lock:?} {writer:?}"),
        "RwLock { data: <locked> } 1"
    );
}

#[test]
fn too_many_or_no_readers_panic() {
    assert!(catch_unwind(|| RwLock::with_max_readers(0, 0)).is_err());
    assert!(catch_unwind(|| RwLock::with_max_readers(0, MAX_READERS + 1)).is_err());
}

#[test]
fn lock_of_a_trait_object_reads() {
    let lock: Arc<RwLock<dyn fmt::Debug + Send + Sync>> = Arc::new(RwLock::new(5));
    assert_eq!(format!("{:?}", now(lock.clone().read_owned())), "5");
    assert_eq!(format!("{:?}", now(lock.clone().write_owned())), "5");
    assert_eq!(format!("{:?}", now(lock.read())), "5");
}

/// A guard, of either kind.
enum Guard<'a> {
    Read { _guard: RwLockReadGuard<'a, u32> },
    Write(RwLockWriteGuard<'a, u32>),
}

type Wait<'a> = Pin<Box<dyn Future<Output = Guard<'a>> + 'a>>;

/// Random requests, drops and downgrades: a writer is alone, and at the end the lock is free.
fn random(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let lock = RwLock::with_max_readers(0, 3);
    let mut waits: Vec<Wait<'_>> = Vec::new();
    let mut held: Vec<Guard<'_>> = Vec::new();
    for _ in 0..operations {
        match random.below(8) {
            0 => waits.push(Box::pin(async { Guard::Write(lock.write().await) })),
            1 | 2 => waits.push(Box::pin(async {
                let _guard = lock.read().await;
                Guard::Read { _guard }
            })),
            3 if !waits.is_empty() => drop(waits.swap_remove(random.below(waits.len()))),
            4 if !held.is_empty() => drop(held.swap_remove(random.below(held.len()))),
            5 if !held.is_empty() => {
                let guard = match held.swap_remove(random.below(held.len())) {
                    Guard::Write(guard) => guard.downgrade(),
                    Guard::Read { _guard } => _guard,
                };
                held.push(Guard::Read { _guard: guard });
            }
            _ if !waits.is_empty() => {
                let at = random.below(waits.len());
                if let Poll::Ready(mut guard) = poll(&mut waits[at], Waker::noop()) {
                    drop(waits.swap_remove(at));
                    if let Guard::Write(guard) = &mut guard {
                        **guard += 1;
                    }
                    held.push(guard);
                }
            }
            _ => {}
        }
        let writers = held.iter().filter(|guard| matches!(guard, Guard::Write(_)));
        let writers = writers.count();
        assert!(writers == 0 || held.len() == 1);
        assert!(held.len() <= 3);
    }
    drop(held);
    drop(waits);
    assert!(lock.try_write().is_ok());
}

#[test]
fn random_requests_leave_a_writer_alone() {
    seeds(2_000).for_each(|seed| random(seed, 2_000));
}
