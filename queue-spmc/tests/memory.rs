//! The memory that the growable queues hold, counted at the allocator.
#![cfg(all(feature = "deque", not(any(selvedge_loom, selvedge_shuttle))))]
use allocation_counter::{AllocationInfo, measure};
use queue_spmc::{Steal, StealLimit, deque, fifo};

const ITEMS: u64 = 1_000_000;

/// Two words, as in a job that consists of a pointer and a function.
type Item = [u64; 2];

fn items() -> impl Iterator<Item = Item> {
    (0..ITEMS).map(|item| [item; 2])
}

/// Returns what `cycle` allocated. The result of `cycle` is freed after the measurement.
fn cost<R>(cycle: impl FnOnce() -> R) -> AllocationInfo {
    let mut held = None;
    measure(|| held = Some(cycle()))
}

/// Returns the size of a buffer in bytes.
fn buffer(capacity: i64) -> i64 {
    capacity * size_of::<Item>() as i64
}

/// The most bytes besides the slots of the buffers: for the fields that the owner and the thieves
/// share, and for a buffer's other words.
const REST: i64 = 1_024;

/// Asserts that the queue held at most two buffers while it grew, and now holds one buffer of the
/// initial capacity.
fn assert_bounded(cost: AllocationInfo) {
    let (held, most) = (cost.bytes_current, cost.bytes_max as i64);
    assert!(held <= buffer(32) + REST, "{held} bytes are held");
    let both = buffer(1 << 20) + buffer(1 << 19);
    assert!(most <= both + REST, "{most} bytes at most");
}

#[test]
fn deque_after_pushes_and_pops_holds_one_small_buffer() {
    assert_bounded(cost(|| {
        let mut worker = deque::Worker::new();
        worker.extend(items());
        while worker.pop().is_some() {}
        worker
    }));
}

#[test]
fn deque_after_pushes_and_steals_holds_one_small_buffer() {
    assert_bounded(cost(|| {
        let mut worker = deque::Worker::new();
        worker.extend(items());
        let stealer = worker.stealer();
        while stealer.steal() != Steal::Empty {}
        assert_eq!(worker.pop(), None);
        worker
    }));
}

#[test]
fn fifo_after_pushes_and_pops_holds_one_small_buffer() {
    assert_bounded(cost(|| {
        let mut worker = fifo::Worker::new();
        worker.extend(items());
        while worker.pop().is_some() {}
        worker
    }));
}

#[test]
fn fifo_after_pushes_and_steals_holds_one_small_buffer() {
    assert_bounded(cost(|| {
        let mut worker = fifo::Worker::new();
        worker.extend(items());
        let stealer = worker.stealer();
        while stealer.steal() != Steal::Empty {}
        assert_eq!(worker.pop(), None);
        worker
    }));
}

/// A buffer is at least a quarter full, unless it has the initial capacity. That holds however
/// often the queue grows.
#[test]
fn growable_queue_of_few_items_holds_at_most_four_times_as_many() {
    const LEFT: usize = 100;
    let cost = cost(|| {
        let mut worker = deque::Worker::new();
        for _ in 0..10 {
            worker.extend(items().take(10_000));
            while worker.len() > LEFT {
                worker.pop();
            }
            assert!(worker.capacity() <= 4 * LEFT);
        }
        worker
    });
    assert!(cost.bytes_current <= buffer(4 * LEFT as i64) + REST);
}

#[test]
fn dropped_worker_frees_its_buffer_though_a_stealer_lives() {
    let dropped = |worker: deque::Worker<Item>| worker.stealer();
    let cost = cost(|| {
        let mut worker = deque::Worker::new();
        worker.extend(items().take(10_000));
        dropped(worker)
    });
    assert!(cost.bytes_current <= REST, "{cost:?}");
}

/// The queue of a thief grows once, to hold all items that the thief takes at once.
#[test]
fn thief_of_half_holds_one_buffer_of_what_it_took() {
    let mut worker = fifo::Worker::new();
    worker.extend(items().take(10_000));
    let stealer = worker.stealer();
    let cost = cost(|| {
        let mut thief = fifo::Worker::new();
        let stolen = stealer.steal_into(&mut thief, StealLimit::Half);
        assert!(matches!(stolen, Steal::Success { moved: 5_000, .. }));
        thief
    });
    assert!(cost.bytes_current <= buffer(8_192) + REST, "{cost:?}");
}
