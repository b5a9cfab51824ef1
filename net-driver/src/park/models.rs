//! Models of the poller role: how it passes from a worker that stops to one that waits.
use super::*;
use std::mem::ManuallyDrop;
use sync_shim::{Model, model, model_must_fail, thread};

/// Returns the parks of a driver's workers. The first worker has the role, as in a park.
fn parks<const WORKERS: usize>() -> [WorkerPark; WORKERS] {
    let driver = Driver::new(WORKERS);
    let _ = driver.threads().role.activate();
    assert!(driver.threads().role.try_take(0));
    std::array::from_fn(|worker| {
        let mut park = driver.park(worker);
        park.may_owe_role = true;
        park
    })
}

/// Parks until the worker has the role.
fn take_role(park: &WorkerPark) {
    while !park.driver.threads().role.try_take(park.worker) {
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
        let _ = first.driver.threads().role.leave();
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
        let _ = first.driver.threads().role.leave();
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
            if second.driver.threads().role.try_take(1) {
                let _ = second.driver.threads().role.leave();
            } else {
                second.wait_beside_poller(None);
            }
            drop(second);
        });
        let takes = thread::spawn(move || take_role(&third));
        let driver = first.driver.clone();
        let _ = driver.threads().role.leave();
        drop(first);
        takes.join().unwrap();
        // The third worker keeps the role. So the second one may wait.
        driver.threads().unpark(1);
        passes.join().unwrap();
    });
}

/// Returns a driver of three workers whose parked threads stand by. The first worker has the role.
fn with_standby() -> Driver {
    let driver = Driver::new(3);
    let _ = driver.threads().role.activate();
    driver.threads().role.let_stand_by(true);
    assert!(driver.threads().role.try_take(0));
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
        let standby = {
            let driver = driver.clone();
            thread::spawn(move || {
                let threads = driver.threads();
                assert!(threads.role.try_stand_by(1));
                if threads.role.request_unpark() {
                    threads.tokens[1].wait_in_thread(None);
                }
                assert!(!threads.role.is_held());
            })
        };
        drop(LeaveRole(driver.threads()));
        standby.join().unwrap();
    });
}

/// A poller that leaves the role without a look at the bit leaves the standby asleep.
#[test]
fn leave_that_does_not_unpark_strands_the_standby() {
    model_must_fail("deadlock", || {
        let driver = with_standby();
        let standby = {
            let driver = driver.clone();
            thread::spawn(move || {
                let threads = driver.threads();
                assert!(threads.role.try_stand_by(1));
                if threads.role.request_unpark() {
                    threads.tokens[1].wait_in_thread(None);
                }
            })
        };
        let _ = driver.threads().role.leave();
        standby.join().unwrap();
    });
}

/// Waits beside the poller and the standby as a worker does, until it takes the place of one.
fn wait_beside(park: &WorkerPark) {
    let role = &park.driver.threads().role;
    while !role.try_take(1) && !role.try_stand_by(1) {
        park.wait_beside_standby(None, || role.is_held());
    }
}

/// Stops to stand by, as a thread does that then runs a task.
fn stop_standing_by(driver: &Driver) {
    driver.threads().role.stop_standing_by();
    if driver.threads().lacks_standby() {
        driver.threads().recruit_standby();
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
        assert!(driver.threads().role.try_stand_by(2));
        let waits = {
            let park = driver.park(1);
            thread::spawn(move || {
                wait_beside(&park);
                park // Its drop, after the join, races with nothing.
            })
        };
        let leaves = {
            let driver = driver.clone();
            thread::spawn(move || drop(LeaveRole(driver.threads())))
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
        assert!(driver.threads().role.try_stand_by(2));
        let waits = {
            // `ManuallyDrop`, so that the failure drops nothing.
            let park = ManuallyDrop::new(driver.park(1));
            thread::spawn(move || {
                wait_beside(&park);
                drop(ManuallyDrop::into_inner(park));
            })
        };
        stop_standing_by(&driver);
        let _ = driver.threads().role.leave();
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
            thread::spawn(move || driver.threads().role.try_stand_by(1))
        };
        let standby = driver.threads().role.try_stand_by(2);
        assert!(standby != other.join().unwrap(), "one standby");
    });
}
