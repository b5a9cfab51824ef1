//! The deque as one thread sees it.
use super::*;
use alloc::vec::Vec;

fn deque(capacity: usize, items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(capacity, u32::MAX - 1);
    worker.extend(0..items);
    worker
}

fn drain(worker: &mut Worker<u32>) -> Vec<u32> {
    core::iter::from_fn(|| worker.pop()).collect()
}

#[test]
fn deque_grows_and_shrinks_again() {
    let mut worker = deque(4, 1_000);
    assert_eq!((worker.capacity(), worker.len()), (1_024, 1_000));
    assert!(drain(&mut worker).into_iter().eq((0..1_000).rev()));
    assert_eq!((worker.capacity(), worker.len()), (4, 0));
}

#[test]
fn steal_of_half_takes_half_rounded_up_oldest_first() {
    let worker = deque(2, 5);
    let stealer = worker.stealer();
    let mut mine = Worker::new();
    assert_eq!(
        stealer.steal_into_and_pop(&mut mine, StealLimit::Half),
        Steal::Success { first: 0, moved: 2 }
    );
    assert_eq!(drain(&mut mine), [2, 1]);
    assert_eq!(
        stealer.steal_into(&mut mine, StealLimit::AtMost(9)),
        Steal::Success {
            first: (),
            moved: 2
        }
    );
    assert_eq!(drain(&mut mine), [4, 3]);
    assert!(worker.is_empty() && stealer.is_empty());
}

#[test]
fn steal_from_own_deque_or_of_no_items_returns_empty() {
    let mut worker = deque(4, 2);
    let stealer = worker.stealer();
    let mut mine = Worker::new();
    assert!(stealer.is_of(&worker) && !stealer.is_of(&mine));
    assert!(stealer.same_queue(&worker.stealer()));
    let half = StealLimit::Half;
    assert_eq!(stealer.steal_into(&mut worker, half), Steal::Empty);
    assert_eq!(stealer.steal_into_and_pop(&mut worker, half), Steal::Empty);
    let none = StealLimit::AtMost(0);
    assert_eq!(stealer.steal_into(&mut mine, none), Steal::Empty);
    assert_eq!(drain(&mut worker), [1, 0]);
    assert_eq!(stealer.steal(), Steal::Empty);
}

#[test]
fn dropped_worker_drops_items_and_a_leaked_one_leaves_them() {
    let counted = Arc::new(());
    let two = || {
        let mut worker = Worker::new();
        worker.extend([counted.clone(), counted.clone()]);
        worker
    };
    let worker = two();
    let stealer = worker.stealer();
    drop(worker);
    assert_eq!(Arc::strong_count(&counted), 1);
    assert!(matches!(stealer.steal(), Steal::Empty));
    let worker = two();
    let stealer = worker.stealer();
    // The worker is not dropped, as if it were leaked.
    let worker = core::mem::ManuallyDrop::new(worker);
    assert!(matches!(stealer.steal(), Steal::Success { .. }));
    assert_eq!(Arc::strong_count(&counted), 2);
    drop(core::mem::ManuallyDrop::into_inner(worker));
}

#[test]
fn item_drop_panic_leaves_the_others_to_the_last_handle() {
    struct Bad(Arc<()>);
    impl Drop for Bad {
        fn drop(&mut self) {
            if Arc::strong_count(&self.0) == 4 {
                panic!("in a drop");
            }
        }
    }
    let counted = Arc::new(());
    let mut worker = Worker::new();
    worker.extend([(); 3].map(|()| Bad(counted.clone())));
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| drop(worker))).unwrap_err();
    assert_eq!(Arc::strong_count(&counted), 1);
}

#[test]
#[should_panic(expected = "2^30")]
fn capacity_above_the_maximum_panics() {
    let _ = Worker::<u8>::with_capacity((1 << 30) + 1);
}

#[test]
fn zero_sized_items_are_counted() {
    let mut worker = Worker::new();
    worker.extend([(); 100]);
    assert_eq!(worker.len(), 100);
    assert_eq!(core::iter::from_fn(|| worker.pop()).count(), 100);
}

/// The items have no size, so the deque takes no memory. Without optimisation the test would take
/// seconds, so builds with debug assertions leave it out.
#[cfg(not(debug_assertions))]
#[test]
fn push_beyond_the_most_items_panics() {
    let mut worker = Worker::with_capacity(1 << 30);
    for _ in 0..1u32 << 30 {
        worker.push(());
    }
    assert_eq!(worker.len(), 1 << 30);
    assert!(matches!(worker.stealer().steal(), Steal::Success { .. }));
    worker.push(());
    let more = std::panic::AssertUnwindSafe(|| worker.push(()));
    std::panic::catch_unwind(more).unwrap_err();
    // Dropping the items one by one would take as long again.
    core::mem::forget(worker);
}

// Fails if `push` does not renew `last_top`: after 2³² steals between two pops, an old `last_top`
// looks current.
#[test]
fn push_into_full_buffer_takes_a_new_top() {
    let mut worker = deque(2, 2);
    worker.last_top = worker.owner.bottom;
    worker.push(2);
    assert_eq!(drain(&mut worker), [2, 1, 0]);
}

// Fails if `pop_newest` renews `last_top` only when one item is left.
#[test]
fn pop_far_from_the_earlier_top_takes_a_new_one() {
    let mut worker = deque(4, 4);
    worker.last_top = worker.owner.bottom.wrapping_sub(FAR + 2);
    assert_eq!(worker.pop(), Some(3));
    assert_eq!(worker.last_top, worker.owner.bottom.wrapping_sub(3));
}
