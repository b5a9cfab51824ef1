//! Counts the read-modify-writes of each operation, to check the README's table of costs.
use crate::{QueueHooks, Slot, WorkerQueue};
use queue_global::{Boxed, Injector, List};
use std::boxed::Box;
use sync_shim::count::counted;

type Item = Boxed<u32>;

/// The hooks of a scheduler without other workers.
struct Nobody;

impl QueueHooks<Item> for Nobody {
    fn overflow(&self, items: List<Item>) {
        drop(items);
    }

    fn notify(&self) {}
}

/// Returns the number of read-modify-writes of an operation.
fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    counts.rmws
}

fn item() -> Box<Item> {
    Box::new(Boxed::new(7))
}

#[test]
fn every_operation_costs_what_the_readme_says() {
    let queue = WorkerQueue::<Item>::new(4);
    assert_eq!(rmws(|| queue.push_back(item(), &Nobody)), 0);
    assert_eq!(
        rmws(|| queue.push_next(item(), &Nobody)),
        0,
        "to an empty slot"
    );
    assert_eq!(
        rmws(|| queue.push_next(item(), &Nobody)),
        1,
        "to a full slot"
    );
    assert_eq!(
        rmws(|| queue.requeue(item(), &Nobody)),
        0,
        "to the ring, behind the slot"
    );
    assert_eq!(rmws(|| queue.next(&Nobody)), 1, "from the slot");
    assert_eq!(rmws(|| queue.take_slot()), 0, "of an empty queue");
    assert_eq!(rmws(|| queue.requeue(item(), &Nobody)), 0, "to the ring");
    assert_eq!(rmws(|| queue.push_back(item(), &Nobody)), 1, "overflows");
    assert_eq!(rmws(|| queue.next(&Nobody)), 1, "from the ring");
    while queue.take_any().is_some() {}
    assert_eq!(
        rmws(|| queue.requeue(item(), &Nobody)),
        0,
        "to the requeued item"
    );
    assert_eq!(rmws(|| queue.next(&Nobody)), 0, "the requeued item");
    assert_eq!(rmws(|| queue.next(&Nobody)), 0, "of an empty queue");
    assert_eq!(rmws(|| queue.push_next(item(), &Nobody)), 0);
    assert_eq!(rmws(|| queue.take_slot()), 1);
}

#[test]
fn steal_costs_two_and_take_share_as_much_as_the_injector() {
    let (queue, thief) = (WorkerQueue::<Item>::new(8), WorkerQueue::<Item>::new(8));
    let stealer = queue.stealer();
    assert_eq!(rmws(|| thief.steal_from(&stealer)), 0, "of an empty queue");
    (0..6).for_each(|_| queue.push_back(item(), &Nobody));
    assert_eq!(rmws(|| thief.steal_from(&stealer)), 2);
    queue.push_next(item(), &Nobody);
    assert_eq!(rmws(|| stealer.is_empty()), 0);
    assert_eq!(rmws(|| stealer.look()), 0);
    let seen = stealer.look().unwrap();
    assert_eq!(rmws(|| stealer.steal_slot(seen)), 1);
    let injector = Injector::<Item>::new();
    assert_eq!(rmws(|| thief.take_share(&injector, 1, &Nobody)), 0);
    injector.requeue(item());
    assert_eq!(rmws(|| thief.take_share(&injector, 1, &Nobody)), 1);
}

#[test]
fn slot_costs_one_rmw_only_if_an_item_is_taken_out() {
    let slot: Slot<Item> = Slot::new();
    let put = || {
        // SAFETY: only one thread uses the slot.
        unsafe { slot.put(item()) }
    };
    assert_eq!(rmws(|| slot.take()), 0, "of an empty slot");
    assert_eq!(rmws(put), 0);
    assert_eq!(rmws(put), 1, "to a full slot");
    assert_eq!(rmws(|| slot.take()), 1);
    assert_eq!(rmws(put), 0);
    assert_eq!(rmws(|| slot.look().and_then(|seen| slot.steal(seen))), 1);
}
