//! Tests of the lock on one thread.
use super::*;
use crate::{
    testing::{Random, Woken, now, poll, seeds},
    waiters::BATCH,
};
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
    // On 32 bits the lock has the holder's number, and no padding that it would fit in.
    if cfg!(target_pointer_width = "64") {
        assert!(size_of::<RwLock<()>>() <= size_of::<tokio::sync::RwLock<()>>());
    }
    type TheirRead = tokio::sync::RwLockReadGuard<'static, u32>;
    type TheirWrite = tokio::sync::RwLockWriteGuard<'static, u32>;
    assert!(size_of::<RwLockReadGuard<'static, u32>>() <= size_of::<TheirRead>());
    assert!(size_of::<RwLockWriteGuard<'static, u32>>() <= size_of::<TheirWrite>());
}

/// A reader overtakes a writer that waits, until another reader leaves.
#[test]
fn readers_overtake_a_writer_until_one_leaves() {
    let lock = RwLock::new(0);
    let (woken, waker) = Woken::new();
    let reader = now(lock.read());
    let mut writes = Box::pin(lock.write());
    assert!(poll(&mut writes, &waker).is_pending());
    let another = now(lock.read());
    drop(reader);
    assert!(lock.try_read().is_err(), "the writer is overtaken no more");
    let mut reads = Box::pin(lock.read());
    assert!(poll(&mut reads, &waker).is_pending());
    assert_eq!(woken.take(), 0);
    drop(another);
    assert_eq!(woken.take(), 1);
    assert!(lock.try_read().is_err() && lock.try_write().is_err());
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

/// The last reader wakes the writer, but does not let it in. A writer that was overtaken once is
/// the next one in.
#[test]
fn woken_writer_is_overtaken_once() {
    let lock = RwLock::new(0);
    let (woken, waker) = Woken::new();
    let reader = now(lock.read());
    let mut writes = Box::pin(lock.write());
    assert!(poll(&mut writes, &waker).is_pending());
    drop(reader);
    assert_eq!(woken.take(), 1);
    let readers = [now(lock.read()), now(lock.read())];
    drop(now(lock.read()));
    assert_eq!(woken.take(), 0, "it is on its way");
    assert!(poll(&mut writes, &waker).is_pending());
    assert!(lock.try_read().is_err());
    drop(readers);
    assert_eq!(woken.take(), 1);
    assert!(lock.try_read().is_err() && lock.try_write().is_err());
    assert!(poll(&mut writes, &waker).is_ready());
    assert!(lock.try_write().is_ok());
}

/// A writer wakes all readers that are first. Another writer overtakes them; then they are let in.
#[test]
fn woken_readers_are_overtaken_once() {
    let lock = RwLock::new(0);
    let writer = now(lock.write());
    let (mut waits, woken): (Vec<_>, Vec<_>) = (0..40)
        .map(|_| {
            let (woken, waker) = Woken::new();
            let mut reads = Box::pin(lock.read());
            assert!(poll(&mut reads, &waker).is_pending());
            ((reads, waker), woken)
        })
        .unzip();
    let times = || woken.iter().map(|woken| woken.take()).sum::<usize>();
    drop(writer);
    assert_eq!(times(), BATCH, "a group is a batch");
    let writer = now(lock.write());
    for (reads, waker) in &mut waits[..BATCH] {
        assert!(poll(reads, waker).is_pending());
    }
    drop(writer);
    assert!(lock.try_write().is_err(), "a reader was let in");
    assert_eq!(times(), BATCH);
    for (reads, waker) in &mut waits[..BATCH] {
        assert!(poll(reads, waker).is_ready());
    }
    assert_eq!(times(), 40 - BATCH);
}

/// A reader that was woken at the limit, and overtaken, is the next one in, although others stay.
#[test]
fn reader_that_is_overtaken_at_the_limit_is_next() {
    let lock = RwLock::with_max_readers(0, 2);
    let (woken, waker) = Woken::new();
    let [one, two] = [now(lock.read()), now(lock.read())];
    let mut reads = Box::pin(lock.read());
    assert!(poll(&mut reads, &waker).is_pending());
    drop(one);
    assert_eq!(woken.take(), 1);
    let three = now(lock.read());
    assert!(poll(&mut reads, &waker).is_pending());
    drop(two);
    assert_eq!(woken.take(), 1);
    assert!(lock.try_read().is_err(), "it is in");
    assert!(poll(&mut reads, &waker).is_ready());
    drop(three);
    assert!(lock.try_write().is_ok());
}

#[test]
fn dropped_writer_lets_readers_in() {
    let lock = RwLock::new(0);
    let (woken, waker) = Woken::new();
    let readers = [now(lock.read()), now(lock.read())];
    let mut writes = Box::pin(lock.write());
    assert!(poll(&mut writes, &waker).is_pending());
    let [reader, another] = readers;
    drop(another);
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

/// A request, and the wakes that it has not been polled for.
struct Wait<'a> {
    request: Pin<Box<dyn Future<Output = Guard<'a>> + 'a>>,
    is_writer: bool,
    was_polled: bool,
    woken: Arc<Woken>,
    waker: Waker,
}

impl<'a> Wait<'a> {
    fn new(is_writer: bool, request: impl Future<Output = Guard<'a>> + 'a) -> Self {
        let (woken, waker) = Woken::new();
        Self {
            request: Box::pin(request),
            is_writer,
            was_polled: false,
            woken,
            waker,
        }
    }
}

const MOST: usize = 3;

/// Asserts that a waiter is woken, or is in the lock already, if the lock admits each waiter.
fn assert_woken(waits: &[Wait<'_>], held: &[Guard<'_>]) {
    let mut waits = waits.iter().filter(|wait| wait.was_polled).peekable();
    let admits_all = match held {
        [] => true,
        [Guard::Write(_), ..] => false,
        readers => readers.len() < MOST && waits.clone().all(|wait| !wait.is_writer),
    };
    if admits_all && waits.peek().is_some() {
        assert!(waits.any(|wait| wait.woken.times() > 0), "a wake is lost");
    }
}

/// Random requests, drops and downgrades: a writer is alone, no wake is lost, and at the end the
/// lock is free.
fn random(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let lock = RwLock::with_max_readers(0, MOST as u32);
    let mut waits: Vec<Wait<'_>> = Vec::new();
    let mut held: Vec<Guard<'_>> = Vec::new();
    for _ in 0..operations {
        match random.below(8) {
            0 => waits.push(Wait::new(true, async { Guard::Write(lock.write().await) })),
            1 | 2 => waits.push(Wait::new(false, async {
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
                let wait = &mut waits[at];
                wait.was_polled = true;
                wait.woken.take();
                if let Poll::Ready(mut guard) = poll(&mut wait.request, &wait.waker) {
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
        assert!(held.len() <= MOST);
        assert_woken(&waits, &held);
    }
    drop(held);
    drop(waits);
    assert!(lock.try_write().is_ok());
}

#[test]
fn random_requests_lose_no_wake() {
    seeds(2_000).for_each(|seed| random(seed, 2_000));
}
