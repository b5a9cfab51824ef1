//! A test of a clock that is paused before the first use of any clock of the process. It is the
//! only test in this file, as another test in the same process might use a clock before.
#![cfg(feature = "test-util")]
use net_driver::{Driver, time};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    thread,
    time::Duration,
};
use worker_idle::park::Park;

#[test]
fn clock_paused_before_its_first_use_ends_no_sleep_early() {
    let driver = Driver::new(1);
    driver.pause();
    let _hold = driver.hold_clock();
    let mut park = driver.park(0);
    // Without this wait, the test might pass by chance where it should fail.
    thread::sleep(Duration::from_millis(2));
    driver.scope(Some(0), || {
        let mut sleep = pin!(time::sleep(Duration::from_millis(1)));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        park.park_timeout(Duration::ZERO);
        assert!(!park.has_events());
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
    });
}
