//! An owner whose ring overflows, and four thieves: more threads than the model checker takes.
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

/// Bites: a thief that takes one too many.
#[test]
fn four_thieves_beside_an_owner_that_overflows_take_each_item_once() {
    model(|| thieves_beside(Worker::starting_at(4, WRAP - 1)));
}

/// The owner claims two at a time, which a thief that finds nothing asks back.
///
/// Bites: a push that takes the claimed slots for free.
#[test]
fn four_thieves_beside_an_owner_that_claims_take_each_item_once() {
    model(|| thieves_beside(Worker::starting_at(4, WRAP - 1).with_claim(2)));
}
