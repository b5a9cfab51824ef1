//! Models of the two ends of a connection against each other.
//!
//! "Fails if" names the changes to the code that make a model fail. An end that has acted on a
//! thread comes back from it, as its drop would wake the other end.
use super::*;
use crate::testing::{Woken, read_one, write_one};
use std::task::Waker;
use sync_shim::{model, thread};

/// Fails if `poll` puts a waker into the pipe without another call after it has cloned the waker,
/// or if `Pipe::write` leaves the reader's waker.
#[test]
fn write_beside_read_is_read_or_wakes() {
    model(|| {
        let (mut near, mut far) = duplex(1);
        let (woken, waker) = Woken::new();
        let writer = thread::spawn(move || {
            assert!(write_one(&mut near, 7, Waker::noop()).is_ready());
            near
        });
        let first = read_one(&mut far, &waker);
        let _near = writer.join().unwrap();
        if first.is_pending() {
            assert!(woken.was_woken());
            let again = read_one(&mut far, &waker);
            assert!(matches!(again, Poll::Ready(Ok(Some(7)))));
        }
    });
}

/// Fails if `poll` puts a waker into the pipe without another call after it has cloned the waker,
/// or if `Pipe::read` leaves the writer's waker.
#[test]
fn read_beside_write_makes_room_or_wakes() {
    model(|| {
        let (mut near, mut far) = duplex(1);
        assert!(write_one(&mut near, 1, Waker::noop()).is_ready());
        let (woken, waker) = Woken::new();
        let reader = thread::spawn(move || {
            assert!(read_one(&mut far, Waker::noop()).is_ready());
            far
        });
        let first = write_one(&mut near, 2, &waker);
        let _far = reader.join().unwrap();
        if first.is_pending() {
            assert!(woken.was_woken());
            assert!(write_one(&mut near, 2, &waker).is_ready());
        }
    });
}

/// Fails if the last waker does not replace the one before.
#[test]
fn write_beside_a_change_of_wakers_wakes_the_last() {
    model(|| {
        let (mut near, mut far) = duplex(1);
        assert!(read_one(&mut far, &Woken::new().1).is_pending());
        let (woken, waker) = Woken::new();
        let writer = thread::spawn(move || {
            assert!(write_one(&mut near, 7, Waker::noop()).is_ready());
            near
        });
        let second = read_one(&mut far, &waker);
        let _near = writer.join().unwrap();
        assert!(second.is_ready() || woken.was_woken());
    });
}

/// Fails if the drop does not close the outgoing pipe, or if `Pipe::close` leaves the reader's
/// waker.
#[test]
fn drop_beside_read_ends_it_or_wakes() {
    model(|| {
        let (near, mut far) = duplex(1);
        let (woken, waker) = Woken::new();
        let dropper = thread::spawn(move || drop(near));
        let first = read_one(&mut far, &waker);
        dropper.join().unwrap();
        assert!(first.is_ready() || woken.was_woken());
        assert!(matches!(read_one(&mut far, &waker), Poll::Ready(Ok(None))));
    });
}

/// Fails if the drop does not close the incoming pipe, or if `Pipe::close` leaves the writer's
/// waker.
#[test]
fn drop_beside_write_that_waits_fails_it_or_wakes() {
    model(|| {
        let (near, mut far) = duplex(1);
        assert!(write_one(&mut far, 1, Waker::noop()).is_ready());
        let (woken, waker) = Woken::new();
        let dropper = thread::spawn(move || drop(near));
        let first = write_one(&mut far, 2, &waker);
        dropper.join().unwrap();
        assert!(first.is_ready() || woken.was_woken());
        assert!(matches!(
            write_one(&mut far, 2, &waker),
            Poll::Ready(Err(_))
        ));
    });
}
