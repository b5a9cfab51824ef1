//! Models of an owner against thieves, on rings of 2, 4 or 8 slots whose positions wrap in the
//! middle. Each item is a number that must turn up exactly once. In most of the later models the
//! owner claims two items at a time.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::{storage::StorageParts, *};
use crate::Overflow;
use std::mem::ManuallyDrop;
use sync_shim::{
    Model, model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

pub(super) const WRAP: u32 = u32::MAX;

/// Tries `times` times to steal one item, and returns the stolen items.
pub(super) fn steal_one_by_one(stealer: &Stealer<u32>, times: usize) -> Vec<u32> {
    let mut got = Vec::new();
    for _ in 0..times {
        if let Steal::Success { first, .. } = stealer.steal() {
            got.push(first);
        }
    }
    got
}

pub(super) fn steal_half(stealer: &Stealer<u32>, times: usize) -> Vec<u32> {
    let mut mine = Worker::new(4);
    let mut got = Vec::new();
    for _ in 0..times {
        if let Steal::Success { first, .. } =
            stealer.steal_into_and_pop(&mut mine, StealLimit::Half)
        {
            got.push(first);
            got.extend(mine.drain());
        }
    }
    got
}

pub(super) fn assert_each_once(mut got: Vec<u32>, n: u32) {
    got.sort_unstable();
    assert_eq!(got, (0..n).collect::<Vec<_>>());
}

/// The owner pushes two items and pops, against two steals, over the wrap of a ring of 2.
///
/// Fails if `tail` is published with Relaxed.
#[test]
fn pushes_and_pops_against_two_steals_take_each_item_once() {
    model(|| pushes_and_pops(2));
}

/// The scenario above with a third item, so that the owner reuses a slot.
///
/// Fails if a claim or a release of `steal` is Relaxed, or if a thief reads before its claim: the
/// owner then overwrites a slot that is being copied.
#[test]
fn full_pushes_and_pops_over_the_wrap_take_each_item_once() {
    model(|| pushes_and_pops(3));
}

fn pushes_and_pops(items: u32) {
    let mut worker = Worker::starting_at(2, WRAP);
    let stealer = worker.stealer();
    let thief = thread::spawn(move || steal_one_by_one(&stealer, 2));
    let mut got = Vec::new();
    for item in 0..items {
        if let Err(Full(item)) = worker.push(item) {
            got.extend(worker.pop());
            // A thief may still be copying the slot.
            if worker.push(item).is_err() {
                got.push(item);
            }
        }
    }
    got.extend(worker.pop());
    let stolen = thief.join().unwrap();
    assert!(stolen.is_sorted(), "a thief saw items out of order");
    got.extend(stolen);
    got.extend(worker.drain());
    assert_each_once(got, items);
}

/// A thief steals half of the ring while the owner pops.
///
/// Fails if a pop also moves `steal` while a thief copies (the owner's pushes overwrite the batch).
#[test]
fn pops_against_a_batch_steal_take_each_item_once() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP - 1);
        for item in 0..3 {
            worker.push(item).unwrap();
        }
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half(&stealer, 1));
        let mut got = Vec::from_iter(worker.pop());
        got.extend(worker.pop());
        assert!(got.is_sorted(), "the owner saw items out of order");
        for item in 3..5 {
            // A thief may still be copying the slot.
            if worker.push(item).is_err() {
                got.push(item);
            }
        }
        got.extend(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 5);
    });
}

/// Two thieves steal at the same time. One claims the first item; the other thief retries or takes
/// the second item.
///
/// Fails if a thief claims by a store in place of the exchange.
#[test]
fn two_thieves_take_each_item_once() {
    model(|| two_thieves(2));
}

/// The scenario above while the owner pushes. The model has a bound, because it takes hours without
/// one.
///
/// Fails if a thief claims while another copies: the first thief to end then frees the slot that
/// the other copies, and the owner's push overwrites that slot.
#[test]
fn two_thieves_keep_the_owner_off_each_others_slots() {
    Model::new().bound(2).check(|| two_thieves(3));
}

fn two_thieves(items: u32) {
    let mut worker = Worker::starting_at(2, WRAP);
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let thief = |stealer: Stealer<u32>| thread::spawn(move || steal_one_by_one(&stealer, 1));
    let thieves = [thief(worker.stealer()), thief(worker.stealer())];
    let mut got: Vec<u32> = (2..items)
        .filter_map(|item| worker.push(item).err().map(|full| full.0))
        .collect();
    got.extend(thieves.into_iter().flat_map(|thief| thief.join().unwrap()));
    got.extend(worker.drain());
    assert_each_once(got, items);
}

pub(super) struct Global(pub(super) Mutex<Vec<u32>>);

impl Overflow<u32> for Global {
    fn push(&self, item: u32) {
        self.0.lock().push(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        let batch: Vec<_> = batch.collect();
        self.0.lock().extend(batch);
    }
}

/// A full ring overflows while a thief makes room. The new item goes to the injector with half of
/// the ring, goes there alone, or finds room in the ring.
///
/// Fails if the owner claims the half by a store in place of the exchange.
#[test]
fn overflow_against_a_steal_keeps_each_item_once() {
    model(|| {
        let mut worker = Worker::starting_at(2, WRAP);
        worker.push(0).unwrap();
        worker.push(1).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 2));
        let global = Global(Mutex::new(Vec::new()));
        worker.push_or_overflow(2, &global);
        let mut got = thief.join().unwrap();
        got.extend(global.0.into_inner());
        got.extend(worker.drain());
        assert_each_once(got, 3);
    });
}

/// The worker is dropped while a thief steals: one of them drops each item, once.
///
/// Fails if the worker's drop reads items without claiming them.
#[test]
fn worker_drop_against_a_steal_drops_each_item_once() {
    model(|| {
        let count = Arc::new(());
        let mut worker = Worker::starting_at(2, WRAP);
        worker.push(count.clone()).unwrap();
        worker.push(count.clone()).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || drop(stealer.steal()));
        drop(worker);
        thief.join().unwrap();
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// Makes a ring of 4 whose owner has popped item 0. If `items` is 3 or 4, the owner has claimed
/// item 1 by the same exchange.
fn with_a_claimed_one(items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(4, WRAP - 1).with_claim(2);
    worker.extend(0..items);
    assert_eq!(worker.pop(), Some(0));
    worker
}

/// An owner that has claimed two items pushes and pops over the wrap, while a thief steals twice.
///
/// Fails if a push counts the claimed slots as free (`room` without `next`), or if a thief claims
/// by a store in place of the exchange.
#[test]
fn claims_against_two_steals_take_each_item_once() {
    model(|| {
        let mut worker = with_a_claimed_one(4);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 2));
        let mut got = vec![0];
        for item in 4..6 {
            if worker.push(item).is_err() {
                got.push(item);
            }
        }
        got.extend(worker.pop());
        let stolen = thief.join().unwrap();
        got.extend(stolen);
        got.extend(worker.drain());
        assert_each_once(got, 6);
    });
}

/// A thief takes the available items until it finds none, and so makes a request. The thief then
/// stores a flag. An owner that sees the flag must give the claimed item back in its next
/// operation. It gives the item back at the front if the thief took no item from behind the claimed
/// item, otherwise at the tail.
fn check_request(items: u32, operation: fn(&mut Worker<u32>) -> Vec<u32>) {
    check_request_on(with_a_claimed_one(items), items, operation);
}

fn check_request_on(
    mut worker: Worker<u32>,
    items: u32,
    operation: fn(&mut Worker<u32>) -> Vec<u32>,
) {
    let stealer = worker.stealer();
    let requested = Arc::new(AtomicU32::new(0));
    let thief = {
        let requested = requested.clone();
        thread::spawn(move || {
            let mut got = Vec::new();
            loop {
                match stealer.steal() {
                    Steal::Success { first, .. } => got.push(first),
                    Steal::Retry => {}
                    Steal::Empty => break,
                }
            }
            // Ordering: Release pairs with the owner's load: the thief made its request before.
            requested.store(1, Release);
            got.extend(steal_one_by_one(&stealer, 1));
            got
        })
    };
    // Ordering: Acquire pairs with the thief's store.
    let known = requested.load(Acquire) != 0;
    let mut got = vec![0];
    got.extend(operation(&mut worker));
    assert!(
        !known || worker.claimed_len() == 0 || worker.private,
        "the owner's next operation did not handle a request"
    );
    got.extend(worker.drain());
    got.extend(thief.join().unwrap());
    got.extend(worker.drain());
    got.retain(|item| *item < items);
    assert_each_once(got, items);
}

/// A thief takes the two items from behind the claimed one, and then finds nothing. Meanwhile the
/// owner handles a request, which may be the thief's or an older one. If the thief's request is not
/// handled by then, the owner's next operation handles it.
fn check_request_beside_a_request(older: bool) {
    let mut worker = with_a_claimed_one(4);
    let stealer = worker.stealer();
    if older {
        // As of a thief that found nothing before the owner pushed the last two items.
        worker.ring.header().set_request(1);
    }
    let thief = thread::spawn(move || {
        let mut got = Vec::new();
        while let Steal::Success { first, .. } = stealer.steal() {
            got.push(first);
        }
        got
    });
    worker.extend([]);
    let mut got = vec![0];
    got.extend(thief.join().unwrap());
    worker.extend([]);
    assert_eq!(worker.claimed_len(), 0, "a request was lost");
    got.extend(worker.drain());
    assert_each_once(got, 4);
}

/// The owner may see the request and not yet the steal of the last item.
///
/// Fails if the owner clears the request after a load of `head` that shows an item behind the
/// claimed one.
#[test]
fn request_seen_before_the_steals_is_not_lost() {
    model(|| check_request_beside_a_request(false));
}

/// The thief may find nothing after the owner has looked at `head`, and find `request` set before
/// the owner clears it. The model has a bound, because it takes many minutes without one.
///
/// Fails if the owner does not look at `head` by an exchange after it has cleared the request.
#[test]
fn request_beside_an_older_one_is_not_lost() {
    Model::new()
        .bound(4)
        .check(|| check_request_beside_a_request(true));
}

/// The owner pushes an item while a thief makes its request. The owner has claimed nothing.
///
/// Fails if the push or the steal loses an item, or takes one twice.
#[test]
fn push_against_a_request_takes_each_item_once() {
    model(|| {
        check_request(2, |worker| {
            worker.push(9).unwrap();
            Vec::new()
        });
    });
}

/// Fails if a push does not load `request`, if a thief does not set it, or if the owner gives the
/// item back without moving `head`.
#[test]
fn full_claimed_items_are_given_back_at_the_next_push() {
    model(|| {
        check_request(3, |worker| {
            worker.push(9).unwrap();
            Vec::new()
        });
    });
}

/// Fails if the owner gives claimed items back by moving `head` although a thief took items from
/// behind them. The stolen items are then taken twice.
#[test]
fn claimed_items_are_given_back_behind_stolen_ones() {
    model(|| {
        check_request(3, |worker| {
            worker.extend([]);
            Vec::new()
        });
    });
}

/// The scenario above, where the owner's operation is a push.
#[test]
fn full_push_gives_claimed_items_back_behind_stolen_ones() {
    model(|| {
        check_request(3, |worker| {
            worker.push(9).unwrap();
            Vec::new()
        });
    });
}

/// Only a failed exchange shows the owner that the thief has copied the item before the claimed
/// ones. The owner then writes to the slot of that item. The model has a bound, because it takes a
/// minute without one.
///
/// Fails if the exchange has a failure ordering of Relaxed.
#[test]
fn claimed_items_are_given_back_into_a_slot_already_copied() {
    Model::new().bound(3).check(|| {
        let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
        worker.extend(0..4);
        let stealer = worker.stealer();
        let requested = Arc::new(AtomicU32::new(0));
        let thief = {
            let requested = requested.clone();
            thread::spawn(move || {
                let got = steal_one_by_one(&stealer, 3);
                // Ordering: Relaxed, because this orders nothing. It only makes loom explore the
                // executions in which the owner's `fetch_add` comes later.
                requested.fetch_add(1, Relaxed);
                got
            })
        };
        let mut got = Vec::from_iter(worker.pop());
        // Ordering: as above.
        requested.fetch_add(1, Relaxed);
        worker.extend([]);
        got.extend(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 4);
    });
}

/// Fails if a pop does not load `request`.
#[test]
fn claimed_items_are_given_back_at_the_next_pop() {
    model(|| {
        let mut worker = Worker::starting_at(8, WRAP - 3).with_claim(3);
        worker.extend(0..5);
        assert_eq!(worker.pop(), Some(0));
        assert_eq!(worker.claimed_len(), 2);
        check_request_on(worker, 5, |worker| worker.pop().into_iter().collect());
    });
}

/// A thief finds an available item although the owner pops meanwhile, because the pops leave at
/// least one of the two available items.
///
/// Fails if a claim stores in place of its exchange.
#[test]
fn thief_with_two_available_items_always_gets_one() {
    model(|| {
        let mut worker = with_a_claimed_one(4);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            loop {
                match stealer.steal() {
                    Steal::Success { first, .. } => return first,
                    Steal::Retry => thread::yield_now(),
                    Steal::Empty => panic!("two items are available"),
                }
            }
        });
        // The owner pops the claimed item, and then one of the two available items.
        let mut got = vec![0];
        got.extend(worker.pop());
        got.extend(worker.pop());
        got.push(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 4);
    });
}

/// An item that is pushed into an empty ring is private (rule 8), unless a thief has made a
/// request. A second push makes both items available.
///
/// Fails if the second push publishes the second item and the first stays claimed: `head` still is
/// at the first item, which is then taken twice.
#[test]
fn private_item_against_two_steals_is_taken_once() {
    model(|| private_items(2));
}

/// The scenario above with a third item.
#[test]
fn full_private_items_against_two_steals_are_taken_once() {
    model(|| private_items(3));
}

fn private_items(items: u32) {
    let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
    let stealer = worker.stealer();
    let thief = thread::spawn(move || steal_one_by_one(&stealer, 2));
    worker.push(0).unwrap();
    worker.push(1).unwrap();
    let mut got = Vec::from_iter(worker.pop());
    for item in 2..items {
        worker.push(item).unwrap();
        got.extend(worker.pop());
    }
    got.extend(thief.join().unwrap());
    got.extend(worker.drain());
    assert_each_once(got, items);
}

/// Fails if a thief does not set `request` (the item never becomes available).
#[test]
fn private_item_after_a_request_becomes_available() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
        worker.push(0).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        assert_eq!(thief.join().unwrap(), [], "the item is private");
        worker.extend([]);
        assert!(worker.gave_back() && !worker.gave_back());
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        let mut got = Vec::from_iter(worker.pop());
        got.extend(thief.join().unwrap());
        assert_each_once(got, 1);
    });
}

/// Runs `operation` beside a thief that steals `steals` times. Afterwards no item is claimed,
/// unless the ring still has an available item.
fn no_item_stays_claimed_beside(
    mut worker: Worker<u32>,
    steals: usize,
    items: u32,
    operation: impl FnOnce(Worker<u32>) -> (Worker<u32>, Vec<u32>),
) {
    let stealer = worker.stealer();
    let thief = thread::spawn(move || steal_one_by_one(&stealer, steals));
    let mut got;
    (worker, got) = operation(worker);
    got.extend(thief.join().unwrap());
    let head = worker.ring.header().load_head();
    assert!(
        worker.claimed_len() == 0 || head.real() != worker.tail,
        "items stay claimed"
    );
    got.extend(worker.drain());
    assert_each_once(got, items);
}

/// The owner pushes a private item, and is then set to claim one item at a time. From then on, the
/// items that it pushes are available.
///
/// Fails if `with_claim` keeps `private`.
#[test]
fn with_claim_one_makes_the_next_item_available() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
        worker.push(0).unwrap();
        assert!(worker.private);
        no_item_stays_claimed_beside(worker, 2, 2, |mut worker| {
            let got = Vec::from_iter(worker.pop());
            let mut worker = worker.with_claim(1);
            worker.push(1).unwrap();
            (worker, got)
        });
    });
}

/// Fails if `with_claim` does not give claimed items back, or gives them back by moving `head`
/// although a thief took items from behind them.
#[test]
fn with_claim_one_beside_a_steal_gives_items_back() {
    model(|| {
        no_item_stays_claimed_beside(with_a_claimed_one(3), 1, 3, |worker| {
            (worker.with_claim(1), vec![0])
        });
    });
}

/// The iterator has claimed three of four items, and is dropped after it yielded one.
///
/// Fails if the iterator does not implement `Drop`, or if its `drop` gives items back by moving
/// `head` although a thief took items from behind them.
#[test]
fn pop_n_dropped_early_beside_a_steal_gives_items_back() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP - 3);
        worker.extend(0..4);
        no_item_stays_claimed_beside(worker, 1, 5, |mut worker| {
            let mut got = Vec::from_iter(worker.pop_n(3).next());
            if let Err(Full(item)) = worker.push(4) {
                got.push(item);
            }
            (worker, got)
        });
    });
}

/// An overflow of a full ring includes the items that its owner has claimed, as they are the
/// oldest.
///
/// Fails if a batch leaves out the claimed items and counts their slots as room.
#[test]
fn overflow_of_claimed_items_against_a_steal_keeps_each_once() {
    model(|| {
        let mut worker = with_a_claimed_one(4);
        worker.push(4).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        let global = Global(Mutex::new(Vec::new()));
        worker.push_or_overflow(5, &global);
        let mut got = thief.join().unwrap();
        got.push(0);
        got.extend(global.0.into_inner());
        got.extend(worker.drain());
        assert_each_once(got, 6);
    });
}

/// The worker is dropped with claimed items while a thief steals the others.
///
/// Fails if the worker's drop forgets the claimed items.
#[test]
fn worker_drop_with_claimed_items_drops_each_once() {
    model(|| {
        let count = Arc::new(());
        let mut worker = Worker::starting_at(4, WRAP - 1).with_claim(2);
        worker.extend((0..4).map(|_| count.clone()));
        drop(worker.pop());
        assert_eq!(worker.claimed_len(), 1);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || drop(stealer.steal()));
        drop(worker);
        thief.join().unwrap();
        assert_eq!(Arc::strong_count(&count), 1);
    });
}

/// An owner with a bug gives claimed items back by moving `head`, although a thief took items from
/// behind them: the stolen items are then in the ring again.
#[test]
fn moving_the_head_back_over_stolen_items_takes_them_twice() {
    model_must_fail("right: [0, 1, 2]", || {
        let mut worker = with_a_claimed_one(3);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        let head = worker.ring.header().load_head();
        let next = worker.first_position();
        if !head.is_copying() && worker.move_head(head, next).is_ok() {
            worker.first_slot = worker.end_slot;
        }
        let mut got = vec![0];
        got.extend(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 3);
    });
}

/// A ring is dropped while a thief still loads from the ring. The model checker must report that
/// load, because each model of a drop depends on such a report.
///
/// Fails if `Header::retire` does nothing.
#[test]
fn access_to_a_dropped_ring_fails_the_model() {
    model_must_fail("mut accesses", || {
        let raw = Box::into_raw(Box::new(Inline::<u32, 2>::new()));
        // SAFETY: the ring is not freed before the end of the model.
        let ring: &'static Inline<u32, 2> = unsafe { &*raw };
        let stealer = ring.take().unwrap().stealer();
        let thief = thread::spawn(move || stealer.len());
        // SAFETY: unsound on purpose. The fields that the thief reads are not behind a pointer, so
        // they stay readable.
        unsafe { raw.drop_in_place() };
        thief.join().unwrap();
        // SAFETY: the ring was dropped above, and is freed only here.
        drop(unsafe { Box::from_raw(raw.cast::<ManuallyDrop<Inline<u32, 2>>>()) });
    });
}

/// A thief steals as in Go: it copies first and claims afterwards. The owner, which has popped the
/// item meanwhile, overwrites the slot while the thief reads the slot.
#[test]
fn copy_before_the_claim_is_a_data_race() {
    model_must_fail("Concurrent read and write accesses", || {
        let mut worker = Worker::starting_at(2, WRAP);
        worker.push(0).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let header = stealer.ring.header();
            let head = header.load_head();
            let tail = header.tail.load(Acquire);
            if head.real() != tail {
                // SAFETY: unsound on purpose; the items are numbers.
                let item = unsafe {
                    read(
                        stealer.ring.slots(),
                        index(stealer.ring.slots(), head.real()),
                    )
                };
                let after = head.moved(head.real().wrapping_add(1));
                if header.exchange_head(head, after).is_ok() {
                    return Some(item);
                }
            }
            None
        });
        let _ = worker.pop();
        let _ = worker.push(1);
        let _ = worker.push(2);
        let _ = thief.join();
    });
}
