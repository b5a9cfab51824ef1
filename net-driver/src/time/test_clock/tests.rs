//! When the poller parks, it looks at the tokens (rule 1 of `test_clock.rs`). In all tests but the
//! last, another thread has unparked the poller before that look, and waits.
use super::*;
use crate::time;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    thread,
};
use worker_idle::park::{Park, ThreadPark};

const HOUR: Duration = Duration::from_secs(3_600);

/// Activates the poller role (rule 3 of `role.rs`): worker 0 waits for a sleep. Returns the time
/// after the sleep.
fn activate(driver: &Driver, park: &mut impl Park) -> Instant {
    driver.scope(Some(0), || {
        let mut sleep = pin!(time::sleep(Duration::from_millis(1)));
        let mut cx = Context::from_waker(Waker::noop());
        while sleep.as_mut().poll(&mut cx).is_pending() {
            park.park();
            park.deliver();
        }
        Instant::now()
    })
}

/// Starts a thread that calls `unpark` and then sleeps for an hour. Returns when that thread waits.
fn unpark_and_wait(driver: &Driver, unpark: impl FnOnce() + Send + 'static) {
    let guest = driver.clone();
    thread::spawn(move || {
        guest.block_on(async {
            unpark();
            time::sleep(HOUR).await;
        });
    });
    let waits = || {
        let guests = &driver.inner().guests;
        !guests.is_empty() && guests.all(Token::is_waiting)
    };
    while !waits() {
        thread::yield_now();
    }
}

/// Parks once: this park takes the token, and the clock stands still. Then parks again and again,
/// until the clock jumps.
fn jumps_after_one_park(driver: &Driver, park: &mut impl Park, begun: Instant) {
    let passed = || driver.scope(Some(0), || begun.elapsed());
    park.park();
    assert_eq!(passed(), Duration::ZERO, "a task is queued");
    while passed().is_zero() {
        park.park();
    }
    assert_eq!(passed(), HOUR);
    park.deliver();
}

/// Fails if the poller does not look at its own token.
#[test]
fn poller_that_was_unparked_returns_before_a_jump() {
    let driver = Driver::new(1);
    driver.pause();
    let mut park = driver.park(0);
    let begun = activate(&driver, &mut park);
    let waker = park.waker();
    unpark_and_wait(&driver, move || waker.wake_by_ref());
    jumps_after_one_park(&driver, &mut park, begun);
}

/// Fails if a park that does not wait leaves the token in place: the token keeps the clock from
/// jumping.
#[test]
fn unparked_poller_that_never_waits_jumps_at_last() {
    let driver = Driver::new(1);
    driver.pause();
    let mut park = driver.park(0);
    let begun = activate(&driver, &mut park);
    let waker = park.waker();
    unpark_and_wait(&driver, move || waker.wake_by_ref());
    park.park_timeout(Duration::ZERO);
    assert!(driver.scope(Some(0), || begun.elapsed()).is_zero());
    park.park_timeout(Duration::ZERO);
    assert_eq!(driver.scope(Some(0), || begun.elapsed()), HOUR);
    park.deliver();
}

/// The worker has a parker of its own. Fails if a wake by `Driver::waker` does not mark the token
/// that the driver has for the worker.
#[test]
fn poller_over_a_parker_returns_before_a_jump() {
    let mut park = ThreadPark::new();
    let driver = Driver::with_wakers([park.waker()]);
    driver.pause();
    let mut timers = driver.timers(0);
    let mut park = timers.over(&mut park);
    let begun = activate(&driver, &mut park);
    let waker = driver.waker(0);
    unpark_and_wait(&driver, move || waker.wake());
    jumps_after_one_park(&driver, &mut park, begun);
}

/// A wake has left two tokens, one in the parker and one in the driver. Fails if the `OverPark`
/// waits after the parker has lost its token.
#[test]
fn park_over_a_parker_that_lost_its_token_ends() {
    let mut park = ThreadPark::new();
    let driver = Driver::with_wakers([park.waker()]);
    driver.waker(0).wake();
    park.park(); // Takes the parker's token, and not the driver's.
    driver.timers(0).over(&mut park).park();
}
