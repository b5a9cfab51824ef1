//! Tests the rules of `queue.rs` one by one: where an item goes, and whether a sleeper is notified.
mod sequences;

use crate::{Batch, Next, QueueHooks, RunQueue, Stealer, WorkerQueue};
use core::cell::{Cell, RefCell};
use queue_global::{Boxed, Injector, List};
use std::{boxed::Box, rc::Rc, vec, vec::Vec};

type Item = Boxed<u32>;
type Queue = WorkerQueue<Item>;

/// Counts the notifications, and keeps the overflow.
#[derive(Default)]
struct Log {
    notified: Cell<usize>,
    filled: Cell<usize>,
    overflowed: RefCell<Vec<u32>>,
}

impl QueueHooks<Item> for Log {
    fn overflow(&self, items: List<Item>) {
        let values = items.into_iter().map(|item| item.value);
        self.overflowed.borrow_mut().extend(values);
    }

    fn notify(&self) {
        self.notified.set(self.notified.get() + 1);
    }

    fn slot_filled(&self) {
        self.filled.set(self.filled.get() + 1);
    }
}

fn item(n: u32) -> Box<Item> {
    Box::new(Boxed::new(n))
}

fn next(queue: &Queue, log: &Log) -> Option<u32> {
    queue.next(log).map(|next| next.item.value)
}

fn in_ring(queue: &Queue) -> usize {
    queue.stealer().len()
}

#[test]
fn push_next_fills_slot_and_moves_displaced_item_to_ring() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.push_next(item(1), &log);
    assert_eq!(
        (log.filled.get(), log.notified.get(), in_ring(&queue)),
        (1, 0, 0)
    );
    assert!(!queue.slot_is_empty() && !queue.stealer().slot_is_empty());
    queue.push_next(item(2), &log);
    assert_eq!(
        (log.filled.get(), log.notified.get(), in_ring(&queue)),
        (1, 1, 1)
    );
    let Next { item, from_slot } = queue.next(&log).unwrap();
    assert_eq!((item.value, from_slot), (2, true));
    let Next { item, from_slot } = queue.next(&log).unwrap();
    assert_eq!((item.value, from_slot), (1, false));
    assert!(queue.is_empty() && queue.slot_is_empty());
}

#[test]
fn push_next_without_slot_pushes_behind_and_notifies() {
    let (queue, log) = (Queue::new(4).with_slot(false), Log::default());
    queue.push_next(item(1), &log);
    queue.push_next(item(2), &log);
    assert_eq!(
        (log.filled.get(), log.notified.get(), in_ring(&queue)),
        (0, 2, 2)
    );
    assert!(queue.slot_is_empty() && !queue.is_empty());
    assert_eq!(next(&queue, &log), Some(1));
}

#[test]
fn requeue_on_an_empty_queue_keeps_the_item_unnotified() {
    let (queue, log) = (Queue::new(4), Log::default());
    for _ in 0..3 {
        queue.requeue(item(1), &log);
        assert!(!queue.is_empty() && in_ring(&queue) == 0);
        assert_eq!(next(&queue, &log), Some(1));
    }
    assert!(queue.is_empty());
    assert_eq!(log.notified.get(), 0);
}

#[test]
fn two_items_that_yield_take_turns_and_only_the_push_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.push_back(item(2), &log);
    let mut running = 1;
    for turn in 0..6 {
        queue.requeue(item(running), &log);
        running = next(&queue, &log).unwrap();
        assert_eq!(running, 2 - turn % 2);
    }
    assert_eq!(log.notified.get(), 1);
}

#[test]
fn requeue_behind_a_filled_slot_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.push_next(item(2), &log);
    queue.requeue(item(1), &log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 1));
    assert_eq!(next(&queue, &log), Some(2));
    assert_eq!(next(&queue, &log), Some(1));
}

#[test]
fn next_from_slot_publishes_the_requeued_item_and_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.requeue(item(1), &log);
    queue.push_next(item(2), &log);
    assert_eq!(log.notified.get(), 0);
    assert_eq!(next(&queue, &log), Some(2));
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 1));
}

#[test]
fn take_share_publishes_the_requeued_item_and_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    let injector = Injector::<Item>::new();
    assert!(queue.take_share(&injector, 1, &log).is_none());
    queue.requeue(item(1), &log);
    injector.requeue(item(2));
    let Batch { first, moved } = queue.take_share(&injector, 1, &log).unwrap();
    assert_eq!((first.value, moved), (2, 0));
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 1));
}

/// Fails if the requeued item stays where no thief finds it, or no sleeper is notified of it.
#[test]
fn take_one_publishes_the_requeued_item_and_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    let injector = Injector::<Item>::new();
    queue.requeue(item(1), &log);
    assert!(queue.take_one(&injector, &log).is_none());
    assert_eq!((log.notified.get(), in_ring(&queue)), (0, 0));
    injector.requeue(item(2));
    assert_eq!(queue.take_one(&injector, &log).unwrap().value, 2);
    assert_eq!(log.notified.get(), 1);
    let stolen = Queue::new(4).steal_from(&queue.stealer()).unwrap();
    assert_eq!(stolen.first.value, 1);
    injector.requeue(item(3));
    assert_eq!(queue.take_one(&injector, &log).unwrap().value, 3);
    assert!(queue.is_empty());
}

/// The requeue does not notify, because the ring is not empty. So `take_one` must notify: the
/// ring's items wait behind the item that it took.
///
/// Fails if `take_one` does not notify.
#[test]
fn take_one_before_items_of_the_ring_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    let injector = Injector::<Item>::new();
    queue.push_back(item(1), &log);
    queue.requeue(item(2), &log);
    injector.requeue(item(3));
    assert_eq!(queue.take_one(&injector, &log).unwrap().value, 3);
    assert_eq!((log.notified.get(), in_ring(&queue)), (2, 2));
}

#[test]
fn share_is_fair_and_takes_at_most_half_of_the_room() {
    let log = Log::default();
    for (workers, capacity, behind, share) in [
        (4, 64, 0, 5),
        (1, 64, 0, 16),
        (0, 64, 0, 16),
        (1, 8, 0, 5),
        (1, 8, 8, 1),
        (100, 64, 0, 1),
    ] {
        let (queue, injector) = (Queue::new(capacity), Injector::<Item>::new());
        (0..behind).for_each(|n| queue.push_back(item(100 + n), &log));
        injector.requeue_batch((0..17).map(item).collect());
        drop(injector.pop()); // Moves the batch to the list. Until then `len` counts it as one.
        let Batch { first, moved } = queue.take_share(&injector, workers, &log).unwrap();
        assert_eq!((first.value, 1 + moved), (1, share));
    }
    assert!(log.overflowed.borrow().is_empty());
}

#[test]
fn leave_publishes_the_requeued_item_and_notifies_unless_alone() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.leave(&log);
    queue.requeue(item(1), &log);
    queue.leave(&log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (0, 1));
    queue.requeue(item(2), &log);
    queue.leave(&log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 2));
}

#[test]
fn open_slot_opens_the_requeued_item_too_and_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.requeue(item(1), &log);
    queue.open_slot(&log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 1));
    queue.push_next(item(2), &log);
    queue.open_slot(&log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (2, 2));
    assert_eq!([(); 2].map(|()| next(&queue, &log)), [Some(1), Some(2)]);
}

#[test]
fn open_slot_notifies_and_requeue_slot_of_a_lone_item_does_not() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.open_slot(&log);
    queue.requeue_slot(&log);
    queue.push_next(item(1), &log);
    queue.requeue_slot(&log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (0, 0));
    assert_eq!(next(&queue, &log), Some(1));
    queue.push_next(item(2), &log);
    queue.open_slot(&log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 1));
    queue.push_next(item(3), &log);
    assert_eq!(queue.take_slot().unwrap().value, 3);
    assert!(queue.take_slot().is_none());
}

/// Fails if a pushed item goes into the slot, or if a lone item is notified of.
#[test]
fn lone_push_between_items_is_kept_aside_and_notifies_nobody() {
    for has_slot in [true, false] {
        let (queue, log) = (Queue::new(4).with_slot(has_slot), Log::default());
        queue.between_items(|| queue.push_next(item(1), &log));
        assert_eq!((log.filled.get(), log.notified.get()), (0, 0));
        assert!(queue.slot_is_empty() && queue.stealer().is_empty());
        let Next {
            item: one,
            from_slot,
        } = queue.next(&log).unwrap();
        assert_eq!((one.value, from_slot), (1, false));
        queue.push_next(item(2), &log);
        assert_eq!(queue.slot_is_empty(), !has_slot, "the setting is back");
    }
}

/// Fails if the first item stays aside, if the items change their order, or if one of them is not
/// notified of.
#[test]
fn each_further_push_between_items_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.between_items(|| {
        for (n, notified) in [(1, 0), (2, 1), (3, 2)] {
            queue.push_next(item(n), &log);
            assert_eq!(log.notified.get(), notified);
        }
    });
    assert_eq!((log.filled.get(), in_ring(&queue)), (0, 3));
    let order = [(); 3].map(|()| next(&queue, &log));
    assert_eq!(order, [1, 2, 3].map(Some));
}

/// Fails if a push between items overtakes, or is not notified of, beside an item that waits: a
/// requeued one, one in the slot, or one that a thief has taken.
#[test]
fn push_between_items_beside_a_waiting_item_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.requeue(item(1), &log);
    queue.between_items(|| queue.push_next(item(2), &log));
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 2));
    assert_eq!([(); 2].map(|()| next(&queue, &log)), [Some(1), Some(2)]);

    let (queue, log) = (Queue::new(4), Log::default());
    queue.push_next(item(1), &log);
    queue.between_items(|| queue.push_next(item(2), &log));
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 1));

    let (queue, log) = (Queue::new(4), Log::default());
    queue.push_back(item(1), &log);
    drop(Queue::new(4).steal_from(&queue.stealer()).unwrap());
    queue.between_items(|| {
        queue.push_next(item(2), &log);
        queue.push_next(item(3), &log);
    });
    assert_eq!((log.notified.get(), in_ring(&queue)), (3, 2));
}

/// Fails if a panic, or the end of a call within a call, leaves the wrong setting.
#[test]
fn between_items_restores_the_place_of_the_next_push() {
    let (queue, log) = (Queue::new(4), Log::default());
    let unwinds = std::panic::AssertUnwindSafe(|| {
        queue.between_items(|| {
            queue.between_items(|| ());
            queue.push_next(item(1), &log);
            assert!(queue.slot_is_empty());
            std::panic::resume_unwind(Box::new(()));
        });
    });
    assert!(std::panic::catch_unwind(unwinds).is_err());
    queue.push_next(item(2), &log);
    assert!(!queue.slot_is_empty());
}

#[test]
fn second_requeue_pushes_the_first_item_and_notifies() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.requeue(item(1), &log);
    queue.requeue(item(2), &log);
    assert_eq!((log.notified.get(), in_ring(&queue)), (1, 2));
    assert_eq!(next(&queue, &log), Some(1));
    assert_eq!(next(&queue, &log), Some(2));
}

#[test]
fn push_to_a_full_ring_overflows_oldest_first() {
    let (queue, log) = (Queue::new(4), Log::default());
    (0..5).for_each(|n| queue.push_back(item(n), &log));
    assert_eq!(*log.overflowed.borrow(), [0, 1, 4]);
    assert_eq!(log.notified.get(), 5);
    assert_eq!(next(&queue, &log), Some(2));
}

/// Fails if a requeue that overflows does not notify after the overflow, or any push that overflows
/// notifies twice.
#[test]
fn requeue_to_a_full_ring_notifies_of_the_overflow() {
    let (queue, log) = (Queue::new(2), Log::default());
    (0..2).for_each(|n| queue.push_back(item(n), &log));
    queue.requeue(item(2), &log);
    assert_eq!(*log.overflowed.borrow(), [0, 2]);
    assert_eq!((log.notified.get(), in_ring(&queue)), (3, 1));
    queue.push_back(item(3), &log);
    queue.push_next(item(4), &log);
    queue.requeue_slot(&log);
    assert_eq!(*log.overflowed.borrow(), [0, 2, 1, 4]);
    assert_eq!(log.notified.get(), 5);
    queue.push_back(item(5), &log);
    queue.push_back(item(6), &log);
    assert_eq!(log.notified.get(), 7);
}

#[test]
fn injector_as_hooks_takes_the_overflow() {
    let (queue, injector) = (Queue::new(2), Injector::<Item>::new());
    (0..3).for_each(|n| queue.push_back(item(n), &injector));
    let values = injector.pop_n(3).into_iter().map(|item| item.value);
    assert_eq!(values.collect::<Vec<_>>(), [0, 2]);
}

/// Uses the queue again in each of its calls.
struct Again<'a>(&'a Queue, Cell<u32>);

impl QueueHooks<Item> for Again<'_> {
    fn overflow(&self, items: List<Item>) {
        self.1.set(self.1.get() + items.len() as u32);
        drop(items);
        self.notify();
    }

    fn notify(&self) {
        let n = self.1.get();
        if n < 20 {
            self.1.set(n + 1);
            self.0.push_back(item(n), self);
            self.0.requeue(item(n), self);
            self.0.push_next(item(n), self);
            drop(self.0.next(self));
        }
    }
}

#[test]
fn hooks_may_use_the_queue_again() {
    let queue = Queue::new(2);
    let again = Again(&queue, Cell::new(0));
    queue.push_back(item(1), &again);
    assert!(again.1.get() >= 20);
    while queue.take_any().is_some() {}
    assert!(queue.is_empty());
}

#[test]
fn take_any_empties_the_queue_without_notifying() {
    let (queue, log) = (Queue::new(4), Log::default());
    queue.requeue(item(1), &log);
    queue.push_next(item(2), &log);
    let other = Queue::new(4);
    other.push_back(item(3), &log);
    let notified = log.notified.get();
    let values = core::iter::from_fn(|| queue.take_any()).map(|item| item.value);
    assert_eq!(values.collect::<Vec<_>>(), [1, 2]);
    assert!(queue.is_empty());
    assert_eq!(other.take_any().unwrap().value, 3);
    assert_eq!(log.notified.get(), notified);
}

#[test]
fn steal_takes_half_of_the_ring_and_nothing_else() {
    let (queue, log) = (Queue::new(8), Log::default());
    (0..5).for_each(|n| queue.push_back(item(n), &log));
    queue.push_next(item(5), &log);
    let (thief, stealer) = (Queue::new(8), queue.stealer());
    let Batch { first, moved } = thief.steal_from(&stealer).unwrap();
    assert_eq!((first.value, moved, stealer.len()), (0, 2, 2));
    while thief.steal_from(&stealer).is_some() {}
    assert!(stealer.is_empty() && !queue.is_empty());
    assert_eq!(next(&queue, &log), Some(5));
    queue.push_back(item(6), &log);
    assert!(queue.steal_from(&stealer).is_none(), "its own");
    assert_eq!(next(&queue, &log), Some(6));
}

#[test]
fn steal_tries_every_queue_from_a_random_start() {
    let log = Log::default();
    let queues = [0, 1, 2, 3].map(|index| Queue::new(8).with_seed(7, index));
    let stealers = queues.each_ref().map(Queue::stealer);
    let mut found = [0; 4];
    for round in 0..200 {
        let (door, thief) = (round % 4, (round + 1) % 4);
        queues[door].push_back(item(round as u32), &log);
        let batch = queues[thief].steal(&stealers, |stealer| stealer);
        assert_eq!(batch.unwrap().first.value, round as u32);
        for (door, queue) in queues.iter().enumerate().take(3) {
            queue.push_back(item(door as u32), &log);
        }
        let first = queues[3].steal(&stealers, |stealer| stealer).unwrap().first;
        found[first.value as usize] += 1;
        queues
            .iter()
            .for_each(|queue| while queue.take_any().is_some() {});
    }
    assert!(found[..3].iter().all(|&times| times > 20), "{found:?}");
    let none: &[Stealer<Item>] = &[];
    assert!(queues[0].steal(none, |stealer| stealer).is_none());
}

#[test]
fn steal_slot_takes_only_the_item_that_was_seen() {
    let (queue, log) = (Queue::new(4), Log::default());
    let stealer = queue.stealer();
    assert!(stealer.look().is_none());
    queue.push_next(item(1), &log);
    let seen = stealer.look().unwrap();
    let one = queue.take_slot();
    assert!(stealer.steal_slot(seen).is_none());
    queue.push_next(item(2), &log); // At another address: `one` still exists.
    assert!(stealer.steal_slot(seen).is_none());
    assert_eq!(
        stealer
            .clone()
            .steal_slot(stealer.look().unwrap())
            .unwrap()
            .value,
        2
    );
    assert!(queue.is_empty());
    drop(one);
}

#[test]
fn dropped_queue_drops_its_items_despite_stealers() {
    struct Counts(Rc<Cell<u32>>);
    impl Drop for Counts {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    // SAFETY: the handles stay on this thread.
    unsafe impl Send for Counts {}
    let dropped = Rc::new(Cell::new(0));
    let item = || Box::new(Boxed::new(Counts(dropped.clone())));
    let injector = Injector::<Boxed<Counts>>::new();
    let queue = WorkerQueue::new(4);
    let stealer = queue.stealer();
    queue.requeue(item(), &injector);
    queue.push_next(item(), &injector);
    queue.push_next(item(), &injector);
    drop(queue);
    assert_eq!(dropped.get(), 3);
    assert!(stealer.is_empty() && stealer.look().is_none());
}

#[test]
fn panic_in_hooks_loses_no_queued_item() {
    struct Panics(Cell<bool>);
    impl QueueHooks<Item> for Panics {
        fn overflow(&self, _: List<Item>) {
            self.notify();
        }
        fn notify(&self) {
            assert!(!self.0.get(), "as the test asked");
        }
    }
    let queue = Queue::new(4);
    let panics = Panics(Cell::new(true));
    let caught = |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
    assert!(caught(&|| queue.push_back(item(1), &panics)));
    queue.push_next(item(2), &panics);
    assert!(caught(&|| queue.requeue(item(3), &panics)));
    panics.0.set(false);
    let values = core::iter::from_fn(|| queue.next(&panics)).map(|next| next.item.value);
    assert_eq!(values.collect::<Vec<_>>(), vec![2, 1, 3]);
}

#[test]
fn queue_debug_names_its_parts() {
    let queue = Queue::new(4);
    assert!(std::format!("{queue:?}").contains("WorkerQueue"));
    assert!(std::format!("{:?}", queue.stealer()).contains("slot"));
}
