//! The FIFO as one thread sees it.
use super::*;
use alloc::{rc::Rc, vec::Vec};
use core::panic::{RefUnwindSafe, UnwindSafe};
use static_assertions::{assert_impl_all, assert_not_impl_any};

assert_impl_all!(Worker<u8>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Worker<u8>: Clone);
assert_not_impl_any!(Worker<Rc<u8>>: Send);
assert_impl_all!(Stealer<u8>: Send, Sync, Clone, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Stealer<Rc<u8>>: Send, Sync);

fn fifo(capacity: usize, items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(capacity, u32::MAX - 1);
    worker.extend(0..items);
    worker
}

fn drain(worker: &mut Worker<u32>) -> Vec<u32> {
    core::iter::from_fn(|| worker.pop()).collect()
}

#[test]
fn fifo_grows_and_shrinks_again() {
    let mut worker = fifo(4, 1_000);
    assert_eq!((worker.capacity(), worker.len()), (1_024, 1_000));
    assert!(drain(&mut worker).into_iter().eq(0..1_000));
    assert_eq!((worker.capacity(), worker.len()), (4, 0));
}

#[test]
fn fifo_at_a_steady_depth_keeps_its_buffer() {
    let mut worker = fifo(4, 4);
    for item in 4..100 {
        assert_eq!(worker.pop(), Some(item - 4));
        worker.push(item);
    }
    assert_eq!((worker.capacity(), worker.len()), (4, 4));
}

#[test]
fn fifo_shrinks_at_the_pop_after_thieves_emptied_it() {
    let mut worker = fifo(4, 1_000);
    let stealer = worker.stealer();
    let mut thief = Worker::new();
    let all = StealLimit::AtMost(1_000);
    assert!(matches!(
        stealer.steal_into(&mut thief, all),
        Steal::Success { moved: 1_000, .. }
    ));
    assert_eq!((worker.pop(), worker.capacity()), (None, 4));
    assert!(drain(&mut thief).into_iter().eq(0..1_000));
}

#[test]
fn fifo_thief_takes_half_rounded_up_in_order() {
    let mut worker = fifo(2, 5);
    let stealer = worker.stealer();
    let mut mine = Worker::with_capacity(2);
    assert_eq!(
        stealer.steal_into_and_pop(&mut mine, StealLimit::Half),
        Steal::Success { first: 0, moved: 2 }
    );
    assert_eq!(worker.pop(), Some(3));
    assert_eq!(
        stealer.steal_into(&mut mine, StealLimit::AtMost(9)),
        Steal::Success {
            first: (),
            moved: 1
        }
    );
    assert_eq!(drain(&mut mine), [1, 2, 4]);
    assert!(worker.is_empty() && stealer.is_empty());
}

#[test]
fn fifo_steal_from_own_queue_or_of_no_items_returns_empty() {
    let mut worker = fifo(4, 2);
    let stealer = worker.stealer();
    let mut mine = Worker::new();
    assert!(stealer.is_of(&worker) && !stealer.is_of(&mine));
    assert!(stealer.same_queue(&worker.stealer()));
    let half = StealLimit::Half;
    assert_eq!(stealer.steal_into(&mut worker, half), Steal::Empty);
    assert_eq!(stealer.steal_into_and_pop(&mut worker, half), Steal::Empty);
    let none = StealLimit::AtMost(0);
    assert_eq!(stealer.steal_into(&mut mine, none), Steal::Empty);
    assert_eq!(drain(&mut worker), [0, 1]);
    assert_eq!(stealer.steal(), Steal::Empty);
}

/// A thief has claimed items and has not released its claim.
#[test]
fn fifo_owner_beside_a_thief_in_mid_copy_continues() {
    let mut worker = fifo(4, 4);
    let stealer = worker.stealer();
    let Claimed::Items(mut items) = stealer.claim(StealLimit::AtMost(2), None, 0) else {
        panic!("nothing was claimed");
    };
    assert_eq!(worker.stealer().steal(), Steal::Retry);
    assert_eq!(worker.pop(), Some(2));
    // The buffer grows, because the owner cannot reuse the claimed slots, or the slot of the item
    // that it popped, before the thief's release.
    worker.push(4);
    assert_eq!((worker.capacity(), worker.pop()), (8, Some(3)));
    assert_eq!([items.take(), items.take()], [0, 1]);
    drop(items);
    assert_eq!(
        worker.stealer().steal(),
        Steal::Success { first: 4, moved: 0 }
    );
    assert_eq!((worker.pop(), worker.capacity()), (None, 4));
}

#[test]
fn fifo_dropped_worker_drops_items_and_a_leaked_one_leaves_them() {
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
fn fifo_item_drop_panic_leaves_the_others_to_the_last_handle() {
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
fn fifo_capacity_above_the_maximum_panics() {
    let _ = Worker::<u8>::with_capacity((1 << 30) + 1);
}

/// The items have no size, so the queue takes no memory. Without optimisation the test would take
/// seconds, so builds with debug assertions leave it out.
#[cfg(not(debug_assertions))]
#[test]
fn fifo_with_the_most_items_refuses_more_and_loses_none() {
    let full = || {
        let mut worker = Worker::with_capacity(1 << 30);
        for _ in 0..1u32 << 30 {
            worker.push(());
        }
        worker
    };
    let (mut worker, mut mine) = (full(), full());
    let stealer = worker.stealer();
    let steal = || stealer.steal_into(&mut mine, StealLimit::AtMost(1));
    std::panic::catch_unwind(core::panic::AssertUnwindSafe(steal)).unwrap_err();
    assert_eq!((worker.len(), mine.len()), (1 << 30, 1 << 30));
    assert!(matches!(stealer.steal(), Steal::Success { .. }));
    worker.push(());
    let more = core::panic::AssertUnwindSafe(|| worker.push(()));
    std::panic::catch_unwind(more).unwrap_err();
    // Dropping the items one by one would take as long again.
    core::mem::forget((worker, mine));
}
