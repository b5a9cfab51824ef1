//! Models of a channel: no change and no wake is lost.
//!
//! "Fails if" names the changes to the code that make a model fail. A lost wake is a deadlock,
//! which fails the model.
use super::channel;
use crate::blocking::block_on;
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::Arc,
    thread,
};

/// Something outside of the channel that happens before a step on the channel, which must order it.
#[derive(Clone)]
struct Before(Arc<AtomicUsize>);

impl Before {
    fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(0)))
    }

    fn happens(&self) {
        // Ordering: Relaxed, the channel must order it.
        self.0.fetch_add(1, Relaxed);
    }

    fn times(&self) -> usize {
        // Ordering: Relaxed, as above.
        self.0.load(Relaxed)
    }
}

/// Fails if `changed` does not look again under the lock, if `modify` wakes before it raises the
/// version, or if the Release of the store in `modify` or the Acquire of `version` is Relaxed.
///
/// Of `lists.rs`: fails if the Release of `wake_all` or the Acquire of `mark_used`
/// is Relaxed, if the read of `used` is a load, or if `may_be_met` looks at the version before it
/// marks the list.
#[test]
fn send_beside_a_wait_ends_it() {
    model(|| {
        let (tx, mut rx) = channel(0);
        let before = Before::new();
        let sender = {
            let before = before.clone();
            thread::spawn(move || {
                before.happens();
                tx.send(1).unwrap();
                tx
            })
        };
        block_on(rx.changed()).unwrap();
        assert_eq!((before.times(), *rx.borrow()), (1, 1));
        drop(sender.join().unwrap());
        assert!(block_on(rx.changed()).is_err());
    });
}

/// The receiver sees the last value, and then the end. Fails if `drop_sender` does not wake, if
/// `changed` looks at the end before the version, or if the Release of `CLOSED` is Relaxed. Also
/// fails if the bit of an empty list is cleared after the list's lock is released.
#[test]
fn last_send_and_close_beside_a_wait_come_in_order() {
    Model::new().bound(3).check(|| {
        let (tx, mut rx) = channel(0);
        let before = Before::new();
        let sender = {
            let before = before.clone();
            thread::spawn(move || {
                tx.send(1).unwrap();
                before.happens();
                drop(tx);
            })
        };
        block_on(rx.changed()).unwrap();
        assert_eq!(*rx.borrow(), 1);
        assert!(block_on(rx.changed()).is_err());
        assert_eq!(before.times(), 1);
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

/// The two receivers wait in different lists. Fails if a send wakes one task, or the tasks of one
/// list.
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

/// Two receivers are dropped: the wait ends after both. Fails if `drop_receiver` does not wake, if
/// the wait does not look again under the lock, or if the Release of `drop_receiver` or the Acquire
/// of `receivers` is Relaxed.
#[test]
fn drops_of_two_receivers_end_the_wait_for_them() {
    model(|| {
        let (tx, rx) = channel(0);
        let before = Before::new();
        let dropping = {
            let (other, before) = (rx.clone(), before.clone());
            thread::spawn(move || {
                before.happens();
                drop(other);
            })
        };
        drop(rx);
        block_on(tx.closed());
        assert_eq!(before.times(), 1);
        dropping.join().unwrap();
    });
}

/// Two senders are dropped: one of them ends the channel, after both. Fails if the Release or the
/// Acquire of `drop_sender` is Relaxed.
#[test]
fn drops_of_two_senders_end_the_channel_after_both() {
    Model::new().bound(2).check(|| {
        let (tx, mut rx) = channel(0);
        let before = Before::new();
        let sender = {
            let (other, before) = (tx.clone(), before.clone());
            thread::spawn(move || {
                before.happens();
                drop(other);
            })
        };
        let closer = {
            let before = before.clone();
            thread::spawn(move || {
                before.happens();
                drop(tx);
            })
        };
        assert!(block_on(rx.changed()).is_err());
        assert_eq!(before.times(), 2);
        sender.join().unwrap();
        closer.join().unwrap();
    });
}
