//! Owner and thieves against each other, over positions that wrap. Every item is a number; each must turn up exactly once.
use super::*;
use sync_shim::{Model, model, model_must_fail, sync::Arc as Counted, thread};

const WRAP: u32 = u32::MAX;

fn deque(capacity: usize, items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(capacity, WRAP);
    worker.extend(0..items);
    worker
}

/// Takes what it can in `times` tries.
fn steal(stealer: &Stealer<u32>, times: usize) -> Vec<u32> {
    let mut got = Vec::new();
    for _ in 0..times {
        if let Steal::Success { first, .. } = stealer.steal() {
            got.push(first);
        }
    }
    assert!(got.is_sorted(), "a thief saw items out of order");
    got
}

fn assert_each_once(mut got: Vec<u32>, n: u32) {
    got.sort_unstable();
    assert_eq!(got, (0..n).collect::<Vec<_>>());
}

/// Joins the thief and takes what is left.
fn all(worker: &mut Worker<u32>, mut got: Vec<u32>, stolen: Vec<u32>, n: u32) {
    got.extend(stolen);
    got.extend(core::iter::from_fn(|| worker.pop()));
    assert_each_once(got, n);
}

/// Bites: `bottom` published with Relaxed, by a push or by the pop; a thief that reads `bottom` with Relaxed.
#[test]
fn pushes_and_a_pop_against_two_steals() {
    model(|| {
        let mut worker = deque(2, 0);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 2));
        worker.push(0);
        worker.push(1);
        let got = Vec::from_iter(worker.pop());
        all(&mut worker, got, thief.join().unwrap(), 2);
    });
}

/// Two items, two pops, two steals: both fences are needed.
///
/// Bites: either fence left out; a last item taken without the exchange; `bottom` not restored.
#[test]
fn pops_against_two_steals() {
    Model::new().whole_fences().check(two_pops_and_two_steals);
}

/// Bites: as above.
#[test]
fn full_pops_against_two_steals_between_the_fences() {
    model(two_pops_and_two_steals);
}

fn two_pops_and_two_steals() {
    let mut worker = deque(2, 2);
    let stealer = worker.stealer();
    let thief = thread::spawn(move || steal(&stealer, 2));
    let mut got = Vec::from_iter(worker.pop());
    got.extend(worker.pop());
    worker.push(2);
    all(&mut worker, got, thief.join().unwrap(), 3);
}

/// The owner pops what a thief might claim, and pushes over it.
///
/// Bites: a release with Relaxed; a push that takes `top` for `steal`.
#[test]
fn pushes_over_a_slot_in_mid_copy() {
    model(|| {
        let mut worker = deque(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 1));
        worker.push(2);
        let got = Vec::from_iter(worker.pop());
        worker.push(3);
        all(&mut worker, got, thief.join().unwrap(), 4);
    });
}

/// Bites: a claim with a store in place of the exchange.
#[test]
fn two_thieves_take_each_item_once() {
    model(|| {
        let mut worker = deque(2, 1);
        let thief = |stealer: Stealer<u32>| thread::spawn(move || steal(&stealer, 1));
        let thieves = [thief(worker.stealer()), thief(worker.stealer())];
        let stolen = thieves.into_iter().flat_map(|thief| thief.join().unwrap());
        let stolen = stolen.collect();
        all(&mut worker, Vec::new(), stolen, 1);
    });
}

/// The same with an item for each, while the owner pushes over the oldest slot. Bounded: without a bound it takes hours.
///
/// Bites: beginning while another copies (the first to end frees the other's slot).
#[test]
fn two_thieves_keep_the_owner_off_each_others_slots() {
    Model::new().bound(2).check(|| {
        let mut worker = deque(2, 2);
        let thief = |stealer: Stealer<u32>| thread::spawn(move || steal(&stealer, 1));
        let thieves = [thief(worker.stealer()), thief(worker.stealer())];
        worker.push(2);
        let stolen = thieves.into_iter().flat_map(|thief| thief.join().unwrap());
        let stolen = stolen.collect();
        all(&mut worker, Vec::new(), stolen, 3);
    });
}

/// Bites: copying from `top` on when growing; a thief that loads the buffer before its claim, or with
/// Relaxed; a claim with Release alone; a replaced buffer that is freed at once, or by a look at
/// `head` that is no read-modify-write.
#[test]
fn growing_against_two_steals() {
    model(|| {
        let mut worker = deque(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 2));
        worker.push(2);
        worker.push(3);
        assert!(worker.capacity() >= 2);
        all(&mut worker, Vec::new(), thief.join().unwrap(), 4);
    });
}

/// Bites: shrinking while a thief copies; a replaced buffer that is freed at once.
#[test]
fn shrinking_against_a_steal() {
    model(|| {
        let mut worker = deque(2, 5);
        assert_eq!(worker.capacity(), 8);
        let popped = [4, 3, 2].map(|item| assert_eq!(worker.pop(), Some(item)));
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 1));
        let mut got = Vec::from_iter(worker.pop());
        let stolen = thief.join().unwrap();
        got.extend(worker.pop());
        got.extend(2..2 + popped.len() as u32);
        assert_eq!(worker.pop(), None);
        assert_eq!(worker.capacity(), 2);
        all(&mut worker, got, stolen, 5);
    });
}

/// Half of four by single claims, against three pops.
///
/// Bites: what `several_items_by_one_exchange_are_taken_twice` does.
#[test]
fn a_batch_against_pops() {
    Model::new().whole_fences().check(a_batch_and_pops);
}

/// Bites: as above.
#[test]
fn full_a_batch_against_pops_between_the_fences() {
    model(a_batch_and_pops);
}

fn a_batch_and_pops() {
    let mut worker = deque(4, 4);
    let stealer = worker.stealer();
    let thief = thread::spawn(move || {
        let mut got = Vec::new();
        let _ = stealer.take(StealLimit::Half, |item| got.push(item));
        got
    });
    let mut got = Vec::from_iter(worker.pop());
    got.extend(worker.pop());
    got.extend(worker.pop());
    all(&mut worker, got, thief.join().unwrap(), 4);
}

/// Bites: a drop that reads without claiming.
#[test]
fn drop_against_a_steal() {
    model(|| {
        let count = Counted::new(());
        let mut worker = Worker::starting_at(2, WRAP);
        worker.extend([count.clone(), count.clone()]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || drop(stealer.steal()));
        drop(worker);
        thief.join().unwrap();
        assert_eq!(Counted::strong_count(&count), 1);
    });
}

/// Takes half with one exchange, as is often published: the owner pops below it without one.
#[test]
fn several_items_by_one_exchange_are_taken_twice() {
    model_must_fail("right: [0, 1, 2, 3]", || {
        let mut worker = deque(4, 4);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let deque = &stealer.deque;
            let head = deque.load_head();
            let half = open(deque, head) / 2;
            if half == 0 || deque.exchange_head(head, head.claimed(half)).is_err() {
                return Vec::new();
            }
            let claim = Claim(deque);
            // SAFETY: claimed, if not alone.
            let slots = unsafe { deque.claimed_slots() };
            // SAFETY: unsound on purpose; the items are numbers.
            let read = |i| unsafe { slots.read(head.top.wrapping_add(i)) };
            let got = (0..half).map(read).collect();
            drop(claim);
            got
        });
        let mut got = Vec::from_iter(worker.pop());
        got.extend(worker.pop());
        got.extend(worker.pop());
        got.extend(thief.join().unwrap());
        // Before the panic: a model's memory is not freed while it unwinds.
        drop(worker);
        assert_each_once(got, 4);
    });
}

/// A thief that copies before it claims, as published, beside an owner that pushes over the slot.
#[test]
fn a_copy_before_the_claim_is_a_data_race() {
    model_must_fail("Concurrent read and write accesses", || {
        let mut worker = deque(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let deque = &stealer.deque;
            let head = deque.load_head();
            if open(deque, head) == 0 {
                return Vec::new();
            }
            // SAFETY: unsound on purpose, though no buffer is replaced.
            let slots = unsafe { deque.claimed_slots() };
            // SAFETY: unsound on purpose; the items are numbers.
            let item = unsafe { slots.read(head.top) };
            let won = deque.exchange_head(head, head.taken()).is_ok();
            Vec::from_iter(won.then_some(item))
        });
        worker.pop();
        worker.pop();
        worker.extend([2, 3]);
        thief.join().unwrap();
    });
}
