//! Tests of the wakers that a park has collected: each of them is woken, even if another waker
//! panics.
use net_driver::{Driver, time};
use std::{
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker},
    time::Duration,
};
use worker_idle::park::{Park, ThreadPark};

/// A waker that counts its wakes, and panics in the first `panics` wakes.
struct Count {
    wakes: AtomicUsize,
    panics: usize,
}

impl Count {
    fn new(panics: usize) -> Arc<Self> {
        let wakes = AtomicUsize::new(0);
        Arc::new(Self { wakes, panics })
    }

    fn wakes(&self) -> usize {
        self.wakes.load(SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        let wakes = self.wakes.fetch_add(1, SeqCst);
        assert!(wakes >= self.panics, "a waker panics");
    }
}

/// Arms three sleeps that are due at the same time. Each of them wakes `count`.
fn arm_three(driver: &Driver, count: &Arc<Count>) -> [Pin<Box<time::Sleep>>; 3] {
    let deadline = time::Instant::now() + Duration::from_millis(300);
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    driver.scope(Some(0), || {
        [(); 3].map(|()| {
            let mut sleep = Box::pin(time::sleep_until(deadline));
            assert!(sleep.as_mut().poll(&mut cx).is_pending());
            sleep
        })
    })
}

#[test]
fn block_on_after_a_panic_delivers_the_rest_first() {
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    let count = Count::new(1);
    let _sleeps = arm_three(&driver, &count);
    let blocks = AssertUnwindSafe(|| park.block_on(pending::<()>()));
    assert!(catch_unwind(blocks).is_err());
    assert_eq!(count.wakes(), 1);
    // If the park misses the remaining wakers, `block_on` ends only at this limit.
    let mut limit = pin!(time::sleep(Duration::from_secs(20)));
    let waited = park.block_on(poll_fn(|cx| {
        if limit.as_mut().poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        match count.wakes() {
            3 => Poll::Ready(true),
            _ => Poll::Pending,
        }
    }));
    assert!(waited, "it parked, although it had wakers to wake");
}

#[test]
fn dropped_park_wakes_what_it_has_collected() {
    let driver = Driver::new(1);
    let mut park = driver.park(0);
    let count = Count::new(2);
    let _sleeps = arm_three(&driver, &count);
    while !park.has_events() {
        park.park();
    }
    assert_eq!(count.wakes(), 0);
    drop(park);
    assert_eq!(count.wakes(), 3);
}

#[test]
fn dropped_timers_wake_what_they_have_collected() {
    let mut park = ThreadPark::new();
    let driver = Driver::with_wakers([park.waker()]);
    let mut timers = driver.timers(0);
    let count = Count::new(2);
    let _sleeps = arm_three(&driver, &count);
    while !timers.over(&mut park).has_events() {
        timers.over(&mut park).park();
    }
    assert_eq!(count.wakes(), 0);
    drop(timers);
    assert_eq!(count.wakes(), 3);
}

/// Drops the timers of a worker. Fails if the drop leaves the other worker parked although no
/// worker waits for the timers, or if a worker that has never parked wakes others.
#[test]
fn dropped_timers_wake_a_worker_that_may_wait_for_timers() {
    let mut park = ThreadPark::new();
    let other = Count::new(usize::MAX);
    let driver = Driver::with_wakers([park.waker(), Waker::from(other.clone())]);
    let (mut timers, _others) = (driver.timers(0), driver.timers(1));
    let mut sleep = pin!(time::sleep(Duration::from_secs(3_600)));
    let mut cx = Context::from_waker(Waker::noop());
    let arm = AssertUnwindSafe(|| driver.scope(Some(0), || sleep.as_mut().poll(&mut cx)));
    // The first timer wakes each worker: it ends the next park of this worker, too.
    let _ = catch_unwind(arm);
    assert_eq!(other.wakes(), 1);
    timers.over(&mut park).park();
    drop(timers);
    assert_eq!(other.wakes(), 2);
    drop(driver.timers(0));
    assert_eq!(other.wakes(), 2);
}

/// Fails if one worker gets two parkers: an unpark of the worker could end the park of neither.
#[test]
fn second_park_of_a_worker_panics_until_the_first_is_dropped() {
    let driver = Driver::new(2);
    let (first, _other) = (driver.park(0), driver.park(1));
    assert!(catch_unwind(AssertUnwindSafe(|| driver.park(0))).is_err());
    drop(first);
    drop(driver.park(0));

    let driver = Driver::with_wakers([Waker::noop().clone()]);
    let first = driver.timers(0);
    assert!(catch_unwind(AssertUnwindSafe(|| driver.timers(0))).is_err());
    drop(first);
    drop(driver.timers(0));
}

/// Fails if a worker gets a parker whose parks the driver cannot end.
#[test]
fn park_or_timers_of_the_wrong_driver_panics() {
    let panics = |f: &dyn Fn()| catch_unwind(AssertUnwindSafe(f)).is_err();
    assert!(panics(&|| drop(Driver::new(1).timers(0))));
    let of_users = Driver::with_wakers([Waker::noop().clone()]);
    assert!(panics(&|| drop(of_users.park(0))));
    drop(of_users.timers(0));
}

/// Polls a sleep after the shutdown, with a waker whose clone panics when it is dropped. Fails if
/// the clone is dropped while the panic of the sleep unwinds: that aborts the process.
#[test]
fn sleep_after_the_shutdown_drops_its_waker_before_it_panics() {
    static OWN: RawWakerVTable = RawWakerVTable::new(clone, |_| {}, |_| {}, |_| {});
    static CLONED: RawWakerVTable = RawWakerVTable::new(clone, panics, |_| {}, panics);
    fn clone(_: *const ()) -> RawWaker {
        RawWaker::new(ptr::null(), &CLONED)
    }
    fn panics(_: *const ()) {
        panic!("a waker panics");
    }
    // SAFETY: the functions use no memory.
    let waker = unsafe { Waker::from_raw(RawWaker::new(ptr::null(), &OWN)) };
    let driver = Driver::new(1);
    driver.shutdown();
    let mut sleep = pin!(time::sleep(Duration::from_secs(3_600)));
    let mut cx = Context::from_waker(&waker);
    let poll = AssertUnwindSafe(|| driver.scope(None, || sleep.as_mut().poll(&mut cx)));
    assert!(catch_unwind(poll).is_err());
}
