//! Tests of the last time that a paused clock can show: a sleep that ends after that time never
//! ends.
#![cfg(feature = "test-util")]
use net_driver::{
    Driver,
    time::{self, Instant, Interval, MissedTickBehavior},
};
use std::{
    future::Future,
    pin::{Pin, pin},
    task::{Context, Waker},
    time::Duration,
};
use worker_idle::park::Park;

const HOUR: Duration = Duration::from_secs(3_600);
const YEAR: Duration = Duration::from_secs(365 * 86_400);

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

/// Polls with a waker that does nothing.
fn is_ready(future: &mut (impl Future + Unpin)) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    Pin::new(future).poll(&mut cx).is_ready()
}

#[test]
fn endless_advance_stops_before_the_end_of_the_clock() {
    Driver::new(1).park(0).block_on(async {
        time::pause();
        let mut endless = pin!(time::sleep(Duration::MAX));
        assert!(!is_ready(&mut endless));
        let mut long = pin!(time::sleep(500 * YEAR));
        assert!(!is_ready(&mut long));
        time::advance(Duration::MAX).await;
        assert!(is_ready(&mut long));
        time::advance(Duration::MAX).await;
        assert!(!is_ready(&mut endless));
        let mut late = pin!(time::sleep(Duration::MAX));
        assert!(!is_ready(&mut late));
    });
}

/// Fails if a sleep that begins after an endless advance never ends.
#[test]
fn sleep_after_an_endless_advance_ends() {
    Driver::new(1).park(0).block_on(async {
        time::pause();
        time::advance(Duration::MAX).await;
        let begun = Instant::now();
        time::sleep(YEAR).await;
        assert_eq!(begun.elapsed(), YEAR, "the idle clock has jumped");
        for _ in 0..3 {
            time::advance(Duration::MAX).await;
        }
        time::sleep(HOUR).await;

        let mut sleep = pin!(time::sleep(HOUR));
        assert!(!is_ready(&mut sleep));
        time::advance(2 * HOUR).await;
        assert!(is_ready(&mut sleep), "a later advance fires it");
    });
}

/// Fails if a timeout or an interval that begins after an endless advance waits for ever.
#[test]
fn timeout_after_an_endless_advance_ends() {
    Driver::new(1).park(0).block_on(async {
        time::pause();
        time::advance(Duration::MAX).await;
        let begun = Instant::now();
        let late = time::timeout(HOUR, std::future::pending::<()>());
        assert!(late.await.is_err());
        let mut interval = time::interval(HOUR);
        for _ in 0..3 {
            interval.tick().await;
        }
        assert_eq!(begun.elapsed(), 3 * HOUR);
    });
}

/// Fails if an interval adds its period, or the span of a reset, to a time without a check.
#[test]
fn interval_with_an_endless_period_ticks_once() {
    let waits = |interval: &mut Interval| !is_ready(&mut pin!(interval.tick()));
    Driver::new(1).park(0).block_on(async {
        time::pause();
        for missed in [
            MissedTickBehavior::Burst,
            MissedTickBehavior::Delay,
            MissedTickBehavior::Skip,
        ] {
            let mut interval = time::interval(Duration::MAX);
            interval.set_missed_tick_behavior(missed);
            time::advance(HOUR).await; // The first tick is late.
            interval.tick().await;
            assert!(waits(&mut interval), "{missed:?}");
            interval.reset();
            assert!(waits(&mut interval), "{missed:?}");
            interval.reset_after(Duration::MAX);
            assert!(waits(&mut interval), "{missed:?}");
        }
    });
}

/// Fails if a clock that goes on after an endless advance ends no sleep, or an endless one.
#[test]
fn sleep_of_a_resumed_clock_ends_after_an_endless_advance() {
    Driver::new(1).park(0).block_on(async {
        time::pause();
        time::advance(Duration::MAX).await;
        let mut endless = pin!(time::sleep(Duration::MAX));
        assert!(!is_ready(&mut endless));
        time::resume();
        time::sleep(Duration::from_millis(1)).await;
        assert!(!is_ready(&mut endless));
    });
}
