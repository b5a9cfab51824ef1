//! Models of an unpark: the worker sees the writes before the unpark, and the unpark finds the
//! reactor in which the worker waits.
use super::*;
use crate::Driver;
use std::collections::VecDeque;
use sync_shim::{Model, cell::UnsafeCell, model};
use worker_idle::park::Park;

struct Done(UnsafeCell<bool>);

// SAFETY: a model fails if two threads touch the cell at a time.
unsafe impl Sync for Done {}
// SAFETY: a flag may be used from any thread.
unsafe impl Send for Done {}

/// Runs `wait` while another thread writes and then unparks the worker. After `wait`, the write
/// must be visible.
fn unparks(driver: &Driver, wait: impl FnOnce(&Token)) {
    let done = Arc::new(Done(UnsafeCell::new(false)));
    let token = driver.threads().tokens[0].clone();
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
        assert!(driver.threads().tokens[0].take());
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
        let _ = driver.threads().role.activate();
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
