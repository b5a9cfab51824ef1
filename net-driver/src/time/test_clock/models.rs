//! Models of the poller's look at the other threads, while these unpark each other and wait.
//!
//! The poller looks whether the runtime is idle, so that a paused clock may jump. Only the last
//! model pauses the clock.
use super::*;
use crate::{Driver, park::WorkerPark, token::Token};
use std::{sync::Arc, task::Waker};
use sync_shim::{Model, model, thread};
use worker_idle::park::{Park, ThreadPark};

/// Makes a driver whose workers have started. Worker 1 waits.
fn driver(workers: usize) -> Driver {
    let driver = Driver::new(workers);
    start(&driver);
    driver
}

/// Makes the same driver, for workers with parkers of their own. It unparks only their tokens.
fn over_parkers(workers: usize) -> Driver {
    let driver = Driver::with_wakers(vec![Waker::noop().clone(); workers]);
    start(&driver);
    driver
}

/// Starts all workers. Worker 1 waits.
fn start(driver: &Driver) {
    let threads = driver.threads();
    (0..threads.tokens.len()).for_each(|worker| threads.clock.set_started(worker));
    threads.tokens[1].begin_wait();
}

fn is_idle_but_the_poller(driver: &Driver) -> bool {
    driver.threads().if_idle_but(0, || {}).is_some()
}

/// Worker 2 unparks worker 1, and then begins a wait, which ends at once: one of the two runs at
/// any time.
fn look_racing_an_unpark_and<T: Send + 'static>(
    driver: &Driver,
    wait: impl FnOnce() -> T + Send + 'static,
) {
    let other = {
        let driver = driver.clone();
        thread::spawn(move || {
            driver.threads().tokens[1].unpark();
            wait()
        })
    };
    assert!(!is_idle_but_the_poller(driver), "a worker runs");
    // The drop of the parker, after the join, races with nothing.
    drop(other.join().unwrap());
}

/// The worker waits on its thread.
///
/// Fails if the look does not compare its two loads of `waits`, or if an ordering of `waits` is
/// weaker.
#[test]
fn look_racing_a_worker_that_unparks_and_waits_finds_it() {
    model(|| {
        let driver = driver(3);
        let park = driver.park(2);
        look_racing_an_unpark_and(&driver, move || {
            let _ = park.wait_in_thread_if(None, || false);
            park
        });
    });
}

/// The worker waits in a parker of its own, which has a token.
///
/// Fails if `Waits::begin` does not add to `waits`, or does so without its fence.
#[test]
fn look_racing_a_worker_that_waits_in_a_parker_finds_it() {
    model(|| {
        let driver = over_parkers(3);
        let (mut timers, mut park) = (driver.timers(2), ThreadPark::new());
        park.waker().wake();
        look_racing_an_unpark_and(&driver, move || {
            timers.over(&mut park).park();
            timers
        });
    });
}

/// A worker unparks the poller, and then waits: the poller has a task, or the worker runs.
///
/// Fails if the poller does not read its own token, or reads it before the first load of `waits`.
#[test]
fn look_racing_a_worker_that_unparks_the_poller_is_void() {
    model(|| {
        let driver = driver(2);
        driver.threads().tokens[1].end_wait();
        let other = {
            let driver = driver.clone();
            thread::spawn(move || {
                let threads = driver.threads();
                threads.tokens[0].unpark();
                threads.clock.will_wait();
                threads.tokens[1].begin_wait();
                threads.began_to_wait();
            })
        };
        assert!(!is_idle_but_the_poller(&driver), "a worker has a task");
        other.join().unwrap();
    });
}

/// A worker unparks the poller, and then waits. The poller does not wait in its token, as if it had
/// a parker of its own. It only marks its wait there, by `begin_wait` and `end_wait`.
///
/// Fails if the poller takes the token of that unpark without an Acquire, or if its look does not
/// read the token.
#[test]
fn token_beside_a_parker_voids_the_look_and_publishes() {
    model(|| {
        let driver = driver(2);
        driver.threads().tokens[1].end_wait();
        let queued = Arc::new(AtomicBool::new(false));
        let other = {
            let (driver, queued) = (driver.clone(), queued.clone());
            thread::spawn(move || {
                let threads = driver.threads();
                // Ordering: Relaxed. The token of the unpark publishes the flag.
                queued.store(true, Relaxed);
                threads.tokens[0].unpark();
                threads.clock.will_wait();
                threads.tokens[1].begin_wait();
                threads.began_to_wait();
            })
        };
        let token = &driver.threads().tokens[0];
        token.begin_wait();
        assert!(!is_idle_but_the_poller(&driver), "a worker has a task");
        let was_unparked = token.is_notified();
        token.end_wait();
        // Ordering: Relaxed, as above.
        assert!(!was_unparked || queued.load(Relaxed));
        other.join().unwrap();
    });
}

/// A thread in a `block_on` arms a timer: a poller that sees the timer does not jump to it.
///
/// Fails if `of_guest` does not add to `waits`, or if the deadline is read after the second
/// load of `waits`. Fails also if one of the two fences beside `waits` is left out.
#[test]
fn look_that_reads_a_timer_of_a_new_thread_is_void() {
    model(|| {
        let driver = driver(2);
        let is_armed = Arc::new(AtomicBool::new(false));
        let other = {
            let (driver, is_armed) = (driver.clone(), is_armed.clone());
            thread::spawn(move || {
                let token = Arc::new(Token::new(driver.inner().poller.clone()));
                let _guest = WorkerPark::of_guest(driver, token);
                // Ordering: Relaxed. The guest adds to `waits` when it enters and when it is
                // dropped. These additions order both stores.
                is_armed.store(true, Relaxed);
                is_armed.store(false, Relaxed); // The timer is dropped before the thread leaves.
            })
        };
        // Ordering: Relaxed, as above.
        let read = driver.threads().if_idle_but(0, || is_armed.load(Relaxed));
        assert_ne!(read, Some(true), "the thread runs");
        other.join().unwrap();
    });
}

/// A worker starts, and arms a timer: a poller that sees the timer does not jump to it.
///
/// Fails if `set_started` does not add to `waits`, or does so without its fence.
#[test]
fn look_that_reads_a_timer_of_a_new_worker_is_void() {
    model(|| {
        let driver = Driver::new(2);
        driver.threads().clock.set_started(0);
        let is_armed = Arc::new(AtomicBool::new(false));
        let other = {
            let (driver, is_armed) = (driver.clone(), is_armed.clone());
            thread::spawn(move || {
                driver.threads().clock.set_started(1);
                // Ordering: Relaxed. The addition to `waits` orders it.
                is_armed.store(true, Relaxed);
            })
        };
        // Ordering: Relaxed, as above.
        let read = driver.threads().if_idle_but(0, || is_armed.load(Relaxed));
        assert_ne!(read, Some(true), "the worker runs");
        other.join().unwrap();
    });
}

/// A thread that holds the clock unparks the worker, and then drops the hold.
///
/// Fails if the subtraction or the load of `holds` is Relaxed.
#[test]
fn look_racing_the_end_of_a_hold_finds_the_worker() {
    model(|| {
        let driver = driver(2);
        let (hold, unparks) = (driver.hold_clock(), driver.clone());
        let other = thread::spawn(move || {
            unparks.threads().tokens[1].unpark();
            drop(hold);
        });
        assert!(!is_idle_but_the_poller(&driver), "the worker runs");
        other.join().unwrap();
    });
}

/// Waits as the poller of a paused clock, until a look finds that the runtime is idle. The poller
/// looks before it parks, and after each unpark. If a look is missed, the poller stays parked,
/// which the model reports as a deadlock.
fn wait_until_idle(driver: &Driver) {
    let threads = driver.threads();
    loop {
        assert!(threads.role.try_take(0));
        threads.role.publish_until(u64::MAX);
        if threads.clock.is_paused() && is_idle_but_the_poller(driver) {
            break;
        }
        threads.tokens[0].wait_in_thread(None);
        let _ = threads.role.leave();
    }
}

/// A thread pauses the clock. Meanwhile the last thread except the poller waits. `end` ends that
/// wait once the poller has found that the runtime is idle.
fn pause_racing<T: Send + 'static>(
    driver: &Driver,
    wait: impl FnOnce() -> T + Send + 'static,
    end: impl FnOnce(),
) {
    let pauser = {
        let driver = driver.clone();
        thread::spawn(move || driver.pause())
    };
    let waiter = thread::spawn(wait);
    wait_until_idle(driver);
    end();
    pauser.join().unwrap();
    // The drop of the parker, after the join, races with nothing.
    drop(waiter.join().unwrap());
}

/// Fails if a fence is left out.
#[test]
fn pause_racing_the_last_wait_and_the_poller_is_seen() {
    Model::new().bound(2).check(|| {
        let driver = driver(2);
        let token = &driver.threads().tokens[1];
        token.end_wait();
        let park = driver.park(1);
        let wait = move || {
            let _ = park.wait_in_thread_if(None, || true);
            park
        };
        pause_racing(&driver, wait, || token.unpark());
    });
}

/// The worker waits in a parker of its own.
///
/// Fails if the worker does not unpark the poller, or if it makes no fence before.
#[test]
fn pause_racing_the_last_wait_in_a_parker_is_seen() {
    Model::new().bound(2).check(|| {
        let driver = over_parkers(2);
        driver.threads().tokens[1].end_wait();
        let mut park = ThreadPark::new();
        let waker = park.waker();
        let mut timers = driver.timers(1);
        let wait = move || {
            timers.over(&mut park).park();
            timers
        };
        pause_racing(&driver, wait, || waker.wake_by_ref());
    });
}

/// Fails if the drop of a hold does not unpark the poller, or if it makes no fence before.
#[test]
fn pause_racing_the_end_of_a_hold_is_seen() {
    Model::new().bound(2).check(|| {
        let driver = driver(2);
        let hold = driver.hold_clock();
        pause_racing(&driver, move || drop(hold), || ());
    });
}
