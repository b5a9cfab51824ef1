//! A writer and a reader, and the reason why there must be one writer.
use super::counter::Counter;
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    model, model_must_fail,
    sync::Arc,
    thread,
};

/// Fails if `add` stores `n` instead of the sum.
#[test]
fn count_before_a_release_is_read_after_it_and_never_goes_back() {
    model(|| {
        let shared = Arc::new((Counter::new(), AtomicBool::new(false)));
        let writer = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.0.add(2);
                shared.1.store(true, Release);
                shared.0.add(1);
            })
        };
        let first = shared.0.get();
        let second = shared.0.get();
        assert!([0, 2, 3].contains(&first) && second >= first);
        if shared.1.load(Acquire) {
            assert!(shared.0.get() >= 2);
        }
        writer.join().unwrap();
        assert_eq!(shared.0.get(), 3);
    });
}

#[test]
fn two_writers_lose_an_addition() {
    model_must_fail("a count is lost", || {
        let counter = Arc::new(Counter::new());
        let other = {
            let counter = counter.clone();
            thread::spawn(move || counter.add(1))
        };
        counter.add(1);
        other.join().unwrap();
        assert_eq!(counter.get(), 2, "a count is lost");
    });
}
