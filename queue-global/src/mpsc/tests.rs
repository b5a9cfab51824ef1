//! Drops, panics, auto traits, and pushers on real threads.
use super::*;
use alloc::{sync::Arc, vec, vec::Vec};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{cell::Cell, format, panic::catch_unwind, thread};

assert_impl_all!(Queue<Cell<u8>>: Send, Sync);
assert_impl_all!(Batch<Cell<u8>>: Send, Sync);
assert_not_impl_any!(Queue<*const u8>: Send, Sync);
assert_not_impl_any!(Batch<*const u8>: Send, Sync);

#[test]
fn values_of_four_threads_arrive_once_and_in_order() {
    const EACH: usize = 10_000;
    let queue = Queue::new();
    let mut next = [0; 4];
    thread::scope(|scope| {
        for who in 0..4 {
            let queue = &queue;
            scope.spawn(move || {
                for turn in 0..EACH {
                    let _ = queue.push((who, turn)).unwrap();
                }
            });
        }
        while next != [EACH; 4] {
            for (who, turn) in queue.take() {
                let expected: &mut usize = &mut next[who];
                assert_eq!(turn, *expected);
                *expected += 1;
            }
            thread::yield_now();
        }
    });
    assert!(queue.is_empty());
}

#[test]
fn queue_and_batch_drop_their_values() {
    let value = Arc::new(());
    let queue = Queue::new();
    for _ in 0..4 {
        let _ = queue.push(value.clone()).unwrap();
    }
    let mut batch = queue.take();
    drop(batch.next());
    let _ = queue.push(value.clone()).unwrap();
    assert_eq!(Arc::strong_count(&value), 5);
    drop(batch);
    assert_eq!(Arc::strong_count(&value), 2);
    drop(queue);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn queue_with_a_value_is_not_empty() {
    let queue = Queue::new();
    assert!(queue.is_empty());
    assert_eq!(queue.take().size_hint(), (0, Some(0)));
    let _ = queue.push(1).unwrap();
    assert!(!queue.is_empty());
    assert_eq!(format!("{queue:?}"), "Queue { is_empty: false, .. }");
    let mut batch = queue.take();
    assert!(queue.is_empty());
    assert_eq!(batch.size_hint(), (1, None));
    assert_eq!(format!("{batch:?}"), "Batch { is_empty: false, .. }");
    assert_eq!((batch.next(), batch.size_hint()), (Some(1), (0, Some(0))));
}

#[test]
fn panic_in_one_drop_still_drops_the_other_values() {
    struct Bomb(
        bool,
        #[expect(dead_code, reason = "counts the drops")] Arc<()>,
    );
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0, "this drop panics");
        }
    }
    let value = Arc::new(());
    let queue = Queue::new();
    for turn in 0..3 {
        let _ = queue.push(Bomb(turn == 0, value.clone()));
    }
    assert!(catch_unwind(|| drop(queue)).is_err());
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn closed_queue_hands_values_back_and_stays_closed() {
    let queue = Queue::default();
    let _ = queue.push(1).unwrap();
    assert_eq!(queue.close().collect::<Vec<_>>(), vec![1]);
    assert_eq!(queue.push(2), Err(Closed(2)));
    assert!(queue.take().is_empty() && queue.is_closed() && queue.is_empty());
    assert!(queue.close().is_empty());
    assert_eq!(queue.push(3), Err(Closed(3)));
}

#[test]
fn values_of_any_size_and_alignment_pass() {
    #[repr(align(64))]
    struct Aligned(u8);
    let (empty, aligned) = (Queue::new(), Queue::new());
    let _ = empty.push(());
    let _ = aligned.push(Aligned(7));
    assert_eq!(empty.take().count(), 1);
    let got = aligned.take().next().unwrap();
    assert_eq!((got.0, (&raw const got).addr() % 64), (7, 0));
}
