//! Models of a channel: no wake and no value is lost.
//!
//! "Fails if" names the changes to the code that make a model fail. A lost wake is a deadlock,
//! which fails the model.
use super::{
    Receiver, channel,
    error::{RecvError, TryRecvError},
};
use crate::blocking::block_on;
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::Arc,
    thread,
};

/// Fails if `may_receive` does not look for a value, or if `send` wakes before it puts.
#[test]
fn send_beside_a_wait_wakes_the_receiver() {
    model(|| {
        let (tx, mut rx) = channel(1);
        let sender = thread::spawn(move || {
            tx.send(7).unwrap();
            tx
        });
        assert_eq!(block_on(rx.recv()), Ok(7));
        drop(sender.join().unwrap());
    });
}

/// A send and the end of the channel: the receiver gets the value and then the end. Fails if
/// `drop_sender` does not wake, if `try_recv` does not look for a value after the senders' end, or
/// if the Release of `drop_sender` or the Acquire of `senders` is Relaxed.
#[test]
fn last_send_and_close_beside_receives_come_in_order() {
    model(|| {
        let (tx, mut rx) = channel(1);
        let sender = thread::spawn(move || tx.send(7).unwrap());
        let first = rx.try_recv();
        if first == Err(TryRecvError::Empty) {
            assert_eq!(block_on(rx.recv()), Ok(7));
        } else {
            assert_eq!(first, Ok(7));
        }
        assert_eq!(block_on(rx.recv()), Err(RecvError::Closed));
        sender.join().unwrap();
    });
}

/// Two receivers wait for one value. Fails if `send` wakes one task.
#[test]
fn send_beside_two_waits_wakes_both() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = channel(1);
        let mut other = tx.subscribe();
        let waiting = thread::spawn(move || assert_eq!(block_on(other.recv()), Ok(7)));
        let sending = thread::spawn(move || tx.send(7).unwrap());
        assert_eq!(block_on(rx.recv()), Ok(7));
        waiting.join().unwrap();
        sending.join().unwrap();
    });
}

/// A second receiver is created, and waits, while the last sender is dropped. Fails if
/// `drop_sender` does not take the lock of the tail before it wakes, or if `subscribe` chooses the
/// list after it has counted the receiver.
#[test]
fn new_receiver_beside_the_end_is_woken() {
    model(|| {
        let (tx, rx) = channel::<u8>(1);
        let waiting = thread::spawn(move || {
            let mut second = rx.resubscribe();
            assert_eq!(block_on(second.recv()), Err(RecvError::Closed));
        });
        // The channel ends on this thread, after the join: the checker does not see std's `Arc`.
        let _weak = tx.downgrade();
        drop(tx);
        waiting.join().unwrap();
    });
}

/// Two receivers are created at the same time, and both need the lists. Fails if `make_more`
/// replaces lists that are there.
#[test]
fn two_new_receivers_beside_the_end_are_woken() {
    Model::new().bound(2).check(|| {
        let (tx, rx) = channel::<u8>(1);
        let end = |mut receiver: Receiver<u8>| {
            assert_eq!(block_on(receiver.recv()), Err(RecvError::Closed));
        };
        let second = thread::spawn(move || end(rx.resubscribe()));
        let other = tx.clone();
        let third = thread::spawn(move || {
            let receiver = other.subscribe();
            drop(other);
            end(receiver);
        });
        // As above.
        let _weak = tx.downgrade();
        drop(tx);
        second.join().unwrap();
        third.join().unwrap();
    });
}

/// A second receiver is created while a value is sent: it gets the value or the end. Fails as the
/// model above, or if `send` looks for the lists before it has put the value.
#[test]
fn new_receiver_beside_a_send_gets_the_value_or_the_end() {
    Model::new().bound(3).check(|| {
        let (tx, rx) = channel(1);
        let waiting = thread::spawn(move || {
            let mut second = rx.resubscribe();
            match block_on(second.recv()) {
                Ok(value) => assert_eq!(value, 7),
                Err(error) => assert_eq!(error, RecvError::Closed),
            }
        });
        // As above.
        let _weak = tx.downgrade();
        assert!(tx.send(7).is_ok());
        drop(tx);
        waiting.join().unwrap();
    });
}

/// A receiver is dropped while a value is sent. The value is released: by the receiver, or because
/// the send found one receiver less. Fails if `unsubscribe` gives up no values.
#[test]
fn drop_of_a_receiver_beside_a_send_releases_the_value() {
    model(|| {
        let (tx, mut rx) = channel(1);
        let other = tx.subscribe();
        let dropping = thread::spawn(move || drop(other));
        let receivers = tx.send(7).unwrap();
        assert!(receivers == 1 || receivers == 2);
        assert_eq!(rx.try_recv(), Ok(7));
        dropping.join().unwrap();
        assert!(tx.is_empty());
    });
}

/// Fails if `upgrade` does not compare with zero.
#[test]
fn upgrade_beside_the_last_drop_gives_a_sender_or_none() {
    model(|| {
        let (tx, mut rx) = channel(1);
        let weak = tx.downgrade();
        let dropping = thread::spawn(move || drop(tx));
        let was_closed = rx.try_recv() == Err(TryRecvError::Closed);
        let upgraded = weak.upgrade();
        let is_open = upgraded.is_some();
        assert!(!(was_closed && is_open), "the channel was opened again");
        if let Some(tx) = upgraded {
            tx.send(7).unwrap();
        }
        dropping.join().unwrap();
        if is_open {
            assert_eq!(rx.try_recv(), Ok(7));
        }
        assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    });
}

/// Fails if `unsubscribe` does not wake, or if a wait for the end does not look again under the
/// lock.
#[test]
fn drop_of_the_last_receiver_ends_the_wait_for_it() {
    model(|| {
        let (tx, rx) = channel::<u8>(1);
        let dropping = thread::spawn(move || drop(rx));
        block_on(tx.closed());
        dropping.join().unwrap();
    });
}

/// The last sender's thread writes and drops the sender. An upgrade that fails sees the write.
///
/// Fails if the load of `senders` is Relaxed, or the failed exchange of `upgrade`, or the
/// subtraction of `drop_sender`.
#[test]
fn failed_upgrade_shows_what_came_before_the_end() {
    model(|| {
        let (tx, _rx) = channel::<u8>(1);
        let weak = tx.downgrade();
        let done = Arc::new(AtomicUsize::new(0));
        let other = {
            let done = done.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the channel must order it.
                done.store(1, Relaxed);
                drop(tx);
            })
        };
        if weak.upgrade().is_none() {
            // Ordering: Relaxed, as above.
            assert_eq!(done.load(Relaxed), 1);
        }
        other.join().unwrap();
    });
}
