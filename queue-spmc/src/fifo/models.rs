//! Models of an owner against thieves, over positions that wrap. Each item is a number that must
//! turn up exactly once. Each thread must get its items in order.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use alloc::vec::Vec;
use sync_shim::{Model, model, model_must_fail, sync::Arc as Counted, thread};

fn fifo(capacity: usize, items: u32) -> Worker<u32> {
    let mut worker = Worker::starting_at(capacity, u32::MAX);
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

/// Steals half of the queue into a queue of the thief's own, which has room for two.
fn steal_half(stealer: &Stealer<u32>) -> Vec<u32> {
    let mut mine = Worker::starting_at(2, u32::MAX);
    let mut got = Vec::new();
    if let Steal::Success { first, moved } = stealer.steal_into_and_pop(&mut mine, StealLimit::Half)
    {
        assert_eq!(mine.len(), moved);
        got.push(first);
        got.extend(core::iter::from_fn(|| mine.pop()));
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
    got.extend(core::iter::from_fn(|| worker.pop()));
    assert!(got.is_sorted(), "the owner saw items out of order");
    got.extend(stolen);
    assert_each_once(got, n);
}

/// Fails if `bottom` is published with Relaxed, or if a thief loads `bottom` with Relaxed.
#[test]
fn pushes_and_a_pop_against_two_steals_take_each_item_once() {
    model(|| {
        let mut worker = fifo(2, 0);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 2));
        worker.push(0);
        worker.push(1);
        let got = Vec::from_iter(worker.pop());
        all(&mut worker, got, thief.join().unwrap(), 2);
    });
}

/// Fails if a pop takes an item without the exchange, or gives up because a thief's exchange came
/// first.
#[test]
fn pops_against_two_steals_take_each_item_once() {
    model(|| {
        let mut worker = fifo(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 2));
        let mut got = Vec::from_iter(worker.pop());
        got.extend(worker.pop());
        worker.push(2);
        all(&mut worker, got, thief.join().unwrap(), 3);
    });
}

/// A thief takes half of four items by one exchange, against three pops. In a deque that would be
/// unsound.
///
/// Fails if a pop ends a thief's claim, or if a claim takes one item too many.
#[test]
fn batch_steal_against_pops_takes_each_item_once() {
    model(|| {
        let mut worker = fifo(4, 4);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal_half(&stealer));
        let got = (0..3).filter_map(|_| worker.pop()).collect();
        all(&mut worker, got, thief.join().unwrap(), 4);
    });
}

/// The thief's own queue has room for two of three items, and grows.
///
/// Fails if the thief makes no room in its own queue.
#[test]
fn batch_steal_into_a_queue_that_grows_takes_each_item_once() {
    model(|| {
        let mut worker = fifo(8, 6);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let mut mine = Worker::starting_at(2, u32::MAX);
            let _ = stealer.steal_into(&mut mine, StealLimit::Half);
            core::iter::from_fn(|| mine.pop()).collect()
        });
        let got = Vec::from_iter(worker.pop());
        all(&mut worker, got, thief.join().unwrap(), 6);
    });
}

/// Fails if the exchange that releases a claim is Relaxed, or if a push computes the room from
/// `top` in place of `steal`.
#[test]
fn pushes_beside_a_copy_do_not_overwrite_its_slot() {
    model(|| {
        let mut worker = fifo(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 1));
        let mut got = Vec::from_iter(worker.pop());
        worker.push(2);
        got.extend(worker.pop());
        worker.push(3);
        all(&mut worker, got, thief.join().unwrap(), 4);
    });
}

/// Fails if a thief claims by a store in place of the exchange.
#[test]
fn two_thieves_take_each_item_once() {
    model(|| {
        let mut worker = fifo(2, 1);
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
        let mut worker = fifo(2, 2);
        let thief = |stealer: Stealer<u32>| thread::spawn(move || steal(&stealer, 1));
        let thieves = [thief(worker.stealer()), thief(worker.stealer())];
        worker.push(2);
        let stolen = thieves.into_iter().flat_map(|thief| thief.join().unwrap());
        let stolen = stolen.collect();
        all(&mut worker, Vec::new(), stolen, 3);
    });
}

/// Fails in each of these cases, as the deque's model does:
///
/// - A growth copies the slots from `top` on, not from `steal` on.
/// - A thief loads the buffer before its claim, or with Relaxed.
/// - A claim has Release alone.
/// - The owner frees a replaced buffer at once, or after a plain load of `head` in place of the
///   read-modify-write.
#[test]
fn growth_against_two_steals_takes_each_item_once() {
    model(|| {
        let mut worker = fifo(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 2));
        worker.push(2);
        worker.push(3);
        all(&mut worker, Vec::new(), thief.join().unwrap(), 4);
    });
}

/// The owner keeps a replaced buffer while a thief copies, and frees it at a later pop.
///
/// Fails if the owner's load of `head` that shows the thief's release is Relaxed.
#[test]
fn replaced_buffer_kept_for_a_thief_is_freed_by_a_later_pop() {
    model(|| {
        let mut worker = fifo(2, 2);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 1));
        worker.push(2);
        let got = Vec::from_iter(worker.pop());
        all(&mut worker, got, thief.join().unwrap(), 3);
    });
}

/// Fails if a queue shrinks while a thief copies, or if a replaced buffer is freed at once.
#[test]
fn shrinking_against_a_steal_takes_each_item_once() {
    model(|| {
        let mut worker = fifo(2, 5);
        assert_eq!(worker.capacity(), 8);
        let got = (0..3).map(|item| assert_eq!(worker.pop(), Some(item)));
        let mut got: Vec<_> = (0..got.count() as u32).collect();
        let stealer = worker.stealer();
        let thief = thread::spawn(move || steal(&stealer, 1));
        got.extend(worker.pop());
        let stolen = thief.join().unwrap();
        got.extend(worker.pop());
        assert_eq!((worker.pop(), worker.capacity()), (None, 2));
        all(&mut worker, got, stolen, 5);
    });
}

/// The worker's drop frees the buffers if no thief copies; otherwise the last handle frees them.
///
/// Fails if the worker's drop reads items without claiming them, or frees the buffers while a thief
/// copies.
#[test]
fn worker_drop_against_a_steal_drops_each_item_once() {
    model(|| {
        let count = Counted::new(());
        let mut worker = Worker::starting_at(2, u32::MAX);
        worker.extend([count.clone(), count.clone()]);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || drop(stealer.steal()));
        drop(worker);
        thief.join().unwrap();
        assert_eq!(Counted::strong_count(&count), 1);
    });
}

/// A thief that loads `bottom` before `head` counts items that were already taken when it loaded
/// `head`.
#[test]
fn bottom_loaded_before_head_takes_an_item_twice() {
    model_must_fail("right: [0, 1]", || {
        let mut worker = fifo(2, 1);
        let stealer = worker.stealer();
        let thief = thread::spawn(move || {
            let queue = &stealer.queue;
            // Ordering: Acquire, as in `claim`.
            let bottom = queue.bottom.load(Acquire);
            let head = queue.load_head();
            let len = bottom.wrapping_sub(head.top);
            if len == 0 || queue.exchange_head(head, head.claimed(1)).is_err() {
                return Vec::new();
            }
            let claim = Claim(queue);
            // SAFETY: this thief has a claim.
            let slots = unsafe { queue.claimed_slots() };
            // SAFETY: unsound on purpose; the items are numbers.
            let item = unsafe { slots.read(head.top) };
            drop(claim);
            Vec::from([item])
        });
        let mut got = Vec::from_iter(worker.pop());
        worker.push(1);
        got.extend(worker.pop());
        got.extend(thief.join().unwrap());
        if got.len() > 2 {
            // The queue's `top` is beyond its `bottom` now.
            core::mem::forget(worker);
        } else {
            got.extend(worker.pop());
        }
        assert_each_once(got, 2);
    });
}
