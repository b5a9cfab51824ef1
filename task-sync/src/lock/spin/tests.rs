//! Tests of a wait for the lock.
use super::{Lock, LockGuard, YIELDS, wait};
use core::{marker::PhantomData, time::Duration};
use std::{sync::mpsc, thread, time::Instant};

/// The holder keeps the lock until the other thread has slept a hundred times. That thread then
/// gets it. Fails if the thread only yields after the first looks, or if it gives up.
#[test]
fn long_wait_sleeps_after_each_look_and_gets_the_lock() {
    const SLEEPS: u32 = 100;

    let lock = &Lock::new(1);
    let (slept, has_slept) = mpsc::channel();
    thread::scope(|scope| {
        let mut guard = lock.lock();
        scope.spawn(move || {
            let mut first_sleep = None;
            lock.lock_with(|looks| {
                let start =
                    (looks >= YIELDS).then(|| *first_sleep.get_or_insert_with(Instant::now));
                wait(looks);
                let Some(start) = start else { return };
                // A sleep is never shorter than asked.
                let sleeps = looks - YIELDS + 1;
                assert!(start.elapsed() >= sleeps * Duration::from_micros(50));
                if sleeps == SLEEPS {
                    slept.send(()).unwrap();
                }
            });
            let mut guard = LockGuard(lock, PhantomData);
            assert_eq!(*guard, 2);
            *guard += 1;
        });
        has_slept.recv().unwrap();
        *guard += 1;
    });
    assert_eq!(*lock.lock(), 3);
}
