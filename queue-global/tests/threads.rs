//! Two pushers and two consumers on real threads: every item turns up exactly once, and each pusher's in order to each consumer.
//!
//! `SELVEDGE_ITEMS=100000000` makes it a long run.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use queue_global::{Boxed, Injector, List};
use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    thread,
};

/// A consumer's items: how many, their sum, and the least that may come next of each pusher.
#[derive(Default)]
struct Seen {
    count: u64,
    sum: u64,
    least: [u64; 2],
}

impl Seen {
    /// Items are numbers in order, the pusher in the lowest bit.
    fn add(&mut self, item: u64, taken: &[AtomicU64; 2]) {
        let (number, pusher) = (item >> 1, (item & 1) as usize);
        assert!(
            number >= self.least[pusher],
            "pusher {pusher}'s {number} came late"
        );
        self.least[pusher] = number + 1;
        taken[pusher].fetch_add(1, SeqCst);
        self.count += 1;
        self.sum = self.sum.wrapping_add(item);
    }
}

#[test]
fn every_item_turns_up_once_and_in_order() {
    let items = std::env::var("SELVEDGE_ITEMS").ok();
    let items: u64 = items.map_or(200_000, |n| n.parse().expect("SELVEDGE_ITEMS is a number"));
    let each = items / 2;
    let queue = Injector::<Boxed<u64>>::new();
    let pushing = AtomicUsize::new(2);
    let taken = [AtomicU64::new(0), AtomicU64::new(0)];
    let seen = thread::scope(|scope| {
        for pusher in 0..2 {
            let (queue, pushing, taken) = (&queue, &pushing, &taken);
            scope.spawn(move || {
                let node = |number: u64| Box::new(Boxed::new(number << 1 | pusher));
                let mut number = 0;
                while number < each {
                    let batch = if number % 1_000 < 900 {
                        1
                    } else {
                        (each - number).min(100)
                    };
                    if batch == 1 {
                        assert!(queue.push(node(number)).is_ok());
                    } else {
                        let list: List<_> = (number..number + batch).map(node).collect();
                        assert!(queue.push_batch(list).is_ok());
                    }
                    number += batch;
                    // So that memory stays flat. (What no consumer has moved yet counts as one in the queue's length.)
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
                    let before = seen.count;
                    if batch == 1 {
                        if let Some(node) = queue.pop() {
                            seen.add(node.value, taken);
                        }
                    } else {
                        for node in queue.pop_n(batch) {
                            seen.add(node.value, taken);
                        }
                    }
                    if seen.count == before {
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
    assert_eq!(seen[0].count + seen[1].count, each * 2);
    let all = (0..each * 2).fold(0u64, u64::wrapping_add);
    assert_eq!(seen[0].sum.wrapping_add(seen[1].sum), all);
}
