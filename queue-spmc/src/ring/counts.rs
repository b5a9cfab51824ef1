//! The cost of each operation in read-modify-writes, as the README's table states it.
use super::{storage::StorageParts, *};
use crate::Overflow;
use sync_shim::count::counted;

struct Nowhere;

impl Overflow<u32> for Nowhere {
    fn push(&self, _: u32) {}
    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        batch.for_each(drop);
    }
}

fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    counts.rmws
}

#[test]
fn plain_ring_operations_cost_what_the_readme_says() {
    let mut worker = Worker::new(8);
    let mut thief = Worker::new(8);
    let stealer = worker.stealer();
    for item in 0..8 {
        assert_eq!(rmws(|| worker.push(item)), 0);
    }
    assert_eq!(rmws(|| worker.push(8)), 0);
    assert_eq!(rmws(|| worker.push_or_overflow(8, &Nowhere)), 1);
    assert_eq!(rmws(|| worker.pop()), 1);
    assert_eq!(rmws(|| stealer.steal()), 2);
    assert_eq!(
        rmws(|| stealer.steal_into_and_pop(&mut thief, StealLimit::Half)),
        2
    );
    assert_eq!(rmws(|| stealer.steal_into(&mut thief, StealLimit::Half)), 2);
    assert_eq!(rmws(|| (worker.pop(), stealer.steal())), 0);
    drop(thief);
}

#[test]
fn claiming_ring_operations_cost_what_the_readme_says() {
    let mut worker = Worker::new(64).with_claim(16);
    let stealer = worker.stealer();
    assert_eq!(rmws(|| worker.extend(0..64)), 0);
    assert_eq!(rmws(|| (0..16).map(|_| worker.pop()).count()), 1);
    assert_eq!(rmws(|| worker.pop()), 1);
    assert_eq!(rmws(|| worker.pop_n(40).count()), 1);
    // The items that were not taken are given back.
    assert_eq!(rmws(|| worker.pop_n(4).next()), 2);
    assert_eq!(rmws(|| worker.drain().count()), 1);
    assert_eq!(rmws(|| (worker.push(1), worker.pop())), 0);
    assert_eq!(rmws(|| (worker.push(1), worker.push(2))), 0);
    assert_eq!(rmws(|| (worker.pop(), worker.pop())), 2);
    // After a pop of the last item, a push finds the ring empty, and its item stays private.
    assert_eq!(rmws(|| (worker.push(1), worker.pop())), 0);
    worker.extend(0..16);
    worker.pop();
    assert_eq!(rmws(|| while stealer.steal() != Steal::Empty {}), 2 * 8);
    // The push moves the claimed items to the tail, since thieves took all items behind them.
    assert_eq!(rmws(|| worker.push(1)), 0);
    worker.pop();
    assert_eq!(rmws(|| worker.drain().count()), 1);
}

#[test]
fn request_beside_available_items_costs_one() {
    let mut worker = Worker::new(8).with_claim(4);
    let stealer = worker.stealer();
    worker.extend(0..6);
    worker.pop();
    assert_eq!(stealer.steal(), Steal::Success { first: 3, moved: 0 });
    worker.ring.header().set_request(1);
    assert_eq!(rmws(|| worker.push(9)), 1);
    assert_eq!((worker.claimed_len(), rmws(|| worker.push(10))), (2, 0));
}

#[test]
fn giving_back_by_the_head_costs_one() {
    let mut worker = Worker::new(8).with_claim(4);
    let stealer = worker.stealer();
    worker.extend(0..3);
    worker.pop();
    assert!(matches!(stealer.steal(), Steal::Success { .. }));
    worker.pop();
    worker.extend(3..6);
    worker.pop();
    let claimed = worker.claimed_len();
    worker.ring.header().set_request(1);
    assert_eq!((claimed, rmws(|| worker.push(9))), (1, 1));
}
