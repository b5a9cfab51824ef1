//! Models of the ring: each value is got by each of its receivers or replaced, and is dropped once.
//!
//! "Fails if" names the changes to the code that make a model fail. The values are the model's own
//! `Arc`s: it reports one that is leaked, or used after its drop.
use super::*;
use sync_shim::{Model, model, sync::Arc, thread};

type Values = Arc<Ring<Arc<u64>>>;

fn ring(capacity: usize) -> Values {
    Arc::new(Ring::new(capacity))
}

fn put(ring: &Values, position: u64, receivers: usize) -> Option<u64> {
    // SAFETY: in each scenario one thread puts, in order.
    let replaced = unsafe { ring.put(position, Arc::new(position), receivers) };
    replaced.map(|value| *value)
}

fn take(ring: &Values, position: u64) -> Result<u64, Missing> {
    // SAFETY: in each scenario as many threads take a position as the put counts.
    unsafe { ring.take(position) }.map(|value| *value)
}

/// Two receivers take one value: one clones it, and the last takes it itself. Then the sender puts
/// the next one without the lock. Fails if the Release of `unlock` is Relaxed, if `put` loads
/// `left` Relaxed, if `take` does not wait while `OUT` is set, or if a receiver that sleeps until
/// the value is back is not woken.
#[test]
fn two_takes_release_the_value() {
    model(|| {
        let ring = ring(1);
        assert_eq!(put(&ring, 0, 2), None);
        let other = {
            let ring = ring.clone();
            thread::spawn(move || assert_eq!(take(&ring, 0), Ok(0)))
        };
        assert_eq!(take(&ring, 0), Ok(0));
        if ring.unreleased(1) == 0 {
            assert_eq!(put(&ring, 1, 1), None);
            assert_eq!(take(&ring, 1), Ok(1));
        }
        other.join().unwrap();
    });
}

/// A receiver takes a value while it is put. Fails if the store of the position or the load in
/// `missing` is Relaxed, or if the position is stored before the value.
#[test]
fn take_beside_a_put_gets_the_value_or_none() {
    model(|| {
        let ring = ring(2);
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || assert_eq!(put(&ring, 0, 1), None))
        };
        let taken = take(&ring, 0);
        sender.join().unwrap();
        if let Err(missing) = taken {
            assert_eq!(missing, Missing::Unsent);
            assert_eq!(take(&ring, 0), Ok(0));
        }
    });
}

/// A receiver takes a value while it is replaced. Fails if `enter` does not look at the position
/// again under the lock, or if `put` takes no lock.
#[test]
fn take_beside_a_replacement_gets_the_value_or_lags() {
    model(|| {
        let ring = ring(1);
        assert_eq!(put(&ring, 0, 1), None);
        let sender = {
            let ring = ring.clone();
            thread::spawn(move || put(&ring, 1, 1))
        };
        let taken = take(&ring, 0);
        let replaced = sender.join().unwrap();
        match taken {
            Ok(value) => assert_eq!((value, replaced), (0, None)),
            Err(missing) => {
                assert_eq!((missing, replaced), (Missing::Replaced, Some(0)));
            }
        }
        assert_eq!(take(&ring, 1), Ok(1));
    });
}

/// A receiver that lags looks at a slot while the sender puts into it without the lock: the value
/// before was released. Fails if `write` stores the number and does not add it.
#[test]
fn lagging_take_beside_a_put_without_the_lock_lags() {
    Model::new().bound(3).check(|| {
        let ring = ring(1);
        // This receiver is counted for position 0, which position 1 replaces.
        assert_eq!(put(&ring, 0, 1), None);
        let lagging = {
            let ring = ring.clone();
            thread::spawn(move || take(&ring, 0))
        };
        let replaced = put(&ring, 1, 1);
        assert_eq!(take(&ring, 1), Ok(1));
        assert_eq!(put(&ring, 2, 1), None);
        let taken = lagging.join().unwrap();
        assert_eq!(taken.is_ok(), replaced.is_none());
        assert_eq!(take(&ring, 2), Ok(2));
    });
}

/// A receiver clones a value while it is replaced. Fails if `put` reads a value that is out, or
/// leaves `OUT` set, or if the receiver puts the value back where another one is.
#[test]
fn clone_beside_a_replacement_drops_the_value_once() {
    model(|| {
        let ring = ring(1);
        assert_eq!(put(&ring, 0, 2), None);
        let receiver = {
            let ring = ring.clone();
            thread::spawn(move || take(&ring, 0))
        };
        // No value, if it is out: then the receiver drops it.
        let replaced = put(&ring, 1, 1);
        let taken = receiver.join().unwrap();
        match taken {
            Ok(value) => assert_eq!((value, replaced.unwrap_or(0)), (0, 0)),
            Err(missing) => {
                assert_eq!((missing, replaced), (Missing::Replaced, Some(0)));
            }
        }
        assert_eq!(take(&ring, 0), Err(Missing::Replaced));
        assert_eq!(take(&ring, 1), Ok(1));
        assert_eq!(ring.unreleased(2), 0);
    });
}

/// A receiver clones a value while the only other one gives it up. Fails if the first one puts the
/// value back although it is the last, or if the other one waits for the clone.
#[test]
fn clone_beside_a_skip_releases_the_value() {
    model(|| {
        let ring = ring(1);
        assert_eq!(put(&ring, 0, 2), None);
        let receiver = {
            let ring = ring.clone();
            thread::spawn(move || assert_eq!(take(&ring, 0), Ok(0)))
        };
        // SAFETY: two receivers are counted.
        let skipped = unsafe { ring.skip(0) }.unwrap();
        assert!(skipped.is_none_or(|value| *value == 0));
        receiver.join().unwrap();
        assert_eq!(ring.unreleased(1), 0);
        assert_eq!(put(&ring, 1, 1), None);
        assert_eq!(take(&ring, 1), Ok(1));
    });
}
