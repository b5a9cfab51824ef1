//! Tests of the ring on one thread.
use super::{storage::StorageParts, *};
use crate::Overflow;
use core::cell::{Cell, RefCell};

/// The items that have overflowed, and the length that the last batch reported.
#[derive(Default)]
struct Global(RefCell<Vec<u32>>, Cell<usize>);

impl Overflow<u32> for Global {
    fn push(&self, item: u32) {
        self.0.borrow_mut().push(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        self.1.set(batch.len());
        self.0.borrow_mut().extend(batch);
    }
}

fn ring(capacity: usize, items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(capacity, u32::MAX - 1);
    worker.extend(0..items);
    worker
}

#[test]
fn push_to_full_ring_returns_the_item() {
    let mut worker = ring(4, 4);
    assert_eq!(worker.push(4), Err(Full(4)));
    assert_eq!(worker.drain().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn overflow_of_full_ring_takes_older_half_and_item_as_one_batch() {
    let mut worker = ring(4, 4);
    let global = Global::default();
    worker.push_or_overflow(4, &global);
    assert_eq!(global.1.get(), 3);
    assert_eq!(global.0.into_inner(), [0, 1, 4]);
    assert_eq!(worker.drain().collect::<Vec<_>>(), [2, 3]);
}

/// Thieves make room after the push has found the ring full.
///
/// Fails if the item, or an item of the ring, overflows nevertheless.
#[test]
fn overflow_of_a_ring_with_room_keeps_the_item() {
    for stolen in 1..=4 {
        let mut worker = ring(4, 4);
        let stealer = worker.stealer();
        (0..stolen).for_each(|_| assert!(matches!(stealer.steal(), Steal::Success { .. })));
        let global = Global::default();
        worker.overflow(4, &global);
        assert_eq!(global.0.into_inner(), []);
        assert!(worker.drain().eq(stolen..5));
    }
}

#[test]
fn overflow_batch_dropped_early_drops_its_rest() {
    struct Refuse;
    impl<T> Overflow<T> for Refuse {
        fn push(&self, _: T) {}
        fn push_batch(&self, mut batch: impl ExactSizeIterator<Item = T>) {
            drop(batch.next());
        }
    }
    let counted = alloc::sync::Arc::new(());
    let mut worker = Worker::new(4);
    for _ in 0..4 {
        worker.push(counted.clone()).unwrap();
    }
    worker.push_or_overflow(counted.clone(), &Refuse);
    assert_eq!(alloc::sync::Arc::strong_count(&counted), 3);
    drop(worker);
    assert_eq!(alloc::sync::Arc::strong_count(&counted), 1);
}

#[test]
fn steal_of_half_takes_half_rounded_up_in_order() {
    let worker = ring(8, 5);
    let mut mine = Worker::new(8);
    let stolen = worker
        .stealer()
        .steal_into_and_pop(&mut mine, StealLimit::Half);
    assert_eq!(stolen, Steal::Success { first: 0, moved: 2 });
    assert_eq!(mine.drain().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(worker.len(), 2);
}

#[test]
fn steal_takes_no_more_than_the_limit_and_the_room() {
    let worker = ring(8, 8);
    let stealer = worker.stealer();
    let mut mine = ring(2, 1);
    assert_eq!(
        stealer.steal_into(&mut mine, StealLimit::Half),
        Steal::Success {
            first: (),
            moved: 1
        }
    );
    assert_eq!(
        stealer.steal_into(&mut mine, StealLimit::Half),
        Steal::Empty
    );
    let mut mine = ring(8, 0);
    let two = StealLimit::AtMost(2);
    assert_eq!(
        stealer.steal_into(&mut mine, two),
        Steal::Success {
            first: (),
            moved: 2
        }
    );
    assert_eq!(
        stealer.steal_into(&mut mine, StealLimit::AtMost(0)),
        Steal::Empty
    );
    assert_eq!(mine.drain().collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn steal_from_own_or_empty_ring_returns_empty() {
    let mut worker = ring(4, 2);
    let stealer = worker.stealer();
    assert!(stealer.is_of(&worker));
    assert_eq!(
        stealer.steal_into(&mut worker, StealLimit::Half),
        Steal::Empty
    );
    assert_eq!(
        stealer.steal_into_and_pop(&mut worker, StealLimit::Half),
        Steal::Empty
    );
    assert_eq!(worker.drain().count(), 2);
    assert_eq!(stealer.steal(), Steal::Empty);
}

#[test]
fn dropped_worker_drops_items_and_a_leaked_one_leaves_them() {
    let counted = alloc::sync::Arc::new(());
    let full = || {
        let mut worker = Worker::new(2);
        worker.push(counted.clone()).unwrap();
        worker.push(counted.clone()).unwrap();
        worker
    };
    let worker = full();
    let stealer = worker.stealer();
    drop(worker);
    assert_eq!(alloc::sync::Arc::strong_count(&counted), 1);
    assert!(matches!(stealer.steal(), Steal::Empty));
    let worker = full();
    let stealer = worker.stealer();
    // The worker is not dropped before the steal, as if it were leaked.
    let worker = core::mem::ManuallyDrop::new(worker);
    assert!(matches!(stealer.steal(), Steal::Success { .. }));
    drop(core::mem::ManuallyDrop::into_inner(worker));
}

#[test]
#[should_panic(expected = "power of two")]
fn capacity_that_is_not_a_power_of_two_panics() {
    let _ = Worker::<u8>::new(3);
}

#[test]
fn lengths_of_worker_and_stealer_agree() {
    for items in 0..=4 {
        let worker = ring(4, items);
        let items = items as usize;
        assert_eq!(
            (worker.len(), worker.spare_capacity(), worker.capacity()),
            (items, 4 - items, 4)
        );
        assert_eq!(worker.stealer().len(), items);
    }
}

#[test]
fn inline_ring_after_a_leaked_worker_is_split_and_drops_items() {
    let counted = alloc::sync::Arc::new(());
    let mut ring = Inline::<_, 4>::new();
    let (mut worker, _) = ring.split();
    worker.extend([(); 3].map(|()| counted.clone()));
    core::mem::forget(worker);
    let (mut worker, stealer) = ring.split();
    assert_eq!((worker.len(), worker.spare_capacity()), (3, 1));
    assert!(worker.pop().is_some());
    assert!(matches!(stealer.steal(), Steal::Success { .. }));
    core::mem::forget(worker);
    assert_eq!(alloc::sync::Arc::strong_count(&counted), 2);
    drop(ring);
    assert_eq!(alloc::sync::Arc::strong_count(&counted), 1);
}

#[test]
fn overflow_batch_reports_its_length() {
    let mut worker = ring(8, 8).with_claim(2);
    worker.pop();
    worker.push(8).unwrap();
    let global = Global::default();
    worker.push_or_overflow(9, &global);
    assert_eq!(global.1.get(), global.0.borrow().len());
    assert_eq!(global.0.into_inner(), [1, 2, 3, 4, 9]);
}

#[test]
fn panic_in_an_item_drop_still_drops_the_other_items() {
    struct Item(bool, #[expect(dead_code)] alloc::sync::Arc<()>);
    impl Drop for Item {
        fn drop(&mut self) {
            assert!(!self.0, "on purpose");
        }
    }
    let count = alloc::sync::Arc::new(());
    let mut worker = Worker::new(4);
    worker.extend((0..4).map(|n| Item(n == 1, count.clone())));
    let dropped = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(worker)));
    assert!(dropped.is_err());
    assert_eq!(alloc::sync::Arc::strong_count(&count), 1);
}

#[test]
fn is_empty_and_same_queue_return_the_right_values() {
    let (mut worker, other) = (Worker::<u32>::new(4), Worker::<u32>::new(4));
    let stealer = worker.stealer();
    assert!(worker.is_empty() && stealer.is_empty());
    worker.push(0).unwrap();
    assert!(!worker.is_empty() && !stealer.is_empty());
    assert!(stealer.same_queue(&worker.stealer()) && stealer.is_of(&worker));
    assert!(!stealer.same_queue(&other.stealer()) && !stealer.is_of(&other));
}

#[test]
fn steal_and_pop_without_room_takes_one_item() {
    let (victim, mut thief) = (ring(8, 8), ring(4, 4));
    let stolen = victim
        .stealer()
        .steal_into_and_pop(&mut thief, StealLimit::Half);
    assert_eq!(stolen, Steal::Success { first: 0, moved: 0 });
    thief.pop();
    let stolen = victim
        .stealer()
        .steal_into_and_pop(&mut thief, StealLimit::Half);
    assert_eq!(stolen, Steal::Success { first: 1, moved: 1 });
}

#[test]
fn pop_n_size_hint_counts_claimed_and_available_items() {
    let mut worker = Worker::new(8);
    worker.extend(0..5);
    let mut items = worker.pop_n(3);
    assert_eq!(items.size_hint(), (0, Some(3)));
    assert_eq!(items.next(), Some(0));
    assert_eq!(items.size_hint(), (2, Some(2)));
    assert_eq!(items.count(), 2);
    assert_eq!(worker.pop_n(9).size_hint(), (0, Some(2)));
}

/// An owner that claims one item at a time hides no item.
#[test]
fn first_item_of_a_plain_ring_is_available() {
    let mut worker = ring(4, 0);
    worker.push(0).unwrap();
    assert_eq!(
        worker.stealer().steal(),
        Steal::Success { first: 0, moved: 0 }
    );
}

#[test]
fn with_claim_one_after_a_private_item_makes_items_available() {
    let mut worker = Worker::new(4).with_claim(2);
    worker.push(0).unwrap();
    assert_eq!(worker.pop(), Some(0));
    let mut worker = worker.with_claim(1);
    worker.push(1).unwrap();
    assert_eq!(
        worker.stealer().steal(),
        Steal::Success { first: 1, moved: 0 }
    );
}

/// The items that were claimed before become available as well, and `gave_back` reports it.
#[test]
fn with_claim_one_gives_back_claimed_items() {
    for (items, popped) in [(1, 0), (5, 1)] {
        let mut worker = Worker::starting_at(8, u32::MAX - 3).with_claim(3);
        (0..items).for_each(|item| worker.push(item).unwrap());
        (0..popped).for_each(|item| assert_eq!(worker.pop(), Some(item)));
        assert!(worker.claimed_len() > 0 && !worker.gave_back());
        let mut worker = worker.with_claim(1);
        assert_eq!((worker.claimed_len(), worker.gave_back()), (0, true));
        let open = core::iter::from_fn(|| match worker.stealer().steal() {
            Steal::Success { first, .. } => Some(first),
            _ => None,
        });
        assert!(open.eq(popped..items));
    }
}

#[test]
fn pop_n_dropped_early_makes_its_rest_available() {
    let mut worker = ring(8, 5);
    assert_eq!(worker.pop_n(4).next(), Some(0));
    assert_eq!((worker.claimed_len(), worker.gave_back()), (0, true));
    let open = worker.stealer();
    assert_eq!(open.steal(), Steal::Success { first: 1, moved: 0 });
    assert!(worker.pop_n(9).eq(2..5));
    assert!(!worker.gave_back());
}

#[test]
fn pop_n_that_ends_leaves_items_claimed_before() {
    let mut worker = Worker::new(8).with_claim(4);
    worker.extend(0..5);
    assert_eq!((worker.pop(), worker.claimed_len()), (Some(0), 2));
    assert!(worker.pop_n(1).eq([1]));
    assert_eq!((worker.claimed_len(), worker.gave_back()), (1, false));
}

#[test]
fn single_pushes_to_a_claiming_ring_are_popped_one_by_one() {
    let mut worker = ring(8, 0).with_claim(4);
    for n in 0..20 {
        worker.push(n).unwrap();
        assert_eq!((worker.pop(), worker.pop()), (Some(n), None));
    }
}

#[test]
fn debug_output_shows_lengths() {
    let mut worker = ring(8, 5).with_claim(2);
    worker.pop();
    let (shown, thief) = (
        std::format!("{worker:?}"),
        std::format!("{:?}", worker.stealer()),
    );
    assert_eq!(shown, "Worker { claimed: 1, len: 3, .. }");
    assert_eq!(thief, "Stealer { len: 3, .. }");
    let popped = std::format!("{:?}", worker.pop_n(2));
    assert_eq!(popped, std::format!("PopN {{ left: 2, worker: {shown} }}"));
    let inline = Inline::<u8, 8>::new();
    assert_eq!(std::format!("{inline:?}"), "Inline { capacity: 8, .. }");
}

#[test]
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
fn static_ring_is_taken_once() {
    static RING: Inline<u32, 8> = Inline::new();
    let mut worker = RING.take().unwrap();
    worker.push(1).unwrap();
    assert!(RING.take().is_none());
    assert_eq!(worker.pop(), Some(1));
}

/// Makes a thief claim `items` items and stops it while it copies.
fn stop_a_thief(worker: &Worker<u32>, items: u32) {
    let head = worker.ring.header().load_head();
    let real = head.real().wrapping_add(items);
    let claimed = Head::new(head.steal(), real);
    worker.ring.header().exchange_head(head, claimed).unwrap();
}

/// Lets the stopped thief end its copy.
fn end_of_the_copy(worker: &Worker<u32>) {
    let head = worker.ring.header().load_head();
    let ended = Head::both(head.real());
    worker.ring.header().exchange_head(head, ended).unwrap();
}

#[test]
fn while_a_thief_copies_others_retry_and_the_owner_continues() {
    let mut worker = ring(4, 4);
    let stealer = worker.stealer();
    stop_a_thief(&worker, 1);
    assert_eq!(stealer.steal(), Steal::Retry);
    let global = Global::default();
    worker.push_or_overflow(4, &global);
    assert_eq!(global.0.into_inner(), [4]);
    assert_eq!(worker.pop(), Some(1));
    end_of_the_copy(&worker);
    assert_eq!(stealer.steal(), Steal::Success { first: 2, moved: 0 });
}

/// The slots of the claimed items are room enough to move these items to the tail.
#[test]
fn claimed_items_are_given_back_while_a_thief_copies_all_others() {
    let mut worker = Worker::new(8).with_claim(3);
    worker.extend(0..8);
    assert_eq!((worker.pop(), worker.claimed_len()), (Some(0), 2));
    worker.push(8).unwrap();
    stop_a_thief(&worker, 6);
    assert_eq!(worker.stealer().steal(), Steal::Empty);
    worker.extend([]);
    assert!(worker.gave_back());
    end_of_the_copy(&worker);
    assert!(worker.drain().eq([1, 2]));
}

#[test]
fn claim_after_a_request_takes_one_item() {
    let mut worker = Worker::new(16).with_claim(4);
    assert_eq!(worker.stealer().steal(), Steal::Empty);
    worker.extend(0..9);
    assert_eq!((worker.pop(), worker.claimed_len()), (Some(0), 0));
    assert_eq!((worker.pop(), worker.claimed_len()), (Some(1), 3));
}

#[test]
fn ring_with_an_item_is_never_surely_empty() {
    for claim in [1, 3] {
        let mut worker = Worker::new(8).with_claim(claim);
        let stealer = worker.stealer();
        let mut said = 0;
        for step in 0..2_000_u32 {
            // Pushes, pops and steals of a few items, in an order with a long period.
            match step.wrapping_mul(2_654_435_761) >> 29 {
                0..=3 => drop(worker.push(step)),
                4..=6 => drop(worker.pop()),
                _ => drop(stealer.steal()),
            }
            if worker.is_surely_empty() {
                said += 1;
                assert_eq!(worker.len(), 0, "step {step}, claim {claim}");
            }
        }
        assert!(said > 20, "{said} times, claim {claim}");
        while worker.pop().is_some() {}
        worker.push(1).unwrap();
        assert!(!worker.is_surely_empty());
        assert_eq!(worker.pop(), Some(1));
        assert!(worker.is_surely_empty());
    }
}

// Fails if an insertion keeps an old copy of `head`. A copy may be 2³¹ items old. During the
// insertion thieves may take 2³¹ items, so that the insertion adds 2³¹ more. Then the copy is 2³²
// items old, and the ring looks empty.
#[test]
fn insertion_leaves_no_copy_of_head_older_than_the_ring() {
    type Insert = fn(&mut Worker<u32>, &mut Worker<u32>);
    let insertions: [Insert; 3] = [
        |worker, _| assert_eq!(worker.extend([2]), 1),
        |worker, other| {
            let limit = StealLimit::AtMost(1);
            let stolen = other.stealer().steal_into(worker, limit);
            assert_eq!(
                stolen,
                Steal::Success {
                    first: (),
                    moved: 1
                }
            );
        },
        |worker, other| {
            other.extend([3]);
            let limit = StealLimit::AtMost(2);
            let stolen = other.stealer().steal_into_and_pop(worker, limit);
            assert_eq!(stolen, Steal::Success { first: 2, moved: 1 });
        },
    ];
    for insert in insertions {
        for age in [3, 1 << 31, (1 << 31) + 1, u32::MAX] {
            let (mut worker, mut other) = (Worker::new(4), Worker::new(4));
            worker.extend([0, 1]);
            other.extend([2]);
            // The worker is as after a steal into its ring: the next insertion computes the limit.
            worker.publish_up_to(2);
            worker.set_last_head(Head::both(2_u32.wrapping_sub(age)));
            insert(&mut worker, &mut other);
            assert!(worker.limit_past_last_head() <= 4, "{age}");
            assert_eq!((worker.pop(), worker.pop()), (Some(0), Some(1)));
            assert_eq!((worker.pop().is_some(), worker.pop()), (true, None));
        }
    }
}

// Fails if `pop` takes an old copy of `head` for the current `head`. The copy is 2³¹ positions
// behind the tail, the largest distance that an insertion leaves.
#[test]
fn pop_behind_an_old_copy_of_head_finds_the_items() {
    let mut worker = Worker::new(4).with_claim(1);
    worker.extend([0, 1]);
    worker.set_last_head(Head::both(2_u32.wrapping_sub(1 << 31)));
    assert_eq!(
        (worker.pop(), worker.pop(), worker.pop()),
        (Some(0), Some(1), None)
    );
}
