use super::*;
use crate::looks::Looks;
use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering::SeqCst},
};

/// Fails if batches of one task count as large, if batches of many tasks do not count as large
/// after a few waits, or if later batches of one task do not change that.
#[test]
fn batch_is_large_while_many_tasks_wake_at_a_time() {
    let mut batch = Looks::new().batch;
    (0..1_000).for_each(|_| batch.record(1));
    assert!(!batch.is_large());
    (0..3).for_each(|_| batch.record(50));
    assert!(batch.is_large());
    (0..100).for_each(|_| batch.record(0)); // Waits for nothing say nothing.
    assert!(batch.is_large());
    (0..40).for_each(|_| batch.record(1));
    assert!(!batch.is_large());
    (0..100).for_each(|_| batch.record(usize::MAX));
    assert!(batch.is_large());
}

/// A worker that blocks on a future on a thread of its own, until the future is let go.
struct Blocked {
    goes_on: Arc<AtomicBool>,
    unpark: Waker,
    thread: std::thread::JoinHandle<WorkerPark>,
}

impl Blocked {
    /// `at_end` runs in the future's last poll. Its panic ends the `block_on`.
    fn start(mut park: WorkerPark, at_end: fn()) -> Self {
        let (goes_on, unpark) = (Arc::new(AtomicBool::new(false)), park.waker());
        let is_let_go = goes_on.clone();
        let thread = std::thread::spawn(move || {
            let future = poll_fn(|_| match is_let_go.load(SeqCst) {
                true => {
                    at_end();
                    Poll::Ready(())
                }
                false => Poll::Pending,
            });
            let _ = catch_unwind(AssertUnwindSafe(|| park.block_on(future)));
            park
        });
        Self {
            goes_on,
            unpark,
            thread,
        }
    }

    /// Ends the `block_on`, and returns the worker's park.
    fn end(self) -> WorkerPark {
        self.goes_on.store(true, SeqCst);
        self.unpark.wake_by_ref();
        self.thread.join().unwrap()
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

/// Returns a driver whose role is active.
fn active_driver() -> Driver {
    let driver = Driver::new(2);
    let _ = driver.threads().role.activate(); // As the first timer does.
    driver
}

/// Lets one worker wait as the poller, and another one beside it. Ends the `block_on` of the first
/// worker, whose last poll runs `at_end`. The second worker must become the poller.
fn poller_retires(at_end: fn()) {
    let driver = active_driver();
    let role = &driver.threads().role;
    let first = Blocked::start(driver.park(0), at_end);
    wait_until(|| role.is_held());
    let second = Blocked::start(driver.park(1), || {});
    wait_until(|| driver.threads().tokens[1].is_in_thread());
    let first = first.end();
    wait_until(|| role.is_held()); // Forever, if no worker takes the role.
    second.end();
    drop(first);
}

/// The role becomes active while a worker waits. Another worker may hand it over to this one just
/// then, so this one retires when it stops parking.
///
/// Fails if only a look before the wait decides whether the worker may owe the role.
#[test]
fn role_that_becomes_active_during_a_wait_may_be_owed() {
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    let first_timer = std::thread::spawn(move || {
        let token = &driver.threads().tokens[0];
        wait_until(|| token.is_in_thread());
        assert!(driver.threads().role.activate());
        token.unpark();
    });
    park.park();
    first_timer.join().unwrap();
    assert!(park.may_owe_role);
}

#[test]
fn end_of_a_pollers_block_on_makes_another_worker_poll() {
    poller_retires(|| {});
}

#[test]
fn panic_in_a_pollers_block_on_makes_another_worker_poll() {
    poller_retires(|| std::panic::resume_unwind(Box::new("the future panics")));
}

#[test]
fn drop_of_a_pollers_park_makes_another_worker_poll() {
    let driver = active_driver();
    let role = &driver.threads().role;
    let mut first = driver.park(0);
    first.waker().wake();
    first.park(); // With the token it returns at once.
    assert!(role.try_take(0)); // As another park does, which has not returned yet.
    let second = Blocked::start(driver.park(1), || {});
    wait_until(|| driver.threads().tokens[1].is_in_thread());
    let _ = role.leave();
    drop(first);
    wait_until(|| role.is_held()); // Forever, if no worker takes the role.
    second.end();
}

/// Fails if a `block_on` that never parks unparks another worker at its end: a short `block_on`
/// would cost a wake-up each time.
#[test]
fn block_on_wakes_another_worker_only_after_a_park() {
    let driver = active_driver();
    let (mut first, other) = (driver.park(0), &driver.threads().tokens[1]);
    other.pretend_to_wait();
    first.block_on(async {});
    assert!(other.is_in_thread());
    first.waker().wake();
    let mut polls = 0;
    first.block_on(poll_fn(|_| {
        polls += 1;
        match polls {
            1 => Poll::Pending, // The park that follows finds the token.
            _ => Poll::Ready(()),
        }
    }));
    assert!(other.is_notified());
    other.pretend_to_wait();
    first.block_on(async {});
    assert!(other.is_in_thread(), "the worker has passed the role on");
}

/// Fails if the wait after a look in vain has the whole limit again: a sleep would be late by the
/// time of the look.
#[cfg(unix)]
#[test]
fn look_in_vain_takes_its_time_off_the_limit() {
    let driver = active_driver();
    driver.open().unwrap();
    let (token, out) = (
        &Token::new(driver.inner().poller.clone()),
        &mut VecDeque::new(),
    );
    let mut look_for =
        |limit, mut backoff| look(driver.inner(), token, limit, false, &mut backoff, out);
    let limit = Duration::from_secs(3_600);
    // Under this setting a wait takes up to 50 µs.
    let looked = look_for(Some(limit), Backoff::eager().with(Wait::Latency));
    let Look::InVain(Some(left)) = looked else {
        panic!("{looked:?}");
    };
    assert!(left <= limit - Duration::from_micros(50), "{left:?}");
    let looked = look_for(Some(Duration::from_nanos(1)), Backoff::eager());
    assert_eq!(looked, Look::InVain(Some(Duration::ZERO)));
    assert_eq!(look_for(None, Backoff::eager()), Look::InVain(None));
    // The first looks of a new park are not due.
    let looked = look_for(Some(limit), Backoff::new());
    assert_eq!(looked, Look::InVain(Some(limit)));
    // A driver that saves power never looks.
    let looked = look_for(Some(limit), Backoff::eager().with(Wait::Power));
    assert_eq!(looked, Look::InVain(Some(limit)));
    let park = driver.park(0).with_wait(Wait::Power);
    assert_eq!(park.rule, Some(Wait::Power));
}
