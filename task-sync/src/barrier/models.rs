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
/// which is possible while the leader has yet to release the second waiter, or none at all.
#[test]
fn drop_of_a_wait_beside_an_arrival_takes_back_or_counts() {
    model(|| {
        let barrier = Arc::new(Barrier::new(3));
        let mut cx = Context::from_waker(Waker::noop());
        let mut queued = || {
            let mut wait = Box::pin(barrier.wait());
            (wait.as_mut().poll(&mut cx).is_ready(), wait)
        };
        let ((_, first), (_, dropped)) = (queued(), queued());
        let other = {
            let barrier = barrier.clone();
            thread::spawn(move || block_on(barrier.wait()).is_leader())
        };
        drop(dropped);
        let (is_ready, last) = queued();
        // The last wait ends the round, or waits with `first` for the other task, or is alone in
        // the next round.
        assert_eq!(other.join().unwrap(), !is_ready);
        let arrived = barrier.waiters.lock().arrived;
        assert!(arrived == 0 || arrived == 1 && !is_ready);
        drop((first, last));
    });
}
