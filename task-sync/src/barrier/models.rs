//! Models of a barrier: it opens when all have arrived, with one leader, and not before.
//!
//! "Fails if" names the changes to the code that make a model fail. A lost wake is a deadlock,
//! which fails the model.
use super::Barrier;
use crate::blocking::block_on;
use std::task::{Context, Waker};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::Arc,
    thread,
};

/// Fails if the leader does not wake, or if both or none are leaders.
#[test]
fn two_waits_end_with_one_leader() {
    model(|| {
        let shared = Arc::new((Barrier::new(2), AtomicUsize::new(0)));
        let wait = |shared: &(Barrier, AtomicUsize)| {
            // Ordering: Relaxed, the barrier must order it.
            shared.1.fetch_add(1, Relaxed);
            let result = block_on(shared.0.wait());
            // Ordering: Relaxed, as above.
            assert_eq!(shared.1.load(Relaxed), 2);
            result.is_leader()
        };
        let other = {
            let shared = shared.clone();
            thread::spawn(move || wait(&shared))
        };
        let is_leader = wait(&shared);
        assert_ne!(other.join().unwrap(), is_leader);
    });
}

/// A wait is dropped while another task arrives. Either its arrival is taken back, or the round
/// was over and the other is its leader. Fails if the drop takes back an arrival of an old round,
/// or none at all.
#[test]
fn drop_of_a_wait_beside_an_arrival_takes_back_or_counts() {
    model(|| {
        let barrier = Arc::new(Barrier::new(2));
        let mut dropped = Box::pin(barrier.wait());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(dropped.as_mut().poll(&mut cx).is_pending());
        let other = {
            let barrier = barrier.clone();
            thread::spawn(move || block_on(barrier.wait()).is_leader())
        };
        drop(dropped);
        // With one arrival or none, this wait ends the round or waits.
        let mut last = Box::pin(barrier.wait());
        if last.as_mut().poll(&mut cx).is_ready() {
            assert!(!other.join().unwrap());
            assert!(Box::pin(barrier.wait()).as_mut().poll(&mut cx).is_pending());
        } else {
            // The other thread comes second, or it was the leader of the first round.
            assert!(other.join().unwrap());
        }
    });
}
