//! An owner and two thieves on real threads take every item exactly once, and in order where the
//! queue promises an order.
//!
//! `SELVEDGE_ITEMS=100000000` makes the tests run long. `SELVEDGE_SEED` changes the mix of
//! operations.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use queue_spmc::{
    Overflow,
    ring::{Steal, StealLimit, Worker},
};
use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

/// A summary of the items that were taken: their number, their sum, and the sum of their hashes.
/// The sums also show that one item was taken twice while another was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

impl Extend<u64> for Tally {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.add(item));
    }
}

/// A summary of one thread's items, which must come in order.
#[derive(Default)]
struct InOrder {
    tally: Tally,
    least: u64,
}

impl Extend<u64> for InOrder {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, items: I) {
        for item in items {
            assert!(item >= self.least, "{item} came after {}", self.least);
            self.least = item + 1;
            self.tally.add(item);
        }
    }
}

impl From<InOrder> for Tally {
    fn from(seen: InOrder) -> Self {
        seen.tally
    }
}

struct Global(Mutex<Tally>);

impl Overflow<u64> for Global {
    fn push(&self, item: u64) {
        self.0.lock().unwrap().add(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u64>) {
        self.0.lock().unwrap().extend(batch);
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(otherwise, |n| n.parse().expect("the variable is a number"))
}

fn items() -> u64 {
    number("SELVEDGE_ITEMS", 300_000)
}

/// A pseudo-random number generator.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        Self(number("SELVEDGE_SEED", 1))
    }

    /// Returns true once in `n` calls, on average.
    fn once_in(&mut self, n: u64) -> bool {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % n == 0
    }
}

fn assert_all(all: Tally, items: u64) {
    let mut expected = Tally::default();
    expected.extend(0..items);
    assert_eq!(all, expected);
}

fn run(claim: usize, thieves_in_order: bool) {
    let items = items();
    let mut worker = Worker::new(64).with_claim(claim);
    let (global, over) = (Global(Mutex::default()), AtomicBool::new(false));
    let mut all = thread::scope(|scope| {
        let thieves = [(); 2].map(|()| {
            let (stealer, over) = (worker.stealer(), &over);
            scope.spawn(move || {
                let (mut mine, mut got) = (Worker::new(64), InOrder::default());
                loop {
                    match stealer.steal_into_and_pop(&mut mine, StealLimit::Half) {
                        Steal::Success { first, .. } => {
                            if !thieves_in_order {
                                got.least = 0;
                            }
                            got.extend([first]);
                            if !thieves_in_order {
                                got.least = 0;
                            }
                            got.extend(mine.drain());
                        }
                        Steal::Empty if over.load(SeqCst) => return got.tally,
                        _ => thread::yield_now(),
                    }
                }
            })
        });
        let (mut got, mut dice) = (InOrder::default(), Dice::new());
        for item in 0..items {
            worker.push_or_overflow(item, &global);
            if dice.once_in(3) {
                got.extend(worker.pop());
            }
            if dice.once_in(64) {
                got.extend(worker.pop_n(3));
            }
        }
        got.extend(worker.drain());
        over.store(true, SeqCst);
        thieves
            .into_iter()
            .fold(got.tally, |all, thief| all.and(thief.join().unwrap()))
    });
    all = all.and(global.0.into_inner().unwrap());
    assert_all(all, items);
}

/// Fills and empties a growable queue in bursts, beside two thieves.
#[cfg(feature = "deque")]
macro_rules! grows_and_shrinks {
    ($queue:ident, $mine:ty, $theirs:ty) => {{
        use queue_spmc::$queue::Worker;
        let items = items();
        let mut worker = Worker::with_capacity(4);
        let over = AtomicBool::new(false);
        let all = thread::scope(|scope| {
            let thieves = [(); 2].map(|()| {
                let (stealer, over) = (worker.stealer(), &over);
                scope.spawn(move || {
                    let (mut mine, mut got) = (Worker::with_capacity(2), InOrder::default());
                    let mut batches = <$theirs>::default();
                    loop {
                        match stealer.steal_into_and_pop(&mut mine, StealLimit::AtMost(3)) {
                            Steal::Success { first, .. } => {
                                got.extend([first]);
                                batches.extend(std::iter::from_fn(|| mine.pop()));
                            }
                            Steal::Empty if over.load(SeqCst) => {
                                return got.tally.and(batches.into());
                            }
                            _ => thread::yield_now(),
                        }
                    }
                })
            });
            let (mut got, mut dice) = (<$mine>::default(), Dice::new());
            for item in 0..items {
                worker.push(item);
                if dice.once_in(2) {
                    got.extend(worker.pop());
                }
                if dice.once_in(1_024) {
                    got.extend(std::iter::from_fn(|| worker.pop()));
                }
            }
            got.extend(std::iter::from_fn(|| worker.pop()));
            over.store(true, SeqCst);
            thieves.into_iter().fold(got.into(), |all: Tally, thief| {
                all.and(thief.join().unwrap())
            })
        });
        assert_all(all, items);
    }};
}

#[cfg(feature = "deque")]
#[test]
fn deque_items_are_taken_once_and_in_order_for_thieves() {
    grows_and_shrinks!(deque, Tally, Tally);
}

#[cfg(feature = "deque")]
#[test]
fn fifo_items_are_taken_once_and_in_order_for_each_thread() {
    grows_and_shrinks!(fifo, InOrder, InOrder);
}

#[test]
fn plain_ring_items_are_taken_once_and_in_order_for_all() {
    run(1, true);
}

#[test]
fn claiming_ring_items_are_taken_once_and_in_order_for_owner() {
    run(16, false);
}
