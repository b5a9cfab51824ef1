//! Models of a channel: no change and no wake is lost.
//!
//! "Fails if" names the changes to the code that make a model fail. A lost wake is a deadlock, which
//! fails the model.
use super::channel;
use crate::blocking::block_on;
use sync_shim::{Model, model, thread};

/// The receiver waits for two changes, of which it may see only the last. Fails if `changed` does
/// not look again under the lock, or if `modify` wakes before it raises the version.
#[test]
fn sends_beside_waits_are_seen() {
    model(|| {
        let (tx, mut rx) = channel(0);
        let sender = thread::spawn(move || {
            tx.send(1).unwrap();
            tx
        });
        block_on(rx.changed()).unwrap();
        assert_eq!(*rx.borrow(), 1);
        drop(sender.join().unwrap());
        assert!(block_on(rx.changed()).is_err());
    });
}

/// The receiver sees the last value, and then the end. Fails if `drop_sender` does not wake, or if
/// `changed` looks at the end before the version.
#[test]
fn last_send_and_close_beside_a_wait_come_in_order() {
    model(|| {
        let (tx, mut rx) = channel(0);
        let sender = thread::spawn(move || tx.send(1).unwrap());
        block_on(rx.changed()).unwrap();
        assert_eq!(*rx.borrow(), 1);
        assert!(block_on(rx.changed()).is_err());
        sender.join().unwrap();
    });
}

/// A reader sees the value and its version together. Fails if the version is raised after the
/// unlock.
#[test]
fn borrow_beside_a_send_has_the_version_of_its_value() {
    model(|| {
        let (tx, mut rx) = channel(0);
        let sender = thread::spawn(move || {
            tx.send_modify(|value| *value += 1);
            tx
        });
        let seen = *rx.borrow_and_update();
        let tx = sender.join().unwrap();
        assert_eq!(rx.has_changed().unwrap(), seen == 0);
        drop(tx);
    });
}

/// Two senders change the value in turns. Fails if `modify` reads the version before it locks.
#[test]
fn two_senders_raise_the_version_twice() {
    model(|| {
        let (tx, mut rx) = channel(0);
        let other = tx.clone();
        let sender = thread::spawn(move || other.send_modify(|value| *value += 1));
        tx.send_modify(|value| *value += 1);
        let seen = *rx.borrow_and_update();
        assert!(seen == 1 || seen == 2);
        sender.join().unwrap();
        assert_eq!(rx.has_changed().unwrap(), seen == 1);
        assert_eq!(*rx.borrow(), 2);
    });
}

/// Fails if a send wakes one task.
#[test]
fn send_beside_two_waits_wakes_both() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = channel(0);
        let mut other = rx.clone();
        let waiting = thread::spawn(move || block_on(other.changed()).unwrap());
        let sending = thread::spawn(move || {
            tx.send(1).unwrap();
            tx
        });
        block_on(rx.changed()).unwrap();
        waiting.join().unwrap();
        drop(sending.join().unwrap());
    });
}

/// Fails if `drop_receiver` does not wake, or if the wait does not look again under the lock.
#[test]
fn drop_of_the_last_receiver_ends_the_wait_for_it() {
    model(|| {
        let (tx, rx) = channel(0);
        let dropping = thread::spawn(move || drop(rx));
        block_on(tx.closed());
        assert!(tx.is_closed());
        dropping.join().unwrap();
    });
}

/// Two senders are dropped: one of them ends the channel. Fails if the Release or the Acquire of
/// `drop_sender` is Relaxed.
#[test]
fn drops_of_two_senders_end_the_channel_after_the_last_send() {
    model(|| {
        let (tx, mut rx) = channel(0);
        let other = tx.clone();
        let sender = thread::spawn(move || other.send(1).unwrap());
        drop(tx);
        block_on(rx.changed()).unwrap();
        assert_eq!(*rx.borrow(), 1);
        assert!(block_on(rx.changed()).is_err());
        sender.join().unwrap();
    });
}
