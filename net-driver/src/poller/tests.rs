//! The thread that polls, when the system refuses to start it.
use super::*;
use crate::net::unix::pipe;
use futures_lite::future::block_on;
use std::cell::Cell;

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

/// Fails if workers look for the events of sockets that a thread of the driver polls: no look of
/// theirs would ever be the last for long.
#[test]
fn workers_that_park_elsewhere_are_never_due_for_sockets() {
    let driver = Driver::with_wakers([Waker::noop().clone()]);
    driver.open().unwrap();
    let _ = driver.inner().role.activate(); // As the first timer does.
    std::thread::sleep(2 * INTERVAL);
    assert!(!driver.is_due());
    driver.shutdown();
}
