//! Models of the wakers of one target on many threads: more threads than the model checker allows.
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

const THREADS: usize = 4;
const TURNS: usize = 3;

/// Runs four threads that share a place for one waker. In each turn a thread wakes the target by
/// its own waker, and swaps a clone of that waker into the place. It wakes, by value, the waker
/// that it took out. `waker` is dropped meanwhile. Returns the one waker that is left.
fn exchange_wakers(waker: Waker) -> Waker {
    let place = Arc::new(Mutex::new(None));
    let threads = [(); THREADS].map(|()| {
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

/// Fails if `wake` does not drop its reference, or wakes twice.
#[test]
fn arc_shared_by_many_threads_is_freed_with_its_last_waker() {
    model(|| {
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let left = exchange_wakers(from_arc(count.clone()));
        // One wake in each turn, and one for each clone that was taken out of the place: all but
        // the last.
        let wakes = 2 * THREADS * TURNS - 1;
        // Ordering: Relaxed, after the joins.
        assert_eq!(count.0.load(Relaxed), wakes);
        assert_eq!(Arc::strong_count(&count), 2);
        drop(left);
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// Fails if the count is lowered by a load and a store.
#[test]
fn target_shared_by_many_threads_is_freed_once() {
    model(|| {
        let frees = std::sync::Arc::default();
        let left = exchange_wakers(Target::<true>::waker(&frees));
        // Ordering: Relaxed, after the joins.
        assert_eq!(frees.load(Relaxed), 0);
        drop(left);
        assert_eq!(frees.load(Relaxed), 1);
    });
}
