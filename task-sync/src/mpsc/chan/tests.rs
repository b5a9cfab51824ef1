//! Tests of the bounds on handles: as if most of them had been forgotten.
use super::{super::handle::channel, *};
use std::panic::catch_unwind;

/// Runs `f` while the count is what `change` makes of it, and checks that it is unchanged then.
fn within(count: &AtomicUsize, counted: usize, f: impl FnOnce()) {
    // Ordering: Relaxed, there is one thread.
    let before = count.swap(counted, Relaxed);
    f();
    // Ordering: as above.
    assert_eq!(count.swap(before, Relaxed), counted);
}

#[test]
fn senders_beyond_the_limit_panic() {
    let (tx, _rx) = channel::<u8, false>(0);
    let weak = tx.downgrade();
    within(&tx.strong, MOST_HANDLES, || {
        assert!(catch_unwind(|| tx.clone()).is_err());
        assert!(catch_unwind(|| weak.upgrade()).is_err());
    });
    within(&tx.strong, MOST_HANDLES - 1, || {
        drop(tx.clone());
        drop(weak.upgrade().unwrap());
    });
    drop(tx);
    assert!(weak.upgrade().is_none());
}

#[test]
fn weak_senders_beyond_the_limit_panic() {
    let (tx, _rx) = channel::<u8, false>(0);
    let weak = tx.downgrade();
    within(&tx.owners, MOST_HANDLES, || {
        assert!(catch_unwind(|| tx.downgrade()).is_err());
        assert!(catch_unwind(|| weak.clone()).is_err());
    });
    within(&tx.owners, MOST_HANDLES - 1, || drop(weak.clone()));
    assert_eq!(tx.weak(), 1);
}
