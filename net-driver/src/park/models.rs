//! Models of an unpark: the worker sees the writes before the unpark, and the unpark finds the
//! reactor in which the worker waits.
use super::*;
use std::mem::ManuallyDrop;
use sync_shim::{Model, cell::UnsafeCell, model, model_must_fail};

struct Done(UnsafeCell<bool>);

// SAFETY: a model fails if two threads touch the cell at a time.
unsafe impl Sync for Done {}
// SAFETY: a flag may be used from any thread.
unsafe impl Send for Done {}

/// Runs `wait` while another thread writes and then unparks the worker. After `wait`, the write
/// must be visible.
fn unparks(driver: &Driver, wait: impl FnOnce(&Token)) {
    let done = Arc::new(Done(UnsafeCell::new(false)));
    let token = driver.inner().tokens[0].clone();
    let other = {
        let (token, done) = (token.clone(), done.clone());
        thread::spawn(move || {
            // SAFETY: the model reads the flag only after the unpark.
            done.0.with_mut(|done| unsafe { *done = true });
            token.unpark();
        })
    };
    wait(&token);
    // SAFETY: the unpark that ended `wait` came after the write.
    assert!(done.0.with(|done| unsafe { *done }));
    other.join().unwrap();
}

/// Fails if the exchange of `take`, the swap of `unpark`, or the swap of `wait_in_thread_if` is
/// Relaxed.
#[test]
fn wait_in_the_thread_shows_what_the_unpark_published() {
    model(|| unparks(&Driver::new(1), |token| token.wait_in_thread(None)));
}

/// Fails if the swap of `wait_in_reactor` is Relaxed.
#[test]
fn wait_in_the_reactor_shows_what_the_unpark_published() {
    model(|| {
        let driver = Driver::new(1);
        driver.inner().open_reactor().unwrap();
        // The opening of the reactor has unparked the worker. This takes that token.
        assert!(driver.inner().tokens[0].take());
        unparks(&driver, |token| {
            let poller = &driver.inner().poller;
            token.wait_in_reactor(|| poller.wait(None, &mut VecDeque::new()));
        });
    });
}

/// A worker waits in a reactor that another thread has just opened. A third thread unparks the
/// worker. The third thread learns of the reactor only by the state of the worker's token.
///
/// Fails if the exchange of `wait_in_reactor` is Relaxed, or if the swap of `unpark` is only
/// Release.
#[test]
fn unpark_of_a_wait_in_a_new_reactor_ends_it() {
    Model::new().bound(3).check(|| {
        let driver = Driver::new(1);
        // Each thread first changes one atomic: otherwise loom leaves out some orders of the
        // threads.
        let begun = Arc::new(AtomicU32::new(0));
        let begin = |begun: &AtomicU32| begun.fetch_add(1, Relaxed);
        begin(&begun);
        // This stands for an earlier timer, which activated the role.
        let _ = driver.inner().role.activate();
        let mut park = driver.park(0);
        let opener = {
            let (driver, begun) = (driver.clone(), begun.clone());
            thread::spawn(move || {
                begin(&begun);
                driver.inner().open_reactor().unwrap();
            })
        };
        let waker = park.waker();
        let pusher = thread::spawn(move || {
            begin(&begun);
            waker.wake_by_ref();
        });
        park.park();
        opener.join().unwrap();
        pusher.join().unwrap();
    });
}

/// Returns the parks of a driver's workers. The first worker has the role, as in a park.
fn parks<const WORKERS: usize>() -> [WorkerPark; WORKERS] {
    let driver = Driver::new(WORKERS);
    let _ = driver.inner().role.activate();
    assert!(driver.inner().role.try_take(0));
    std::array::from_fn(|worker| {
        let mut park = driver.park(worker);
        park.may_owe_role = true;
        park
    })
}

/// Parks until the worker has the role.
fn take_role(park: &WorkerPark) {
    while !park.driver.inner().role.try_take(park.worker) {
        park.wait_beside_poller(None);
    }
}

/// Another worker waits, or is about to, when the `block_on` of the last poller ends.
///
/// Fails if the end of a `block_on` unparks no worker, or if either side has no fence.
#[test]
fn end_of_the_pollers_block_on_passes_the_role_on() {
    model(|| {
        let [mut first, second] = parks();
        let other = thread::spawn(move || take_role(&second));
        let _ = first.driver.inner().role.leave();
        first.block_on(async {});
        other.join().unwrap();
    });
}

/// A worker that neither parks again nor retires leaves the role vacant, although another one
/// waits.
#[test]
fn poller_that_stops_without_retiring_strands_another_worker() {
    model_must_fail("deadlock", || {
        // `ManuallyDrop`, so that the failure drops nothing.
        let [first, second] = parks().map(ManuallyDrop::new);
        let other = thread::spawn(move || {
            take_role(&second);
            drop(ManuallyDrop::into_inner(second));
        });
        let _ = first.driver.inner().role.leave();
        other.join().unwrap();
        drop(ManuallyDrop::into_inner(first));
    });
}

/// The second worker retires as soon as its first park returns. If the first worker has passed the
/// role on to it, the third worker must get the role.
///
/// Fails if a worker that was only unparked, and never had the role, retires without a look at it.
#[test]
fn worker_that_gets_the_role_and_retires_passes_it_on() {
    Model::new().bound(3).check(|| {
        let [first, second, third] = parks();
        let passes = thread::spawn(move || {
            if second.driver.inner().role.try_take(1) {
                let _ = second.driver.inner().role.leave();
            } else {
                second.wait_beside_poller(None);
            }
            drop(second);
        });
        let takes = thread::spawn(move || take_role(&third));
        let driver = first.driver.clone();
        let _ = driver.inner().role.leave();
        drop(first);
        takes.join().unwrap();
        // The third worker keeps the role. So the second one may wait.
        driver.inner().unpark(1);
        passes.join().unwrap();
    });
}

/// Returns a driver of three workers whose parked threads stand by. The first worker has the role.
fn with_standby() -> Driver {
    let driver = Driver::new(3);
    let _ = driver.inner().role.activate();
    driver.inner().role.let_stand_by(true);
    assert!(driver.inner().role.try_take(0));
    driver
}

/// Worker 1 stands by, and would wait without a limit, while the poller leaves the role: the worker
/// does not wait, or is unparked.
///
/// Fails if the poller stores 0 instead of the swap in `leave`, if the exchange of `request_unpark`
/// is a load and a store, or if the poller does not unpark the standby.
#[test]
fn standby_racing_the_pollers_leave_does_not_wait_on() {
    model(|| {
        let driver = with_standby();
        let stands_by = {
            let driver = driver.clone();
            thread::spawn(move || {
                let inner = driver.inner();
                assert!(inner.role.try_stand_by(1));
                if inner.role.request_unpark() {
                    inner.tokens[1].wait_in_thread(None);
                }
                assert!(!inner.role.is_held());
            })
        };
        drop(LeaveRole(driver.inner()));
        stands_by.join().unwrap();
    });
}

/// A poller that leaves the role without a look at the bit leaves the standby asleep.
#[test]
fn leave_that_does_not_unpark_strands_the_standby() {
    model_must_fail("deadlock", || {
        let driver = with_standby();
        let stands_by = {
            let driver = driver.clone();
            thread::spawn(move || {
                let inner = driver.inner();
                assert!(inner.role.try_stand_by(1));
                if inner.role.request_unpark() {
                    inner.tokens[1].wait_in_thread(None);
                }
            })
        };
        let _ = driver.inner().role.leave();
        stands_by.join().unwrap();
    });
}

/// Waits beside the poller and the standby as a worker does, until it takes the place of one.
fn wait_beside(park: &WorkerPark) {
    let role = &park.driver.inner().role;
    while !role.try_take(1) && !role.try_stand_by(1) {
        park.wait_beside_standby(None, || role.is_held());
    }
}

/// Stops to stand by, as a thread does that then runs a task.
fn stop_standing_by(driver: &Driver) {
    driver.inner().role.stop_standing_by();
    if driver.inner().lacks_standby() {
        driver.inner().recruit_standby();
    }
}

/// The poller leaves the role, and the standby stops, while worker 1 is about to wait beside them:
/// worker 1 takes the place of one of them.
///
/// Fails if neither the poller nor the standby recruits another thread, or if one of the fences is
/// left out: in `leave`, in `stop_standing_by`, in `recruit_standby` or in `is_still_stood_by`.
#[test]
fn standby_and_poller_that_stop_are_replaced() {
    Model::new().bound(3).check(|| {
        let driver = with_standby();
        assert!(driver.inner().role.try_stand_by(2));
        let waits = {
            let park = driver.park(1);
            thread::spawn(move || {
                wait_beside(&park);
                park // Its drop, after the join, races with nothing.
            })
        };
        let leaves = {
            let driver = driver.clone();
            thread::spawn(move || drop(LeaveRole(driver.inner())))
        };
        stop_standing_by(&driver);
        leaves.join().unwrap();
        drop(waits.join().unwrap());
    });
}

/// A poller that recruits no standby when it leaves strands a worker that waits.
#[test]
fn leave_that_recruits_no_standby_strands_a_worker() {
    model_must_fail("deadlock", || {
        let driver = with_standby();
        assert!(driver.inner().role.try_stand_by(2));
        let waits = {
            // `ManuallyDrop`, so that the failure drops nothing.
            let park = ManuallyDrop::new(driver.park(1));
            thread::spawn(move || {
                wait_beside(&park);
                drop(ManuallyDrop::into_inner(park));
            })
        };
        stop_standing_by(&driver);
        let _ = driver.inner().role.leave();
        waits.join().unwrap();
    });
}

/// Two threads that wait begin to stand by: one of them does.
///
/// Fails if `try_stand_by` loads and then stores, instead of its exchange.
#[test]
fn two_threads_that_wait_have_one_standby() {
    model(|| {
        let driver = with_standby();
        let other = {
            let driver = driver.clone();
            thread::spawn(move || driver.inner().role.try_stand_by(1))
        };
        let stands_by = driver.inner().role.try_stand_by(2);
        assert!(stands_by != other.join().unwrap(), "one standby");
    });
}
