//! Models of an owner whose ring overflows, and four thieves: more threads than the model checker
//! allows.
use super::super::{
    Stealer, Worker,
    models::{Global, WRAP, assert_each_once, steal_half, steal_one_by_one},
};
use std::vec::Vec;
use sync_shim::{model, sync::Mutex, thread};

const ITEMS: u32 = 12;

fn thieves_beside(mut worker: Worker<u32>) {
    let global = Global(Mutex::new(Vec::new()));
    let thieves = [
        steal_one_by_one as fn(&Stealer<u32>, usize) -> Vec<u32>,
        steal_one_by_one,
        steal_half,
        steal_half,
    ]
    .map(|steal| {
        let stealer = worker.stealer();
        thread::spawn(move || steal(&stealer, 3))
    });
    let mut got = Vec::new();
    for item in 0..ITEMS {
        worker.push_or_overflow(item, &global);
        if item % 4 == 3 {
            got.extend(worker.pop());
        }
    }
    got.extend(worker.pop());
    got.extend(thieves.into_iter().flat_map(|thief| thief.join().unwrap()));
    got.extend(global.0.into_inner());
    got.extend(worker.drain());
    assert_each_once(got, ITEMS);
}

/// Fails if a thief takes one item too many.
#[test]
fn four_thieves_beside_an_overflowing_owner_take_items_once() {
    model(|| thieves_beside(Worker::starting_at(4, WRAP - 1)));
}

/// The owner claims two items at a time, and a thief that finds nothing requests them.
///
/// Fails if a push counts the claimed slots as free.
#[test]
fn four_thieves_beside_a_claiming_owner_take_items_once() {
    model(|| thieves_beside(Worker::starting_at(4, WRAP - 1).with_claim(2)));
}
