use super::*;
use std::sync::Arc;

fn poll<R>(receiver: &mut Receiver<R>) -> Poll<Result<R, ()>> {
    receiver.poll(&Context::from_waker(Waker::noop()))
}

#[test]
fn value_reaches_a_receiver_that_polls_later() {
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver).is_pending());
    assert!(!sender.is_abandoned());
    sender.send("value".to_owned()).unwrap();
    assert_eq!(poll(&mut receiver), Poll::Ready(Ok("value".to_owned())));
    assert_eq!(poll(&mut receiver), Poll::Ready(Err(())));
}

#[test]
fn value_without_a_receiver_is_handed_back() {
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver).is_pending());
    drop(receiver);
    assert!(sender.is_abandoned());
    assert_eq!(sender.send("value".to_owned()), Err("value".to_owned()));
}

/// Fails if an end leaks or drops the value twice.
#[test]
fn value_that_nobody_takes_is_dropped_once() {
    let value = Arc::new(());
    let (sender, receiver) = channel();
    sender.send(value.clone()).unwrap();
    assert_eq!(Arc::strong_count(&value), 2);
    drop(receiver);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn receiver_of_a_dropped_sender_gets_an_error() {
    let (sender, mut receiver) = channel::<u8>();
    drop(sender);
    assert_eq!(poll(&mut receiver), Poll::Ready(Err(())));
}
