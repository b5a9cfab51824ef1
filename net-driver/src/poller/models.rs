//! Models of the worker with the poller role, while other threads push tasks, cause events, or make
//! the first socket. A lost wake-up leaves the model without a thread that can run, which loom
//! reports as a deadlock.
use super::*;
use crate::{
    Driver, Interest, Ready,
    registration::{Registration, Removal},
    slot::Direction,
};
use std::task::{Context, Wake};
use sync_shim::{Model, atomic::Ordering::SeqCst, model, thread};
use worker_idle::park::Park;

const FD: i32 = 3;

/// A waker whose wakes a model sees.
struct Flag(Arc<AtomicBool>);

impl Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

/// Registers a source, and lets a task wait for it. Returns the registration, and the flag that the
/// task's waker sets.
fn wait(driver: &Driver) -> (Registration<Os>, Arc<AtomicBool>) {
    let reactor = driver.inner().open_reactor().unwrap();
    let registration = Registration::new(&reactor, FD, Ready::EMPTY, Removal::Deregister).unwrap();
    let woken = Arc::new(AtomicBool::new(false));
    let waker = Waker::from(std::sync::Arc::new(Flag(woken.clone())));
    let mut cx = Context::from_waker(&waker);
    let ready = registration.poll_ready(&mut cx, Direction::Read);
    assert!(ready.is_pending());
    (registration, woken)
}

/// Fails if a worker enters the reactor without a check of its token.
#[test]
fn unpark_racing_a_wait_in_the_reactor_ends_it() {
    model(|| {
        let driver = Driver::new(1);
        driver.inner().open_reactor().unwrap();
        let mut park = driver.park(0);
        park.park(); // Takes the token of the first socket.
        let waker = park.waker();
        let pusher = thread::spawn(move || waker.wake_by_ref());
        park.park();
        pusher.join().unwrap();
    });
}

/// A worker that waits in the reactor is unparked, while another thread looks in the reactor and
/// may take the wake.
///
/// Fails if the thread that has taken the wake does not wake the reactor again.
#[test]
fn look_racing_an_unpark_passes_the_wake_on() {
    Model::new().bound(3).check(|| {
        let driver = Driver::new(1);
        let reactor = driver.inner().open_reactor().unwrap();
        let mut park = driver.park(0);
        park.park(); // Takes the token of the first socket.
        let waker = park.waker();
        let pusher = thread::spawn(move || waker.wake_by_ref());
        let watcher = {
            let driver = driver.clone();
            let look = move || {
                driver
                    .inner()
                    .look_beside(&reactor, 64, &mut VecDeque::new())
            };
            thread::spawn(look)
        };
        park.park();
        pusher.join().unwrap();
        watcher.join().unwrap();
    });
}

/// A push unparks the worker while an event comes. The worker leaves the role, and takes it again
/// when it parks.
#[test]
fn event_racing_a_push_wakes_its_task() {
    Model::new().bound(3).check(|| {
        let driver = Driver::new(1);
        let (registration, woken) = wait(&driver);
        let mut park = driver.park(0);
        let waker = park.waker();
        let pusher = thread::spawn(move || waker.wake_by_ref());
        let kernel = {
            let reactor = driver.inner().open_reactor().unwrap();
            thread::spawn(move || reactor.sys().event(FD, Ready::READABLE))
        };
        while !woken.load(SeqCst) {
            park.park();
            park.deliver();
        }
        pusher.join().unwrap();
        kernel.join().unwrap();
        assert!(registration.snapshot().is_ready_for(Interest::READABLE));
    });
}

/// Another thread makes the first socket while the only worker parks. The worker then stops waiting
/// on its thread, and waits in the reactor.
///
/// Fails if the thread that makes the first socket unparks nobody.
#[test]
fn first_socket_racing_a_park_is_polled() {
    Model::new().bound(2).check(|| {
        let driver = Driver::new(1);
        let mut park = driver.park(0);
        let other = {
            let driver = driver.clone();
            thread::spawn(move || {
                let (registration, woken) = wait(&driver);
                let reactor = driver.inner().open_reactor().unwrap();
                reactor.sys().event(FD, Ready::READABLE);
                // The worker stops once the task is woken.
                while !woken.load(SeqCst) {
                    thread::yield_now();
                }
                drop(registration);
                driver.threads().unpark(0);
            })
        };
        // Up to three things end a park: the token of the first socket, the event, and the last
        // unpark.
        let mut collected = false;
        while !collected {
            park.park();
            collected = park.has_events();
            park.deliver();
        }
        other.join().unwrap();
    });
}

/// The same with a thread that makes the first socket and unparks nobody: the worker waits on its
/// thread forever.
#[test]
fn first_socket_without_an_unpark_is_not_polled() {
    Model::new().must_fail("deadlock", || {
        let driver = Driver::new(1);
        // This stands for an earlier timer, which activated the role.
        let _ = driver.threads().role.activate();
        let mut park = driver.park(0);
        let other = {
            let driver = driver.clone();
            thread::spawn(move || {
                let poller = &driver.inner().poller;
                poller.open(false).unwrap();
                // Ordering: Relaxed. This thread alone makes sockets.
                poller.is_used.store(true, Relaxed);
                let (registration, _) = wait(&driver);
                let reactor = driver.inner().open_reactor().unwrap();
                reactor.sys().event(FD, Ready::READABLE);
                registration
            })
        };
        while !park.has_events() {
            park.park();
        }
        park.deliver();
        drop(other.join().unwrap());
    });
}

/// Two workers, each with the token of the first socket, park while an event comes. One of them
/// takes the role, and collects the event. The other one finds the role vacant or held.
#[test]
fn second_worker_racing_the_poller_loses_no_event() {
    Model::new().bound(2).check(|| {
        let driver = Driver::new(2);
        let (registration, woken) = wait(&driver);
        let other = {
            let mut park = driver.park(1);
            thread::spawn(move || {
                park.park(); // The token of the first socket.
                park.deliver();
            })
        };
        let mut park = driver.park(0);
        let reactor = driver.inner().open_reactor().unwrap();
        reactor.sys().event(FD, Ready::READABLE);
        park.park(); // The token of the first socket.
        park.deliver();
        other.join().unwrap();
        while !woken.load(SeqCst) {
            park.park();
            park.deliver();
        }
        drop(registration);
    });
}

/// The park of the poller is dropped while another worker parks. That worker must collect an event.
///
/// Fails if the drop of a park unparks no worker, or if either side has no fence.
#[test]
fn event_racing_the_drop_of_the_pollers_park_wakes_its_task() {
    Model::new().bound(3).check(|| {
        let driver = Driver::new(2);
        let (registration, woken) = wait(&driver);
        let [first, mut second] = [0, 1].map(|worker| {
            let mut park = driver.park(worker);
            park.park(); // Takes the token of the first socket.
            assert!(!park.has_events());
            park
        });
        let reactor = driver.inner().open_reactor().unwrap();
        reactor.sys().event(FD, Ready::READABLE);
        // As in a park that does not collect the event.
        assert!(driver.threads().role.try_take(0));
        let other = thread::spawn(move || {
            while !woken.load(SeqCst) {
                second.park();
                second.deliver();
            }
        });
        let _ = driver.threads().role.leave();
        drop(first);
        other.join().unwrap();
        drop(registration);
    });
}
