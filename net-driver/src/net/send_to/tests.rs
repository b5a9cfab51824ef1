use super::*;
use crate::{Driver, Ready, registration::Removal};
use std::{future::Future, os::unix::net::UnixDatagram, pin::pin, task::Waker};

/// Fails if the error `Interrupted` ends the send, or counts as a failure that a pause follows.
#[test]
fn interrupted_send_to_is_tried_again() {
    let driver = Driver::new(1);
    let (one, _other) = UnixDatagram::pair().unwrap();
    let source = Source::new_in(&driver, one, Ready::WRITABLE, Removal::Deregister).unwrap();
    let mut interruptions = 3;
    let op = || {
        if interruptions > 0 {
            interruptions -= 1;
            return Err(io::ErrorKind::Interrupted.into());
        }
        Ok(7)
    };
    let driver = driver.downgrade();
    let mut send = pin!(source.send_to(&driver, op));
    let polled = send.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Ready(Ok(7))));
}
