//! Tests of a channel on one thread, some with a second one.
use super::{Receiver, Sender, channel, error::SendError};
use crate::testing::{Random, Woken, now, poll, seeds};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::{Poll, Wake, Waker},
};

#[test]
fn waiting_receivers_are_woken_once_each() {
    let (tx, mut rx) = channel(0);
    let mut other = rx.clone();
    let (woken, waker) = Woken::new();
    let mut waits = [Box::pin(rx.changed()), Box::pin(other.changed())];
    for wait in &mut waits {
        assert!(poll(wait, &waker).is_pending());
    }
    tx.send(1).unwrap();
    tx.send(2).unwrap();
    assert_eq!(woken.take(), 2);
    for wait in &mut waits {
        assert!(matches!(poll(wait, &waker), Poll::Ready(Ok(()))));
    }
    drop(waits);
    assert!(!rx.has_changed().unwrap());
    assert_eq!((*rx.borrow(), *other.borrow()), (2, 2));
}

/// A wait that is dropped after any number of polls counts no change as seen.
#[test]
fn dropped_waits_lose_no_change() {
    for polls in 0..3 {
        let (tx, mut rx) = channel(0);
        {
            let mut wait = Box::pin(rx.changed());
            for _ in 0..polls {
                assert!(poll(&mut wait, Waker::noop()).is_pending());
            }
            tx.send(1).unwrap();
        }
        assert!(rx.has_changed().unwrap());
        now(rx.changed()).unwrap();
        assert!(!rx.has_changed().unwrap());
    }
}

#[test]
fn send_without_a_receiver_keeps_the_value() {
    let (tx, rx) = channel(1);
    drop(rx);
    assert_eq!(tx.send(2), Err(SendError(2)));
    assert_eq!(*tx.borrow(), 1);
    assert_eq!(tx.send_replace(3), 1);
    let mut rx = tx.subscribe();
    assert!(poll(&mut Box::pin(rx.changed()), Waker::noop()).is_pending());
    assert_eq!(*rx.borrow(), 3);
}

#[test]
fn panic_of_a_closure_unlocks_and_changes_no_version() {
    let (tx, mut rx) = channel(1);
    let sent = catch_unwind(AssertUnwindSafe(|| tx.send_modify(|_| panic!("modify"))));
    assert!(sent.is_err());
    assert!(!rx.has_changed().unwrap());
    let waited = catch_unwind(AssertUnwindSafe(|| {
        now(rx.wait_for(|_| panic!("wait_for"))).is_ok()
    }));
    assert!(waited.is_err());
    tx.send(2).unwrap();
    assert_eq!(*rx.borrow_and_update(), 2);
}

#[test]
fn wait_for_looks_at_the_present_value_and_each_new_one() {
    let (tx, mut rx) = channel(1);
    {
        let found = now(rx.wait_for(|n| *n == 1)).unwrap();
        assert!(!found.has_changed());
    }
    let (woken, waker) = Woken::new();
    let mut seen = Vec::new();
    {
        let mut wait = Box::pin(rx.wait_for(|n| {
            seen.push(*n);
            *n == 4
        }));
        assert!(poll(&mut wait, &waker).is_pending());
        for n in 2..4 {
            tx.send(n).unwrap();
            assert_eq!(woken.take(), 1);
            assert!(poll(&mut wait, &waker).is_pending());
        }
        tx.send(4).unwrap();
        let Poll::Ready(Ok(found)) = poll(&mut wait, &waker) else {
            panic!("the value is there");
        };
        assert!(found.has_changed());
    }
    assert_eq!(seen, [1, 2, 3, 4]);
    assert!(!rx.has_changed().unwrap());
}

#[test]
fn wait_for_looks_at_the_last_value_of_a_closed_channel() {
    let (tx, mut rx) = channel(1);
    tx.send(2).unwrap();
    drop(tx);
    assert!(now(rx.wait_for(|n| *n == 2)).is_ok());
    assert!(now(rx.wait_for(|n| *n == 2)).is_ok());
    assert!(now(rx.wait_for(|n| *n == 1)).is_err());
}

#[test]
fn changed_returns_the_last_value_before_the_end() {
    let (tx, mut rx) = channel(1);
    let other = tx.clone();
    tx.send(2).unwrap();
    drop((tx, other));
    assert!(rx.has_changed().is_err());
    assert!(now(rx.changed()).is_ok());
    assert!(now(rx.changed()).is_err());
    rx.mark_changed();
    assert!(now(rx.changed()).is_ok());
}

#[test]
fn last_sender_wakes_the_waiting_receivers() {
    let (tx, mut rx) = channel(1);
    let (woken, waker) = Woken::new();
    let mut wait = Box::pin(rx.changed());
    assert!(poll(&mut wait, &waker).is_pending());
    drop(tx.clone());
    assert_eq!(woken.take(), 0);
    drop(tx);
    assert_eq!(woken.take(), 1);
    assert!(matches!(poll(&mut wait, &waker), Poll::Ready(Err(_))));
}

#[test]
fn closed_waits_for_the_last_receiver_and_looks_again() {
    let (tx, rx) = channel(1);
    let (woken, waker) = Woken::new();
    let mut closed = Box::pin(tx.closed());
    assert!(poll(&mut closed, &waker).is_pending());
    drop(rx);
    assert_eq!(woken.take(), 1);
    let rx = tx.subscribe();
    assert!(poll(&mut closed, &waker).is_pending());
    drop(rx);
    assert!(poll(&mut closed, &waker).is_ready());
}

#[test]
fn references_share_the_lock() {
    let (tx, mut rx) = channel(1);
    let other = rx.clone();
    let (a, b, c) = (tx.borrow(), other.borrow(), rx.borrow_and_update());
    assert_eq!((*a, *b, *c), (1, 1, 1));
}

#[test]
fn old_value_is_dropped_outside_of_the_lock() {
    struct Reentrant(Option<(Sender<Reentrant>, Receiver<Reentrant>)>);
    impl Drop for Reentrant {
        fn drop(&mut self) {
            if let Some((tx, rx)) = self.0.take() {
                assert!(tx.borrow().0.is_none());
                assert!(rx.has_changed().unwrap());
                tx.send_replace(Reentrant(None));
            }
        }
    }
    let (tx, rx) = channel(Reentrant(None));
    let value = Reentrant(Some((tx.clone(), rx.clone())));
    tx.send(value).map_err(drop).unwrap();
    tx.send(Reentrant(None)).map_err(drop).unwrap();
    drop(rx);
}

#[test]
fn waker_that_uses_the_channel_is_harmless() {
    struct Reentrant(Sender<u32>);
    impl Wake for Reentrant {
        fn wake(self: Arc<Self>) {
            if *self.0.borrow() < 3 {
                self.0.send_modify(|n| *n += 1);
            }
        }
    }
    let (tx, mut rx) = channel(0);
    let waker = Waker::from(Arc::new(Reentrant(tx.clone())));
    let mut wait = Box::pin(rx.changed());
    assert!(poll(&mut wait, &waker).is_pending());
    tx.send(1).unwrap();
    assert!(poll(&mut wait, &waker).is_ready());
    drop(wait);
    assert_eq!(*rx.borrow(), 2);
}

/// Two threads read while two change the value: each reader sees a value that is whole, and
/// versions in order.
#[test]
fn threads_see_whole_values_in_order() {
    let (tx, rx) = channel((0_u64, 0_u64));
    let changes = if cfg!(debug_assertions) {
        2_000
    } else {
        50_000
    };
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let mut rx = rx.clone();
            std::thread::spawn(move || {
                let mut last = 0;
                while crate::blocking::block_on(rx.changed()).is_ok() {
                    let (a, b) = *rx.borrow_and_update();
                    assert_eq!(a, b);
                    assert!(a >= last);
                    last = a;
                }
                last
            })
        })
        .collect();
    let writers = [tx.clone(), tx].map(|tx| {
        std::thread::spawn(move || {
            for _ in 0..changes {
                tx.send_modify(|value| {
                    value.0 += 1;
                    value.1 += 1;
                });
            }
        })
    });
    for writer in writers {
        writer.join().unwrap();
    }
    for reader in readers {
        assert_eq!(reader.join().unwrap(), 2 * changes);
    }
}

/// Random operations on a channel and on a model: the number of changes, and what each receiver has
/// seen.
fn compare(seed: u64, operations: usize) {
    let mut random = Random::new(seed);
    let (tx, rx) = channel(0);
    let (mut value, mut changes) = (0, 0);
    let mut receivers: Vec<(Receiver<usize>, usize)> = vec![(rx, 0)];
    for n in 1..=operations {
        let chosen = random.below(receivers.len().max(1));
        let few = receivers.len() < 5;
        match (random.below(12), receivers.get_mut(chosen)) {
            (0, _) => {
                assert_eq!(tx.send(n).is_ok(), !receivers.is_empty());
                if !receivers.is_empty() {
                    (value, changes) = (n, changes + 1);
                }
            }
            (1, _) => {
                assert_eq!(tx.send_replace(n), value);
                (value, changes) = (n, changes + 1);
            }
            (2, _) => {
                let changed = n % 2 == 0;
                let modified = tx.send_if_modified(|value| {
                    *value = n;
                    changed
                });
                assert_eq!(modified, changed);
                (value, changes) = (n, changes + usize::from(changed));
            }
            (3, _) if few => receivers.push((tx.subscribe(), changes)),
            (4, Some(_)) => drop(receivers.swap_remove(chosen)),
            (5, Some((rx, seen))) if few => {
                let clone = (rx.clone(), *seen);
                receivers.push(clone);
            }
            (6, Some((rx, seen))) => {
                let found = rx.borrow_and_update();
                assert_eq!((*found, found.has_changed()), (value, *seen != changes));
                *seen = changes;
            }
            (7, Some((rx, seen))) => {
                rx.mark_unchanged();
                *seen = changes;
            }
            (8, Some((rx, seen))) => {
                rx.mark_changed();
                *seen = usize::MAX;
            }
            (9 | 10, Some((rx, seen))) => {
                let polled = poll(&mut Box::pin(rx.changed()), Waker::noop());
                assert_eq!(polled.is_ready(), *seen != changes);
                *seen = changes;
            }
            (11, Some((rx, seen))) => {
                let polled = poll(&mut Box::pin(rx.wait_for(|n| n % 2 == 0)), Waker::noop());
                assert_eq!(polled.is_ready(), value % 2 == 0);
                *seen = changes;
            }
            _ => {}
        }
        assert_eq!(tx.receiver_count(), receivers.len());
        for (rx, seen) in &receivers {
            assert_eq!(rx.has_changed().unwrap(), *seen != changes);
            assert_eq!(*rx.borrow(), value);
        }
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    seeds(500).for_each(|seed| compare(seed, 500));
}

#[test]
fn waiting_futures_are_small() {
    let (tx, mut rx) = channel(0_u64);
    assert!(size_of_val(&rx.changed()) <= size_of::<[usize; 8]>());
    assert!(size_of_val(&tx.closed()) <= 7 * size_of::<usize>());
}
