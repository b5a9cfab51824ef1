//! Tests of the last time that a paused clock can show: a sleep that ends after that time never
//! ends.
#![cfg(feature = "test-util")]
use net_driver::{
    Driver,
    time::{self, Instant},
};
use std::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
    time::Duration,
};
use worker_idle::park::Park;

#[test]
fn idle_clock_does_not_jump_to_an_endless_sleep() {
    let driver = Driver::new(1);
    driver.pause();
    let mut park = driver.park(0);
    for span in [Duration::MAX, Duration::from_secs(u64::MAX / 4)] {
        driver.scope(Some(0), || {
            let begun = Instant::now();
            let mut sleep = pin!(time::sleep(span));
            let mut cx = Context::from_waker(Waker::noop());
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
            park.park_timeout(Duration::ZERO);
            assert!(!park.has_events());
            assert_eq!(begun.elapsed(), Duration::ZERO);
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
        });
    }
}

#[test]
fn endless_advance_stops_at_the_end_of_the_clock() {
    Driver::new(1).park(0).block_on(async {
        time::pause();
        let mut cx = Context::from_waker(Waker::noop());
        let mut endless = pin!(time::sleep(Duration::MAX));
        assert!(endless.as_mut().poll(&mut cx).is_pending());
        let mut long = pin!(time::sleep(Duration::from_secs(500 * 365 * 86_400)));
        assert!(long.as_mut().poll(&mut cx).is_pending());
        time::advance(Duration::MAX).await;
        assert!(long.as_mut().poll(&mut cx).is_ready());
        let end = Instant::now();
        time::advance(Duration::MAX).await;
        assert_eq!(Instant::now(), end);
        assert!(endless.as_mut().poll(&mut cx).is_pending());
        let mut late = pin!(time::sleep(Duration::MAX));
        assert!(late.as_mut().poll(&mut cx).is_pending());
    });
}
