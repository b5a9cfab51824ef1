//! Tests of a barrier on one thread.
use super::Barrier;
use crate::testing::{Random, Woken, now, poll, seeds};
use std::{
    sync::Arc,
    task::{Poll, Wake, Waker},
};

#[test]
fn last_task_leads_and_wakes_the_others() {
    let barrier = Barrier::new(3);
    let (woken, waker) = Woken::new();
    for _ in 0..3 {
        let mut waits = [(); 2].map(|()| Box::pin(barrier.wait()));
        for wait in &mut waits {
            assert!(poll(wait, &waker).is_pending());
        }
        assert_eq!(woken.take(), 0);
        assert!(now(barrier.wait()).is_leader());
        assert_eq!(woken.take(), 2);
        for mut wait in waits {
            assert!(matches!(poll(&mut wait, &waker), Poll::Ready(result) if !result.is_leader()));
        }
    }
}

#[test]
fn barrier_for_none_is_one_for_one() {
    for size in [0, 1] {
        let barrier = Barrier::new(size);
        assert!(now(barrier.wait()).is_leader());
        assert!(now(barrier.wait()).is_leader());
    }
}

/// A wait that is dropped after any number of polls has not arrived.
#[test]
fn dropped_wait_takes_its_arrival_back() {
    let barrier = Barrier::new(2);
    for polls in 0..3 {
        let mut wait = Box::pin(barrier.wait());
        for _ in 0..polls {
            assert!(poll(&mut wait, Waker::noop()).is_pending());
        }
    }
    let mut wait = Box::pin(barrier.wait());
    assert!(poll(&mut wait, Waker::noop()).is_pending());
    assert!(now(barrier.wait()).is_leader());
    // Its round is over, so the drop takes nothing back.
    drop(wait);
    let mut wait = Box::pin(barrier.wait());
    assert!(poll(&mut wait, Waker::noop()).is_pending());
    assert!(now(barrier.wait()).is_leader());
}

/// A waker of the leader's wakes drops a wait that the leader has yet to release.
#[test]
fn wait_that_is_dropped_by_a_wake_takes_nothing_back() {
    use std::{
        future::Future,
        pin::Pin,
        sync::{LazyLock, Mutex},
    };
    type Waits = Mutex<Vec<Pin<Box<dyn Future<Output = super::BarrierWaitResult> + Send>>>>;
    struct DropsAll(Arc<Waits>);
    impl Wake for DropsAll {
        fn wake(self: Arc<Self>) {
            let waits = std::mem::take(&mut *self.0.lock().unwrap());
            drop(waits);
        }
    }
    static BARRIER: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(100));
    let waits = Arc::new(Waits::default());
    let waker = Waker::from(Arc::new(DropsAll(waits.clone())));
    for _ in 0..99 {
        let mut wait: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(BARRIER.wait());
        assert!(poll(&mut wait, &waker).is_pending());
        waits.lock().unwrap().push(wait);
    }
    assert!(now(BARRIER.wait()).is_leader());
    assert_eq!(BARRIER.waiters.lock().arrived, 0);
}

/// A poll of a wait that is over does not arrive again: it panics, as of all futures here.
#[test]
fn wait_that_was_ready_does_not_arrive_again() {
    let barrier = Barrier::new(2);
    let [mut first, mut leader] = [(); 2].map(|()| Box::pin(barrier.wait()));
    assert!(poll(&mut first, Waker::noop()).is_pending());
    assert!(poll(&mut leader, Waker::noop()).is_ready());
    assert!(poll(&mut first, Waker::noop()).is_ready());
    for mut wait in [first, leader] {
        let again = std::panic::AssertUnwindSafe(|| poll(&mut wait, Waker::noop()).is_ready());
        assert!(std::panic::catch_unwind(again).is_err());
    }
    assert_eq!(barrier.waiters.lock().arrived, 0);
}

#[test]
fn random_operations_agree_with_a_count() {
    for seed in seeds(500) {
        let mut random = Random::new(seed);
        let size = 1 + random.below(4);
        let barrier = Barrier::new(size);
        let mut waits = Vec::new();
        for _ in 0..500 {
            match random.below(3) {
                0 | 1 => {
                    let mut wait = Box::pin(barrier.wait());
                    let polled = poll(&mut wait, Waker::noop());
                    assert_eq!(polled.is_ready(), waits.len() + 1 == size);
                    match polled {
                        Poll::Pending => waits.push(wait),
                        Poll::Ready(result) => {
                            assert!(result.is_leader());
                            for mut wait in waits.drain(..) {
                                assert!(poll(&mut wait, Waker::noop()).is_ready());
                            }
                        }
                    }
                }
                _ if !waits.is_empty() => drop(waits.swap_remove(random.below(waits.len()))),
                _ => {}
            }
        }
    }
}

#[test]
fn barrier_and_its_wait_are_small() {
    let barrier = Barrier::new(1);
    assert!(size_of_val(&barrier) <= 6 * size_of::<usize>());
    assert!(size_of_val(&barrier.wait()) <= size_of::<[usize; 8]>());
}
