//! The thread that polls, when the system refuses to start it.
use super::*;
use crate::{
    Driver,
    net::{TcpListener, unix::pipe},
    time,
};
use futures_lite::future::block_on;
use std::{
    cell::Cell,
    future::Future,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    task::{Context, Poll, Wake},
};

thread_local! {
    /// Whether `refuse_thread` fails the next time that this thread calls it.
    static REFUSES: Cell<bool> = const { Cell::new(false) };
}

/// Stands for the refusal of the system.
pub(super) fn refuse_thread() -> io::Result<()> {
    match REFUSES.replace(false) {
        true => Err(io::ErrorKind::WouldBlock.into()),
        false => Ok(()),
    }
}

/// Fails if the reactor is published before its thread has started: then nobody ever polls it.
#[test]
fn reactor_whose_thread_was_refused_is_opened_again() {
    let of_users = || Driver::with_wakers([Waker::noop().clone()]);
    for driver in [Driver::with_polling(1, Polling::Thread), of_users()] {
        REFUSES.set(true);
        let refused = driver.open().map_err(|error| error.kind());
        assert_eq!(refused, Err(io::ErrorKind::WouldBlock));
        assert!(driver.inner().poller.reactor().is_none());
        driver.scope(None, || {
            let (sender, receiver) = pipe::pipe().unwrap();
            assert!(receiver.try_read(&mut [0]).is_err(), "it is empty");
            sender.try_write(b"a").unwrap();
            block_on(receiver.readable()).unwrap();
        });
        driver.shutdown();
    }
}

/// Fails if workers look for the events of sockets that a thread of the driver polls: that thread
/// does not record its polls, so the workers would always count as due.
#[test]
fn workers_that_park_elsewhere_are_never_due_for_sockets() {
    let driver = Driver::with_wakers([Waker::noop().clone()]);
    driver.open().unwrap();
    let _ = driver.threads().role.activate(); // As the first timer does.
    std::thread::sleep(2 * INTERVAL);
    assert!(!driver.is_due());
    driver.shutdown();
}

/// Drops drivers that never had a park. Fails if a thread that polls does not end, and so keeps its
/// reactor with the descriptors.
#[test]
fn drop_of_the_last_handle_ends_the_polling_thread() {
    let of_users = || Driver::with_wakers([Waker::noop().clone()]);
    for driver in [Driver::with_polling(1, Polling::Thread), of_users()] {
        driver.open().unwrap();
        let reactor = Arc::downgrade(driver.inner().poller.reactor().unwrap());
        let other = driver.clone();
        drop(driver);
        other.open().unwrap(); // The driver still has a handle.
        drop(other);
        let begun = Instant::now();
        while reactor.strong_count() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(600));
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A waker that counts its calls, and panics at each.
struct Loud(AtomicUsize);

impl Wake for Loud {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
        panic!("a waker");
    }
}

/// Drops a driver that never had a park. Fails if a sleep stays armed in one of its wheels: nobody
/// would ever fire it, not even after a poll in another driver. Also fails if the panic of a waker
/// comes out of the drop.
#[test]
fn drop_of_the_last_handle_wakes_sleeps() {
    let loud = Arc::new(Loud(AtomicUsize::new(0)));
    let waker = Waker::from(loud.clone());
    let mut cx = Context::from_waker(&waker);
    let driver = Driver::new(1);
    let mut millis = 5;
    let sleep = loop {
        let mut sleep = Box::pin(time::sleep(Duration::from_millis(millis)));
        if driver
            .scope(None, || sleep.as_mut().poll(&mut cx))
            .is_pending()
        {
            break sleep;
        }
        // On a busy machine a short sleep may be over already.
        millis *= 2;
    };
    drop(driver);
    assert_eq!(loud.0.load(SeqCst), 1);
    Driver::new(1).park(0).block_on(sleep);
}

/// Drops a driver that never had a park while a task accepts. Fails if the listener keeps the
/// driver: then the task waits forever, and the task and the driver keep each other.
#[test]
fn drop_of_the_last_handle_ends_an_accept() {
    let loud = Arc::new(Loud(AtomicUsize::new(0)));
    let waker = Waker::from(loud.clone());
    let mut cx = Context::from_waker(&waker);
    let driver = Driver::new(1);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = driver.scope(None, || TcpListener::from_std(listener).unwrap());
    let mut accept = Box::pin(listener.accept());
    assert!(accept.as_mut().poll(&mut cx).is_pending());
    drop(driver);
    assert_eq!(loud.0.load(SeqCst), 1);
    assert!(matches!(accept.as_mut().poll(&mut cx), Poll::Ready(Err(_))));
}

/// Fails if the panic of a socket's waker keeps a shutdown from the timers: their tasks would wait
/// forever.
#[test]
fn shutdown_with_a_panicking_waker_ends_sockets_and_timers() {
    let loud = Arc::new(Loud(AtomicUsize::new(0)));
    let waker = Waker::from(loud.clone());
    let mut cx = Context::from_waker(&waker);
    let mut sleep = Box::pin(time::sleep(Duration::from_secs(3_600)));
    let driver = Driver::new(1);
    let _pipe = driver.scope(None, || {
        let (sender, receiver) = pipe::pipe().unwrap();
        receiver.try_read(&mut [0]).unwrap_err(); // The receiver assumed that there are bytes.
        assert!(receiver.poll_read_ready(&mut cx).is_pending());
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        (receiver, sender)
    });
    panics::catch(|| driver.shutdown()).unwrap_err();
    assert_eq!(loud.0.load(SeqCst), 2);
}

/// Fails if a driver that was opened before its shutdown says that it can be opened again.
#[test]
fn opened_driver_cannot_be_opened_after_its_shutdown() {
    for opened_before in [false, true] {
        let driver = Driver::new(1);
        if opened_before {
            driver.open().unwrap();
            driver.open().unwrap();
        }
        driver.shutdown();
        driver.open().unwrap_err();
    }
}

/// Fails if one of several workers looks as often as an only worker, or an only worker as seldom as
/// one of several.
#[test]
fn only_worker_looks_most_often() {
    let interval = |workers| Driver::new(workers).inner().poller.interval;
    assert_eq!(interval(1), INTERVAL_OF_ONLY_WORKER);
    assert_eq!(interval(2), INTERVAL);
}

/// Fails if a thread that asks only for late events gets those that a worker will soon look for.
#[test]
fn sockets_are_late_only_after_that_time() {
    let driver = Driver::new(1);
    driver.inner().open_reactor().unwrap(); // As the first socket does.
    std::thread::sleep(INTERVAL_OF_ONLY_WORKER);
    let hour = Duration::from_secs(3600);
    assert!(driver.is_due());
    assert!(!driver.inner().is_due_for(hour));
    assert!(driver.inner().is_due_for(INTERVAL_OF_ONLY_WORKER));
}

/// `collect_all` stops after a wait that returns fewer events than it asked for. Fails if it asks
/// for more events than a wait ever returns.
#[test]
fn number_of_events_is_at_most_that_of_a_wait() {
    let driver = Driver::new(1);
    for (set, max) in [(1, 1), (1 << 16, 1 << 16), (usize::MAX, 1 << 16)] {
        driver.set_max_events(set);
        assert_eq!(driver.inner().poller.max_events(), max);
    }
}
