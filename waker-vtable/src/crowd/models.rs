//! One target's wakers in many hands: more threads than the model checker takes.
use crate::{
    from_arc,
    models::{Count, Target},
};
use std::task::Waker;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::{Arc, Mutex},
    thread,
};

const HANDS: usize = 4;
const TURNS: usize = 3;

/// Four threads clone theirs, wake by it, and exchange the clone for the one that another has left, which they wake by and let go. Who has made the first lets it go
/// meanwhile. Gives the one that is left, the only one.
fn hands(waker: Waker) -> Waker {
    let place = Arc::new(Mutex::new(None));
    let threads = [(); HANDS].map(|()| {
        let (own, place) = (waker.clone(), place.clone());
        thread::spawn(move || {
            for _ in 0..TURNS {
                own.wake_by_ref();
                let left: Option<Waker> = place.lock().replace(own.clone());
                if let Some(left) = left {
                    assert!(left.will_wake(&own));
                    left.wake();
                }
            }
            drop(own);
        })
    });
    drop(waker);
    for thread in threads {
        thread.join().unwrap();
    }
    let left = place.lock().take();
    left.expect("each has left one")
}

/// Bites: forget the drop in `wake`; wake twice in it.
#[test]
fn an_arc_in_many_hands_goes_with_its_last_waker() {
    model(|| {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let left = hands(from_arc(count.clone()));
        // Each turn's, and each exchange's but the first.
        let wakes = 2 * HANDS * TURNS - 1;
        // Ordering: Relaxed, after the joins.
        assert_eq!(count.0.load(Relaxed), wakes);
        assert_eq!(Arc::strong_count(&count), 2);
        drop(left);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// Bites: a count that goes down by a load and a store.
#[test]
fn a_target_in_many_hands_is_freed_once() {
    model(|| {
        let frees = std::sync::Arc::default();
        let left = hands(Target::<true>::waker(&frees));
        // Ordering: Relaxed, after the joins.
        assert_eq!(frees.load(Relaxed), 0);
        drop(left);
        assert_eq!(frees.load(Relaxed), 1);
    });
}
