//! Two pushers and two consumers on real threads: the consumers take every item exactly once, and
//! each consumer takes the items of one pusher in order.
//!
//! `SELVEDGE_ITEMS=100000000` makes the test run long. `SELVEDGE_SEED` changes the sizes of the
//! batches.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use queue_global::{Boxed, Injector, List};
use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    thread,
};

/// The number of items, their sum, and the sum of their hashes. The sums differ from the expected
/// ones if a duplicate comes in place of a lost item.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    count: u64,
    sum: u64,
    hashes: u64,
}

impl Tally {
    fn add(&mut self, item: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(item);
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(item);
        self.hashes = self.hashes.wrapping_add(hash);
    }

    fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum.wrapping_add(other.sum),
            hashes: self.hashes.wrapping_add(other.hashes),
        }
    }
}

/// The tally of a consumer's items, and for each pusher the lowest number that may come next.
#[derive(Default)]
struct Seen {
    tally: Tally,
    least: [u64; 2],
}

impl Seen {
    /// Checks and counts an item. A pusher's items are increasing numbers, with the pusher's index
    /// in the lowest bit.
    fn add(&mut self, item: u64, taken: &[AtomicU64; 2]) {
        let (number, pusher) = (item >> 1, (item & 1) as usize);
        assert!(
            number >= self.least[pusher],
            "pusher {pusher}'s {number} came late"
        );
        self.least[pusher] = number + 1;
        taken[pusher].fetch_add(1, SeqCst);
        self.tally.add(item);
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let said = std::env::var(name).ok();
    said.map_or(otherwise, |n| n.parse().expect("the variable is a number"))
}

/// A pseudo-random number generator.
struct Dice(u64);

impl Dice {
    /// Returns a number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % n
    }
}

#[test]
fn every_item_turns_up_once_and_in_order() {
    let each = number("SELVEDGE_ITEMS", 200_000) / 2;
    let seed = number("SELVEDGE_SEED", 1);
    let queue = Injector::<Boxed<u64>>::new();
    let pushing = AtomicUsize::new(2);
    let taken = [AtomicU64::new(0), AtomicU64::new(0)];
    let seen = thread::scope(|scope| {
        for pusher in 0..2 {
            let (queue, pushing, taken) = (&queue, &pushing, &taken);
            scope.spawn(move || {
                let node = |number: u64| Box::new(Boxed::new(number << 1 | pusher));
                let mut dice = Dice(seed << 1 | pusher);
                let mut number = 0;
                while number < each {
                    // One push in fifty pushes a batch; so batches carry about half of all items.
                    let batch = match dice.below(50) {
                        0 => (each - number).min(1 + dice.below(100)),
                        _ => 1,
                    };
                    if batch == 1 {
                        assert!(queue.push(node(number)).is_ok());
                    } else {
                        let list: List<_> = (number..number + batch).map(node).collect();
                        assert!(queue.push_batch(list).is_ok());
                    }
                    number += batch;
                    // Waits for the consumers, to bound the memory. The queue's length does not
                    // show how much is used: all items that no consumer has moved yet count as one.
                    while number > taken[pusher as usize].load(SeqCst) + 10_000 {
                        thread::yield_now();
                    }
                }
                pushing.fetch_sub(1, SeqCst);
            });
        }
        let consumers = [1, 7].map(|batch| {
            let (queue, pushing, taken) = (&queue, &pushing, &taken);
            scope.spawn(move || {
                let mut seen = Seen::default();
                loop {
                    let over = pushing.load(SeqCst) == 0;
                    let before = seen.tally.count;
                    if batch == 1 {
                        if let Some(node) = queue.pop() {
                            seen.add(node.value, taken);
                        }
                    } else {
                        for node in queue.pop_n(batch) {
                            seen.add(node.value, taken);
                        }
                    }
                    if seen.tally.count == before {
                        if over {
                            return seen;
                        }
                        thread::yield_now();
                    }
                }
            })
        });
        consumers.map(|consumer| consumer.join().unwrap())
    });
    let mut expected = Tally::default();
    (0..each * 2).for_each(|item| expected.add(item));
    let [one, other] = seen.map(|seen| seen.tally);
    assert_eq!(one.and(other), expected);
}
