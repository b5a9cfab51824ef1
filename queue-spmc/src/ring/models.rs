//! Owner and thieves against each other, on rings of 2 and 4 whose positions wrap in the middle.
//! Every item is a number; each must turn up exactly once.
//!
//! The rings of the later models claim two items at a time.
use super::{storage::StorageParts, *};
use crate::Overflow;
use std::mem::ManuallyDrop;
use sync_shim::{
    Model, model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

pub(super) const WRAP: u32 = u32::MAX;

/// Takes what it can in `times` tries, into a list.
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

/// Two pushes and pops against two steals, over the wrap of a ring of 2.
///
/// Bites: publish `tail` with Relaxed; claim with Relaxed; release `steal` with Relaxed (the
/// owner overwrites a slot in mid-copy); read before the claim.
#[test]
fn push_and_pop_against_two_steals() {
    model(|| pushes_and_pops(2));
}

/// The same with a third item, so that the positions wrap once more.
#[test]
fn full_push_and_pop_against_two_steals_over_the_wrap() {
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
            // A thief in mid-copy may hold the slot still.
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

/// A batch of half against pops.
///
/// Bites: let a pop move `steal` too while a thief copies (the owner's pushes overwrite the batch).
#[test]
fn pops_against_a_batch() {
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
            // A thief in mid-copy may hold the slot still.
            if worker.push(item).is_err() {
                got.push(item);
            }
        }
        got.extend(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 5);
    });
}

/// Two thieves: one claims, the other is told to retry or takes the rest.
///
/// Bites: claim with a store in place of the exchange.
#[test]
fn two_thieves_take_each_item_once() {
    model(|| two_thieves(2));
}

/// The same while the owner pushes. Bounded: without a bound it takes hours.
///
/// Bites: let a thief claim while another copies (the first to end frees the other's slot, and the
/// owner's push overwrites it).
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

/// A full ring overflows while a thief makes room: the item goes out with the half, alone, or stays.
///
/// Bites: claim the half with a store in place of the exchange.
#[test]
fn overflow_against_a_steal() {
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

/// The worker goes while a thief steals: each item is dropped once, by one of them.
///
/// Bites: let the worker's drop read without claiming.
#[test]
fn drop_against_a_steal() {
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

/// A ring of 4 whose owner has claimed two of `items` and popped one of the two.
fn with_a_claimed_one(items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(4, WRAP - 1).with_claim(2);
    worker.extend(0..items);
    assert_eq!(worker.pop(), Some(0));
    worker
}

/// Claims of two against two steals, over the wrap, where pushes follow.
///
/// Bites: a push that takes the claimed slots for free (`room` without `next`); a claim with a store in place of the exchange.
#[test]
fn claims_against_two_steals() {
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

/// A thief takes what is open, finds nothing more, and tells that it has asked. So the owner's next operation gives the claimed item back:
/// to the front if the thief took nothing from behind it, else to the tail.
fn asked(items: u32, operation: fn(&mut Worker<u32>) -> Vec<u32>) {
    asked_of(with_a_claimed_one(items), items, operation);
}

fn asked_of(mut worker: Worker<u32>, items: u32, operation: fn(&mut Worker<u32>) -> Vec<u32>) {
    let stealer = worker.stealer();
    let asked = Arc::new(AtomicU32::new(0));
    let thief = {
        let asked = asked.clone();
        thread::spawn(move || {
            let mut got = Vec::new();
            loop {
                match stealer.steal() {
                    Steal::Success { first, .. } => got.push(first),
                    Steal::Retry => {}
                    Steal::Empty => break,
                }
            }
            // Ordering: Release, to the owner's look: the thief has asked before.
            asked.store(1, Release);
            got.extend(steal_one_by_one(&stealer, 1));
            got
        })
    };
    // Ordering: Acquire, from the thief.
    let known = asked.load(Acquire) != 0;
    let mut got = vec![0];
    got.extend(operation(&mut worker));
    assert!(
        !known || worker.claimed_len() == 0 || worker.early,
        "an ask went unheard for an operation"
    );
    got.extend(worker.drain());
    got.extend(thief.join().unwrap());
    got.extend(worker.drain());
    got.retain(|item| *item < items);
    assert_each_once(got, items);
}

/// Bites: a push that doesn't look at `wanted`; a thief that doesn't set it; giving back without moving the head.
#[test]
fn claimed_items_come_back_at_the_next_push() {
    model(|| {
        asked(2, |worker| {
            worker.push(9).unwrap();
            Vec::new()
        });
    });
}

/// Bites: giving back by the head though others were taken from behind the claimed ones (they are taken twice).
#[test]
fn claimed_items_come_back_behind_those_that_were_stolen() {
    model(|| {
        asked(3, |worker| {
            worker.extend([]);
            Vec::new()
        });
    });
}

/// The same where the operation is a push.
#[test]
fn full_claimed_items_come_back_between_those_that_were_stolen_and_one_that_is_pushed() {
    model(|| {
        asked(3, |worker| {
            worker.push(9).unwrap();
            Vec::new()
        });
    });
}

/// The owner learns from a failed exchange, with no other look, that the thief has copied the item before the claimed ones, and writes its slot again.
/// Bounded: without a bound it takes a minute.
///
/// Bites: the failure of the exchange with Relaxed.
#[test]
fn claimed_items_come_back_into_a_slot_that_a_thief_has_copied() {
    Model::new().bound(3).check(|| {
        let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
        worker.extend(0..4);
        let stealer = worker.stealer();
        let asked = Arc::new(AtomicU32::new(0));
        let thief = {
            let asked = asked.clone();
            thread::spawn(move || {
                let got = steal_one_by_one(&stealer, 3);
                // Ordering: Relaxed; it orders nothing, but that the owner looks after this is explored.
                asked.fetch_add(1, Relaxed);
                got
            })
        };
        let mut got = Vec::from_iter(worker.pop());
        // Ordering: as above.
        asked.fetch_add(1, Relaxed);
        worker.extend([]);
        got.extend(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 4);
    });
}

/// Bites: a pop that doesn't look at `wanted`.
#[test]
fn claimed_items_come_back_at_the_next_pop() {
    model(|| {
        let mut worker = Worker::starting_at(8, WRAP - 3).with_claim(3);
        worker.extend(0..5);
        assert_eq!(worker.pop(), Some(0));
        assert_eq!(worker.claimed_len(), 2);
        asked_of(worker, 5, |worker| worker.pop().into_iter().collect());
    });
}

/// What is open is there for the first thief that comes, whatever the owner claims meanwhile, as long as that leaves something.
///
/// Bites: claims of all that there is.
#[test]
fn with_two_open_items_a_thief_always_gets_one() {
    model(|| {
        let mut worker = with_a_claimed_one(4);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            loop {
                match stealer.steal() {
                    Steal::Success { first, .. } => return first,
                    Steal::Retry => thread::yield_now(),
                    Steal::Empty => panic!("two items are open"),
                }
            }
        });
        // The claimed one, then one of the two that are open.
        let mut got = vec![0];
        got.extend(worker.pop());
        got.extend(worker.pop());
        got.push(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 4);
    });
}

/// The item that is pushed into an empty ring is the owner's at once, unless a thief has asked. A second push opens both.
///
/// Bites: publishing the second alone (`head` stays, the first is taken twice); keeping the first as claimed.
#[test]
fn an_early_item_against_two_steals() {
    model(|| early(2));
}

/// The same with a third item.
#[test]
fn full_early_items_against_two_steals() {
    model(|| early(3));
}

fn early(items: u32) {
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

/// Bites: a thief that doesn't set `wanted` (the item never opens).
#[test]
fn an_early_item_opens_at_the_next_operation_once_a_thief_asked() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
        worker.push(0).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        assert_eq!(thief.join().unwrap(), [], "it is the owner's");
        worker.extend([]);
        assert!(worker.gave_back() && !worker.gave_back());
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        let mut got = Vec::from_iter(worker.pop());
        got.extend(thief.join().unwrap());
        assert_each_once(got, 1);
    });
}

/// What `worker` holds beside a thief that steals once or twice is all open, unless the thief left
/// something to take.
fn open_beside(
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
    let head = worker.ring.core().load_head();
    assert!(
        worker.claimed_len() == 0 || head.real() != worker.tail,
        "the rest is claimed"
    );
    got.extend(worker.drain());
    assert_each_once(got, items);
}

/// An owner told to claim one at a time, in whose empty ring early items were, hides none from then
/// on.
///
/// Bites: `with_claim` that keeps `early`.
#[test]
fn told_to_claim_one_the_next_item_is_open_to_a_thief() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP).with_claim(2);
        worker.push(0).unwrap();
        assert!(worker.early);
        open_beside(worker, 2, 2, |mut worker| {
            let got = Vec::from_iter(worker.pop());
            let mut worker = worker.with_claim(1);
            worker.push(1).unwrap();
            (worker, got)
        });
    });
}

/// Bites: `with_claim` that doesn't give back; giving back by the head whoever took from behind.
#[test]
fn told_to_claim_one_it_gives_back_beside_a_steal() {
    model(|| {
        open_beside(with_a_claimed_one(3), 1, 3, |worker| {
            (worker.with_claim(1), vec![0])
        });
    });
}

/// The iterator has claimed three of four, and goes when it has given out one.
///
/// Bites: no drop of the iterator; one that gives back by the head whoever took from behind.
#[test]
fn pop_n_dropped_early_gives_back_beside_a_steal() {
    model(|| {
        let mut worker = Worker::starting_at(4, WRAP - 3);
        worker.extend(0..4);
        open_beside(worker, 1, 5, |mut worker| {
            let mut got = Vec::from_iter(worker.pop_n(3).next());
            if let Err(Full(item)) = worker.push(4) {
                got.push(item);
            }
            (worker, got)
        });
    });
}

/// A full ring whose owner has claimed something overflows that too: it is the oldest.
///
/// Bites: leaving the claimed items out of the batch and taking them for room.
#[test]
fn overflow_of_claimed_items_against_a_steal() {
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

/// The worker goes with claimed items while a thief steals the others.
///
/// Bites: a drop that forgets the claimed ones.
#[test]
fn drop_of_claimed_items_against_a_steal() {
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

/// Giving back by the head alone, whoever took from behind the claimed items: theirs are in the ring again.
#[test]
fn moving_the_head_back_over_stolen_items_takes_them_twice() {
    model_must_fail("right: [0, 1, 2]", || {
        let mut worker = with_a_claimed_one(3);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_one_by_one(&stealer, 1));
        let head = worker.ring.core().load_head();
        let next = worker.next();
        if !head.is_copying() && worker.move_head(head, next).is_ok() {
            worker.own = worker.end;
        }
        let mut got = vec![0];
        got.extend(thief.join().unwrap());
        got.extend(worker.drain());
        assert_each_once(got, 3);
    });
}

/// A ring that goes while a thief still looks at it: the model sees it, which every model of an end rests on.
///
/// Bites: leave out what `Core::retire` does.
#[test]
fn who_looks_at_a_ring_that_is_gone_is_seen() {
    model_must_fail("mut accesses", || {
        let raw = Box::into_raw(Box::new(Inline::<u32, 2>::new()));
        // SAFETY: it is there until the end of the model.
        let ring: &'static Inline<u32, 2> = unsafe { &*raw };
        let stealer = ring.take().unwrap().stealer();
        let thief = thread::spawn(move || stealer.len());
        // SAFETY: unsound on purpose. What the thief reads is not behind a pointer, so it stays readable.
        unsafe { raw.drop_in_place() };
        thief.join().unwrap();
        // SAFETY: dropped above, and freed here.
        drop(unsafe { Box::from_raw(raw.cast::<ManuallyDrop<Inline<u32, 2>>>()) });
    });
}

/// The source's steal: copy first, claim after. The owner, who has popped the item meanwhile,
/// overwrites the slot while it is read.
#[test]
fn a_copy_before_the_claim_is_a_data_race() {
    model_must_fail("Concurrent read and write accesses", || {
        let mut worker = Worker::starting_at(2, WRAP);
        worker.push(0).unwrap();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let core = stealer.ring.core();
            let head = core.load_head();
            let tail = core.tail.load(Acquire);
            if head.real() != tail {
                // SAFETY: unsound on purpose; the items are numbers.
                let item = unsafe {
                    read(
                        stealer.ring.slots(),
                        index(stealer.ring.slots(), head.real()),
                    )
                };
                let after = head.moved(head.real().wrapping_add(1));
                if core.exchange_head(head, after).is_ok() {
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
