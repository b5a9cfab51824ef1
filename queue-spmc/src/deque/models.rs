//! Models of an owner against thieves, over positions that wrap. Each item is a number that must
//! turn up exactly once.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use sync_shim::{Model, model, model_must_fail, sync::Arc as Counted, thread};

const WRAP: u32 = u32::MAX;

fn deque(capacity: usize, items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(capacity, WRAP);
    worker.extend(0..items);
    worker
}

/// Tries `times` times to steal one item, and returns the stolen items.
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

/// Takes the remaining items, after the thieves have ended, and checks that each item came once.
fn all(worker: &mut Worker<u32>, mut got: Vec<u32>, stolen: Vec<u32>, n: u32) {
    got.extend(stolen);
    got.extend(core::iter::from_fn(|| worker.pop()));
    assert_each_once(got, n);
}

/// Fails if a push or the pop publishes `bottom` with Relaxed, or if a thief loads `bottom` with
/// Relaxed.
#[test]
fn pushes_and_a_pop_against_two_steals_take_each_item_once() {
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

/// The owner pops twice and a thief steals twice, from two items. This needs both fences.
///
/// Fails if either fence is left out, if the last item is taken without the exchange, or if a pop
/// that finds no item does not restore `bottom`.
#[test]
fn pops_against_two_steals_take_each_item_once() {
    Model::new().whole_fences().check(two_pops_and_two_steals);
}

/// The scenario above, in which the threads may also switch just before a fence. Fails with the
/// same changes.
#[test]
fn full_pops_against_two_steals_between_fences() {
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

/// Twice the owner pops the only item of the deque, by the `top` that it has seen before (rule 3).
/// Meanwhile a thief steals twice.
///
/// Fails if such a pop takes the item without the exchange.
#[test]
fn pops_by_an_earlier_top_take_each_item_once() {
    model(|| {
        let mut worker = deque(2, 1);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 2));
        let mut got = Vec::from_iter(worker.pop());
        worker.push(1);
        got.extend(worker.pop());
        all(&mut worker, got, thief.join().unwrap(), 2);
    });
}

/// The owner pushes into a full buffer, while a thief may be copying the oldest slot.
///
/// Fails if the exchange that releases a claim is Relaxed, or if a push computes the room from
/// `top` in place of `steal`.
#[test]
fn pushes_beside_a_copy_do_not_overwrite_its_slot() {
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

/// Fails if a thief claims by a store in place of the exchange.
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

/// The scenario above with an item for each thief, while the owner pushes over the oldest slot. The
/// model has a bound, because it takes hours without one.
///
/// Fails if a thief begins while another copies: the first thief to end then frees the slot that
/// the other copies.
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

/// Fails in each of these cases:
///
/// - A growth copies the slots from `top` on, not from `steal` on.
/// - A thief loads the buffer before its claim, or with Relaxed.
/// - A claim has Release alone.
/// - The owner frees a replaced buffer at once, or after a plain load of `head` in place of the
///   read-modify-write.
#[test]
fn growth_against_two_steals_takes_each_item_once() {
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

/// Fails if a deque shrinks while a thief copies, or if a replaced buffer is freed at once.
#[test]
fn shrinking_against_a_steal_takes_each_item_once() {
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

/// A thief takes half of four items by single claims, against three pops.
///
/// Fails with the change that `batch_by_one_exchange_takes_an_item_twice` makes.
#[test]
fn batch_steal_against_pops_takes_each_item_once() {
    Model::new().whole_fences().check(a_batch_and_pops);
}

/// The scenario above, in which the threads may also switch just before a fence. Fails with the
/// same change.
#[test]
fn full_batch_steal_against_pops_between_fences() {
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

/// Fails if the worker's drop reads items without claiming them.
#[test]
fn worker_drop_against_a_steal_drops_each_item_once() {
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

/// A thief steals half by one exchange, as published algorithms often do. The owner pops some of
/// the same items without an exchange.
#[test]
fn batch_by_one_exchange_takes_an_item_twice() {
    model_must_fail("right: [0, 1, 2, 3]", || {
        let mut worker = deque(4, 4);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let deque = &stealer.deque;
            let head = deque.load_head();
            let half = stealable_len(deque, head) / 2;
            if half == 0 || deque.exchange_head(head, head.claimed(half)).is_err() {
                return Vec::new();
            }
            let claim = Claim(deque);
            // SAFETY: this thief has a claim, though the owner may take the same items.
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
        // The worker is dropped before the panic, because no memory of a model is freed while the
        // model unwinds.
        drop(worker);
        assert_each_once(got, 4);
    });
}

/// A thief copies an item before it claims it, as in the published algorithm. Meanwhile the owner
/// pops the item and pushes another into its slot.
#[test]
fn copy_before_the_claim_is_a_data_race() {
    model_must_fail("Concurrent read and write accesses", || {
        let mut worker = deque(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let deque = &stealer.deque;
            let head = deque.load_head();
            if stealable_len(deque, head) == 0 {
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
