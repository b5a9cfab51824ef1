//! Models of owners of timers, which race firers, parks of workers and the shutdown.
use super::{
    entry::{Reset, Timer, TimerState},
    wheels::WheelCell,
};
use crate::Driver;
use std::{
    collections::VecDeque,
    mem::ManuallyDrop,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Wake, Waker},
};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::SeqCst},
    model, model_must_fail,
    thread::{self, JoinHandle},
};
use worker_idle::park::Park;

/// Counts the wakes.
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

impl Count {
    fn new() -> (Arc<Self>, Waker) {
        let count = Arc::new(Self(AtomicUsize::new(0)));
        (count.clone(), Waker::from(count))
    }

    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// A wheel without a driver, and a timer that is armed in it for tick 5.
struct Scene {
    cell: Arc<WheelCell>,
    timer: Pin<Box<Timer>>,
    count: Arc<Count>,
    waker: Waker,
}

impl Scene {
    fn new() -> Self {
        let cell = Arc::new(WheelCell::new(Weak::new()));
        let (count, waker) = Count::new();
        let mut timer = Box::pin(Timer::new());
        assert!(timer.as_mut().arm(&cell, 5, waker.clone()).unwrap());
        Self {
            cell,
            timer,
            count,
            waker,
        }
    }
}

/// Says of a deadline that it has not passed.
fn never(_: &WheelCell) -> bool {
    false
}

/// Fires the timers that are due, and wakes their tasks.
fn fire(cell: &WheelCell, now: u64) {
    let mut wakers = VecDeque::new();
    cell.fire(now, 8, &mut wakers);
    wakers.into_iter().for_each(Waker::wake);
}

/// Shuts the wheel down, and wakes the tasks of its timers.
fn shutdown(cell: &WheelCell) {
    let mut wakers = VecDeque::new();
    cell.shutdown(&mut wakers);
    wakers.into_iter().for_each(Waker::wake);
}

fn firer(cell: &Arc<WheelCell>, now: u64) -> JoinHandle<()> {
    let cell = cell.clone();
    thread::spawn(move || fire(&cell, now))
}

/// The task of a timer that is armed while its wheel fires is woken once, by that firing or the
/// next one.
#[test]
fn arm_against_a_firing_wakes_once() {
    model(|| {
        let cell = Arc::new(WheelCell::new(Weak::new()));
        let (count, waker) = Count::new();
        let firer = firer(&cell, 10);
        let mut timer = Box::pin(Timer::new());
        let _ = timer.as_mut().arm(&cell, 5, waker.clone()).unwrap();
        let state = timer.as_mut().poll(&waker);
        assert_ne!(state, TimerState::Idle);
        firer.join().unwrap();
        fire(&cell, 10);
        assert_eq!(count.get(), 1);
        assert!(timer.is_fired());
        assert_eq!(cell.next(), u64::MAX);
    });
}

/// A timer is dropped while its wheel fires it. The firer does not use the timer afterwards.
///
/// Fails if `fire` copies the waker out after its compare-and-swap.
#[test]
fn drop_against_a_firing_is_sound() {
    model(|| {
        let Scene {
            cell, timer, count, ..
        } = Scene::new();
        let firer = firer(&cell, 10);
        drop(timer);
        firer.join().unwrap();
        assert!(count.get() <= 1);
        // All wakers are gone: the cell's and the firer's.
        assert_eq!(Arc::strong_count(&count), 1);
        fire(&cell, 20);
        assert!(count.get() <= 1);
    });
}

/// A timer is reset to a later tick while its wheel fires: it fires at the first tick, or at the
/// second tick.
///
/// Fails if `reset` stores the tick without a compare-and-swap.
#[test]
fn reset_to_later_against_a_firing_is_not_lost() {
    model(|| {
        let Scene {
            cell,
            mut timer,
            count,
            waker,
        } = Scene::new();
        let firer = firer(&cell, 10);
        assert!(matches!(timer.as_mut().reset(20, never), Reset::Done));
        let state = timer.as_mut().poll(&waker);
        firer.join().unwrap();
        match state {
            TimerState::Armed => {
                assert_eq!(count.get(), 0, "it was woken early");
                fire(&cell, 20);
                assert_eq!(count.get(), 1);
                assert!(timer.is_fired());
            }
            TimerState::Idle => assert_eq!(count.get(), 1),
            TimerState::Fired => panic!("a reset makes a fired timer idle"),
        }
    });
}

/// A timer is reset to an earlier tick while its wheel fires. It fires once: after the reset, or
/// before the reset, which then leaves it idle.
#[test]
fn reset_to_earlier_against_a_firing_is_not_lost() {
    model(|| {
        let Scene {
            cell,
            mut timer,
            count,
            waker,
        } = Scene::new();
        let firer = firer(&cell, 5);
        let _ = timer.as_mut().reset(3, never);
        let state = timer.as_mut().poll(&waker);
        firer.join().unwrap();
        fire(&cell, 5);
        assert_eq!(count.get(), 1);
        assert_eq!(timer.is_fired(), state != TimerState::Idle);
    });
}

/// A timer is reset to a time that has passed while its wheel fires. Its task is woken once, by the
/// reset or the firing, and the next poll need not wait.
///
/// Fails if `reset` fires the timer without a look under the lock.
#[test]
fn reset_to_the_past_against_a_firing_wakes_once() {
    model(|| {
        let Scene {
            cell,
            mut timer,
            count,
            waker,
        } = Scene::new();
        let firer = firer(&cell, 5);
        if let Reset::Fired(woken) = timer.as_mut().reset(3, |_| true) {
            woken.wake();
        }
        assert_ne!(timer.as_mut().poll(&waker), TimerState::Armed);
        firer.join().unwrap();
        assert_eq!(count.get(), 1);
        timer.touch();
        // The waker of the scene is left.
        drop(waker);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// The owner replaces the waker while the wheel fires: the firing wakes the new waker, or the owner
/// sees that the timer has fired.
///
/// Fails if `replace_waker` does not look at the state again under the lock.
#[test]
fn new_waker_against_a_firing_is_woken_or_told() {
    model(|| {
        let Scene {
            cell,
            mut timer,
            count,
            waker,
        } = Scene::new();
        let (other, new) = Count::new();
        let firer = firer(&cell, 10);
        let state = timer.as_mut().poll(&new);
        firer.join().unwrap();
        match state {
            TimerState::Armed => assert_eq!((count.get(), other.get()), (0, 1)),
            _ => assert_eq!((count.get(), other.get()), (1, 0)),
        }
        drop((waker, new, timer));
        assert_eq!(Arc::strong_count(&count), 1);
        assert_eq!(Arc::strong_count(&other), 1);
    });
}

/// A worker and a thief fire the same wheel: each timer fires once.
#[test]
fn thief_against_the_worker_fires_once() {
    model(|| {
        let Scene {
            cell, timer, count, ..
        } = Scene::new();
        let (second, waker) = Count::new();
        let mut later = Box::pin(Timer::new());
        let _ = later.as_mut().arm(&cell, 7, waker).unwrap();
        let thief = firer(&cell, 10);
        fire(&cell, 6);
        thief.join().unwrap();
        assert_eq!((count.get(), second.get()), (1, 1));
        assert!(timer.is_fired() && later.is_fired());
    });
}

/// A timer is armed while its wheel shuts down: the wheel refuses it, or its task is woken and it
/// is idle again.
#[test]
fn arm_against_the_shutdown_is_refused_or_woken() {
    model(|| {
        let cell = Arc::new(WheelCell::new(Weak::new()));
        let (count, waker) = Count::new();
        let closer = {
            let cell = cell.clone();
            thread::spawn(move || shutdown(&cell))
        };
        let mut timer = Box::pin(Timer::new());
        let armed = timer.as_mut().arm(&cell, 5, waker.clone()).is_ok();
        closer.join().unwrap();
        assert_eq!(count.get(), usize::from(armed));
        assert_eq!(timer.as_mut().poll(&waker), TimerState::Idle);
    });
}

/// One timer is dropped, and another one is reset, while their wheel shuts down.
#[test]
fn drop_or_reset_against_the_shutdown_is_sound() {
    model(|| {
        let Scene {
            cell,
            timer,
            count,
            waker,
        } = Scene::new();
        let (other, second) = Count::new();
        let mut reset = Box::pin(Timer::new());
        let _ = reset.as_mut().arm(&cell, 5, second.clone()).unwrap();
        let closer = {
            let cell = cell.clone();
            thread::spawn(move || shutdown(&cell))
        };
        drop(timer);
        let _ = reset.as_mut().reset(9, never);
        closer.join().unwrap();
        assert!(count.get() <= 1);
        assert_eq!(other.get(), 1);
        assert_eq!(reset.as_mut().poll(&second), TimerState::Idle);
        drop(waker);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// The shutdown of a driver closes a timer. The timer's owner may then arm it in another driver.
/// The lock of that driver's wheel does not order the shutdown before the arming.
///
/// Fails if the load in `poll` is Relaxed.
#[test]
fn poll_that_finds_a_closed_timer_idle_owns_it() {
    model(|| {
        let Scene {
            cell, timer, waker, ..
        } = Scene::new();
        // `ManuallyDrop`, so that a failure drops nothing.
        let mut timer = ManuallyDrop::new(timer);
        let closer = {
            let cell = cell.clone();
            thread::spawn(move || shutdown(&cell))
        };
        if timer.as_mut().poll(&waker) == TimerState::Idle {
            timer.touch();
        }
        closer.join().unwrap();
        drop(ManuallyDrop::into_inner(timer));
    });
}

/// A reset finds that the timer was fired. The timer's owner may then arm it in another driver.
///
/// Fails if one of these orderings in `reset` is Relaxed: that of the load, or the exchange's
/// ordering on failure.
#[test]
fn reset_that_finds_a_fired_timer_owns_it() {
    model(|| {
        let Scene {
            cell, timer, waker, ..
        } = Scene::new();
        // `ManuallyDrop`, so that a failure drops nothing.
        let mut timer = ManuallyDrop::new(timer);
        let firer = firer(&cell, 10);
        assert!(matches!(timer.as_mut().reset(20, never), Reset::Done));
        if timer.as_mut().poll(&waker) == TimerState::Idle {
            timer.touch();
        }
        firer.join().unwrap();
        drop(ManuallyDrop::into_inner(timer));
    });
}

/// One thread fires the wheel while another shuts it down: the thread that takes the timer wakes
/// the timer's task, once.
#[test]
fn shutdown_against_a_firing_wakes_once() {
    model(|| {
        let Scene {
            cell, timer, count, ..
        } = Scene::new();
        let firer = firer(&cell, 10);
        shutdown(&cell);
        firer.join().unwrap();
        assert_eq!(count.get(), 1);
        drop(timer);
    });
}

/// Arms a timer for a far tick, as a sleep does, in the wheel of the threads that are not workers.
fn arm_far(driver: &Driver, timer: &mut Pin<Box<Timer>>) {
    let inner = driver.inner();
    let far = u64::MAX / 4;
    let (_, waker) = Count::new();
    let is_next = timer.as_mut().arm(inner.timers.wheel(1), far, waker);
    if is_next.unwrap() {
        if let Some(duty) = inner.threads.duty_after_arming(far) {
            inner.threads.do_duty(duty);
        }
    }
}

/// A worker parks while another thread arms the driver's first timer: the park ends, since from now
/// on the worker must wait for that timer.
#[test]
fn first_timer_against_a_park_ends_it() {
    model(|| {
        let driver = Driver::new(1);
        let mut park = driver.park(0);
        let arms = {
            let driver = driver.clone();
            thread::spawn(move || {
                let mut timer = Box::pin(Timer::new());
                arm_far(&driver, &mut timer);
                timer
            })
        };
        park.park();
        drop(arms.join().unwrap());
    });
}

/// The poller parks while another thread arms a timer with the earliest deadline: the poller sees
/// the timer before it parks, or is unparked.
///
/// Fails if either side has no fence, or if the poller does not read the deadlines again.
#[test]
fn timer_against_the_poller_limits_its_park() {
    model(|| {
        let driver = Driver::new(1);
        let _ = driver.threads().role.activate();
        let arms = {
            let driver = driver.clone();
            thread::spawn(move || {
                let mut timer = Box::pin(Timer::new());
                arm_far(&driver, &mut timer);
                timer
            })
        };
        let inner = driver.inner();
        assert!(inner.threads.role.try_take(0));
        // The model's time does not pass: if the park has a limit, the model takes the park to end
        // in time.
        if inner.until_next_deadline().is_none() {
            inner.threads.tokens[0].wait_in_thread(None);
        }
        let _ = inner.threads.role.leave();
        drop(arms.join().unwrap());
    });
}

/// A poller that publishes its deadline after the last look at the wheels misses the timer.
#[test]
fn poller_that_does_not_look_again_misses_a_timer() {
    model_must_fail("the timer is missed", || {
        let driver = Driver::new(1);
        let _ = driver.threads().role.activate();
        let arms = {
            let driver = driver.clone();
            thread::spawn(move || {
                // The timer is leaked, so that the failure drops nothing.
                let timer = Box::leak(Box::new(Timer::new()));
                let inner = driver.inner();
                let (_, waker) = Count::new();
                let wheel = inner.timers.wheel(1);
                let is_next = Pin::static_mut(timer).arm(wheel, 1 << 40, waker).unwrap();
                is_next && inner.threads.duty_after_arming(1 << 40).is_some()
            })
        };
        let inner = driver.inner();
        assert!(inner.threads.role.try_take(0));
        let next = inner.timers.next();
        inner.threads.role.publish_until(next);
        let parks = next == u64::MAX;
        let unparked = arms.join().unwrap();
        assert!(!parks || unparked, "the timer is missed");
    });
}

/// Two workers park in turn, and one leaves the role while the other takes it. If the second worker
/// gets the role, it sees the timer that is armed meanwhile, or is unparked.
#[test]
fn timer_against_a_change_of_the_poller_is_seen() {
    model(|| change_of_the_poller(&Driver::new(2)));
}

/// The same where a parked thread stands by, so that the poller leaves the role by a swap.
///
/// Fails if that swap is Relaxed.
#[test]
fn timer_against_a_change_with_standby_is_seen() {
    model(|| change_of_the_poller(&Driver::new(2).with_standby()));
}

fn change_of_the_poller(driver: &Driver) {
    let _ = driver.threads().role.activate();
    assert!(driver.threads().role.try_take(0));
    driver.threads().role.publish_until(u64::MAX);
    let next = {
        let driver = driver.clone();
        thread::spawn(move || {
            let inner = driver.inner();
            if !inner.threads.role.try_take(1) {
                return;
            }
            if inner.until_next_deadline().is_none() {
                inner.threads.tokens[1].wait_in_thread(None);
            }
            let _ = inner.threads.role.leave();
        })
    };
    let _ = driver.threads().role.leave();
    let mut timer = Box::pin(Timer::new());
    let inner = driver.inner();
    let (_, waker) = Count::new();
    let is_next = timer.as_mut().arm(inner.timers.wheel(0), 1 << 40, waker);
    if is_next.unwrap() {
        if let Some(duty) = inner.threads.duty_after_arming(1 << 40) {
            inner.threads.do_duty(duty);
        }
    }
    next.join().unwrap();
}
