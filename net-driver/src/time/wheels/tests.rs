//! Firings of a wheel by threads whose clocks differ.
use super::{
    super::entry::{Reset, Timer},
    NONE, WheelCell,
};
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
