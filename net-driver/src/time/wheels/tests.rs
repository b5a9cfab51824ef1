//! Firings of a wheel by threads whose clocks differ.
use super::{
    super::{
        Duration, Instant, clock,
        entry::{Reset, Timer},
    },
    NONE, WheelCell,
};
use crate::Driver;
use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, Weak},
    task::Waker,
};

/// A wheel that has advanced to tick 105, and a timer that was then armed for tick 103.
fn overtaken() -> (Arc<WheelCell>, Pin<Box<Timer>>) {
    let cell = Arc::new(WheelCell::new(Weak::new()));
    assert_eq!(cell.fire(105, 8, &mut VecDeque::new()), 0);
    let mut timer = Box::pin(Timer::new());
    let is_next = timer.as_mut().arm(&cell, 103, Waker::noop().clone());
    assert!(is_next.unwrap());
    (cell, timer)
}

/// Fires the wheel under one hold of its lock. Returns whether no timer is due any more, and the
/// number of timers that were fired.
fn fire_some(cell: &WheelCell, now: u64) -> (bool, usize) {
    let (mut left, mut wakers) = (8, VecDeque::new());
    let is_done = cell.fire_some(now, &mut left, &mut wakers);
    assert_eq!(8 - left, wakers.len());
    (is_done, wakers.len())
}

/// A thread reads its clock at tick 100, and then waits for the wheel's lock. Meanwhile the wheel
/// advances to tick 105, and files a timer for tick 103 as due.
///
/// Fails if the thread compares the timer with tick 100: it puts the timer back as due, for ever.
#[test]
fn firing_with_an_older_clock_ends() {
    let (cell, timer) = overtaken();
    assert_eq!(fire_some(&cell, 100), (true, 1));
    assert!(timer.is_fired());
    assert_eq!(cell.next(), NONE);
}

/// As above, but the timer is reset before the thread has the lock.
#[test]
fn older_clock_fires_a_reset_timer_at_its_tick() {
    let (cell, mut timer) = overtaken();
    assert!(matches!(timer.as_mut().reset(106, |_| false), Reset::Done));
    assert_eq!(fire_some(&cell, 100), (true, 0));
    assert_eq!(cell.next(), 106);
    assert!(!timer.is_fired());
    assert_eq!(fire_some(&cell, 106), (true, 1));
    assert!(timer.is_fired());

    let (cell, mut timer) = overtaken();
    assert!(matches!(timer.as_mut().reset(105, |_| false), Reset::Done));
    assert_eq!(fire_some(&cell, 100), (true, 1));
    assert!(timer.is_fired());
}

/// Two wheels have a timer each, and a thread fires one timer. Returns whether that is the timer of
/// the thread's own wheel. The other timer is due earlier by this time.
fn fires_own_first(earlier: Duration) -> bool {
    let driver = Driver::new(2);
    let (timers, base) = (&driver.inner().timers, Instant::now());
    let arm = |wheel, after| {
        let mut timer = Box::pin(Timer::new());
        let tick = clock::tick_of(base + after);
        let armed = timer
            .as_mut()
            .arm(timers.wheel(wheel), tick, Waker::noop().clone());
        assert!(armed.is_ok());
        timer
    };
    let (due, mut wakers) = (Duration::from_millis(50), VecDeque::new());
    let (own, other) = (arm(0, due), arm(1, due - earlier));
    timers.collect_due(0, 1, || base + 2 * due, &mut wakers);
    assert_eq!((wakers.len(), own.is_fired()), (1, !other.is_fired()));
    own.is_fired()
}

/// Fails if a worker that fires a few timers at a time never comes to the timers of a worker in a
/// long poll (rule 6).
#[test]
fn timers_of_another_wheel_come_first_if_much_earlier() {
    assert!(fires_own_first(Duration::ZERO));
    assert!(fires_own_first(Duration::from_micros(900)));
    assert!(!fires_own_first(Duration::from_millis(2)));
}

/// Fails if a monitor fires the timers that a worker is about to fire: it would put their tasks
/// behind all others.
#[test]
fn due_timer_is_not_late_while_others_fire() {
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    // On a busy machine some milliseconds pass before the first polls.
    let deadline = Instant::now() + Duration::from_millis(50);
    let mut sleeps: Vec<_> = (0..2)
        .map(|_| Box::pin(super::super::sleep_until(deadline)))
        .collect();
    let mut cx = std::task::Context::from_waker(Waker::noop());
    driver.scope(Some(0), || {
        for sleep in &mut sleeps {
            assert!(Future::poll(sleep.as_mut(), &mut cx).is_pending());
        }
    });
    let late = Duration::from_millis(50);
    while !driver.inner().is_due_for(late) {
        std::thread::yield_now();
    }
    assert_eq!(driver.inner().until_due_for(late), Some(Duration::ZERO));
    worker_idle::park::Park::poll(&mut park, 1);
    assert!(driver.is_due(), "one of the two is left");
    // On a busy machine the time may pass before these looks. The lateness counts from the firing,
    // but from `late / 2` after the deadline at the latest.
    let until = driver.inner().until_due_for(late);
    let is_late = driver.inner().is_due_for(late);
    let is_busy = Instant::now() >= deadline + late + late / 4;
    assert!((until > Some(late / 4) && !is_late) || is_busy);
}
