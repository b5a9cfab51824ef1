//! Tests of the mutex on one thread.
use super::*;
use crate::testing::{Random, Woken, now, poll, seeds};
use core::{pin::Pin, task::Poll};
use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Waker,
};

type Locking<'a> = Pin<Box<dyn Future<Output = MutexGuard<'a, u32>> + 'a>>;

fn locking(mutex: &Mutex<u32>) -> Locking<'_> {
    Box::pin(mutex.lock())
}

fn ready<'a>(lock: &mut Locking<'a>) -> MutexGuard<'a, u32> {
    match poll(lock, Waker::noop()) {
        Poll::Ready(guard) => guard,
        Poll::Pending => panic!("the lock is not free"),
    }
}

#[test]
fn futures_take_no_more_bytes_than_those_of_tokio() {
    let (ours, tokios) = (Mutex::new(1), tokio::sync::Mutex::new(1));
    assert!(size_of_val(&ours.lock()) <= size_of_val(&tokios.lock()));
    let (ours, tokios) = (Arc::new(ours), Arc::new(tokios));
    assert!(size_of_val(&ours.lock_owned()) <= size_of_val(&tokios.lock_owned()));
    // On 32 bits the lock has the holder's number, and no padding that it would fit in.
    if cfg!(target_pointer_width = "64") {
        assert!(size_of::<Mutex<()>>() <= size_of::<tokio::sync::Mutex<()>>());
    }
}

#[test]
fn waiters_own_the_lock_in_their_order() {
    let mutex = Mutex::new(0);
    let (woken, waker) = Woken::new();
    let held = now(mutex.lock());
    let mut locks: Vec<_> = (0..3).map(|_| locking(&mutex)).collect();
    for lock in &mut locks {
        assert!(poll(lock, &waker).is_pending());
    }
    drop(held);
    for lock in &mut locks {
        assert_eq!(woken.take(), 1, "one is woken at a time");
        let guard = ready(lock);
        assert_eq!(woken.take(), 0);
        drop(guard);
    }
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn woken_waiter_is_overtaken_once() {
    let mutex = Mutex::new(0);
    let (woken, waker) = Woken::new();
    let held = now(mutex.lock());
    let mut first = locking(&mutex);
    let mut second = locking(&mutex);
    assert!(poll(&mut first, &waker).is_pending());
    assert!(poll(&mut second, &waker).is_pending());
    drop(held);
    assert_eq!(woken.take(), 1);
    for _ in 0..5 {
        drop(mutex.try_lock().unwrap());
    }
    assert_eq!(woken.take(), 0, "the first is on its way");
    let held = now(mutex.lock());
    assert!(poll(&mut first, &waker).is_pending(), "is overtaken");
    drop(held);
    assert_eq!(woken.take(), 1);
    assert!(mutex.try_lock().is_err(), "the first owns the lock now");
    assert!(poll(&mut second, &waker).is_pending());
    drop(ready(&mut first));
    drop(ready(&mut second));
}

#[test]
fn dropped_waiters_pass_the_lock_on() {
    for polled in 0..3 {
        let mutex = Mutex::new(0);
        let (woken, waker) = Woken::new();
        let held = now(mutex.lock());
        let mut gone = locking(&mutex);
        let mut next = locking(&mutex);
        assert!(poll(&mut gone, &waker).is_pending());
        assert!(poll(&mut next, &waker).is_pending());
        match polled {
            // Queued.
            0 => drop(gone),
            // Woken.
            1 => {
                drop(held);
                drop(gone);
                assert_eq!(woken.take(), 2);
                drop(ready(&mut next));
                continue;
            }
            // Made the owner.
            _ => {
                drop(held);
                let held = now(mutex.lock());
                assert!(poll(&mut gone, &waker).is_pending());
                drop(held);
                assert_eq!(woken.take(), 2);
                drop(gone);
                assert_eq!(woken.take(), 1);
                drop(ready(&mut next));
                continue;
            }
        }
        drop(held);
        assert_eq!(woken.take(), 1);
        drop(ready(&mut next));
        assert!(mutex.try_lock().is_ok());
    }
}

/// Fails if a hand-over to the overtaken waiter ends the run.
#[test]
fn overtaken_waiter_begins_a_run_of_hand_overs() {
    let mutex = Mutex::new(0);
    let held = now(mutex.lock());
    let mut locks: Vec<_> = (0..3).map(|_| locking(&mutex)).collect();
    for lock in &mut locks {
        assert!(poll(lock, Waker::noop()).is_pending());
    }
    drop(held);
    let overtaking = mutex.try_lock().unwrap();
    assert!(poll(&mut locks[0], Waker::noop()).is_pending());
    drop(overtaking);
    assert!(mutex.try_lock().is_err(), "the first waiter owns the lock");
    drop(ready(&mut locks[0]));
    assert!(mutex.try_lock().is_err(), "the second one, too");
    drop(ready(&mut locks[1]));
    assert!(mutex.try_lock().is_ok(), "the third one is woken");
    drop(ready(&mut locks[2]));
}

/// Fails if the number of tasks that overtook the waiter does not matter.
#[test]
fn waiter_that_many_overtook_is_handed_the_lock_alone() {
    let mutex = Mutex::new(0);
    let held = now(mutex.lock());
    let mut locks: Vec<_> = (0..2).map(|_| locking(&mutex)).collect();
    for lock in &mut locks {
        assert!(poll(lock, Waker::noop()).is_pending());
    }
    drop(held);
    drop(mutex.try_lock().unwrap());
    let overtaking = mutex.try_lock().unwrap();
    assert!(poll(&mut locks[0], Waker::noop()).is_pending());
    drop(overtaking);
    assert!(mutex.try_lock().is_err(), "the first waiter owns the lock");
    drop(ready(&mut locks[0]));
    assert!(mutex.try_lock().is_ok(), "the second one is woken");
    drop(ready(&mut locks[1]));
}

#[test]
fn last_overtaken_waiter_is_dropped_and_the_lock_is_free() {
    let mutex = Mutex::new(0);
    let held = now(mutex.lock());
    let mut gone = locking(&mutex);
    assert!(poll(&mut gone, Waker::noop()).is_pending());
    drop(held);
    let held = now(mutex.lock());
    assert!(poll(&mut gone, Waker::noop()).is_pending());
    drop(gone);
    drop(held);
    drop(now(mutex.lock()));
}

#[test]
fn panic_under_the_lock_unlocks_it() {
    let mutex = Mutex::new(1);
    let panics = catch_unwind(AssertUnwindSafe(|| {
        let mut guard = now(mutex.lock());
        *guard = 2;
        panic!("under the lock");
    }));
    assert!(panics.is_err());
    let panics = catch_unwind(AssertUnwindSafe(|| {
        MutexGuard::map(now(mutex.lock()), |_| -> &mut u8 { panic!("in a map") })
    }));
    assert!(panics.is_err());
    assert_eq!(*mutex.try_lock().unwrap(), 2);
}

#[test]
fn debug_shows_the_data_or_that_it_is_locked() {
    let mutex = Mutex::new(1);
    assert_eq!(format!("{mutex:?}"), "Mutex { data: 1 }");
    let guard = now(mutex.lock());
    assert_eq!(
        format!("{mutex:?} {guard:?} {guard}"),
        "Mutex { data: <locked> } 1 1"
    );
}

#[test]
fn mutex_of_a_trait_object_locks() {
    let mutex: Arc<Mutex<dyn fmt::Debug + Send>> = Arc::new(Mutex::new(5));
    assert_eq!(format!("{:?}", now(mutex.clone().lock_owned())), "5");
    assert_eq!(format!("{:?}", now(mutex.lock())), "5");
}

/// Random polls, drops and unlocks of many requests: there is one owner at a time, each waiter is
/// overtaken once at most, and when all are done the lock is free.
fn random(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let mutex = Mutex::new(0);
    let mut held: Option<MutexGuard<'_, u32>> = None;
    let mut locks: VecDeque<(Locking<'_>, Arc<Woken>, Waker)> = VecDeque::new();
    for _ in 0..operations {
        match random.below(8) {
            0 | 1 if locks.len() < 8 => {
                let (woken, waker) = Woken::new();
                let mut lock = locking(&mutex);
                match poll(&mut lock, &waker) {
                    Poll::Ready(guard) => assert!(held.replace(guard).is_none()),
                    Poll::Pending => locks.push_back((lock, woken, waker)),
                }
            }
            2 => drop(held.take()),
            3 if !locks.is_empty() => {
                let at = random.below(locks.len());
                drop(locks.remove(at));
            }
            4..=6 if !locks.is_empty() => {
                let at = random.below(locks.len());
                let (lock, woken, waker) = &mut locks[at];
                let was_woken = woken.take() > 0;
                if let Poll::Ready(guard) = poll(lock, waker) {
                    assert!(was_woken, "only a woken waiter owns the lock");
                    assert!(held.replace(guard).is_none());
                    locks.remove(at);
                }
            }
            _ => {
                if let Ok(mut guard) = mutex.try_lock() {
                    assert!(held.is_none());
                    *guard += 1;
                }
            }
        }
    }
    drop(held);
    // Each task that is woken is polled, until none is left.
    while !locks.is_empty() {
        let woken = locks.iter().position(|(_, woken, _)| woken.take() > 0);
        let (mut lock, _, waker) = locks.remove(woken.expect("a wake was lost")).unwrap();
        drop(poll(&mut lock, &waker));
    }
    assert!(mutex.try_lock().is_ok());
}

#[test]
fn random_requests_lose_no_wake() {
    seeds(1_000).for_each(|seed| random(seed, 1_000));
}
