//! The time limits of waits.
use std::{cmp::Reverse, collections::BinaryHeap};

/// The limit of a wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Limit {
    pub(super) at: u64,
    /// Limits with the same time are in the order in which they were made.
    made: u64,
    pub(super) thread: u32,
    /// The number of the thread's wait.
    pub(super) wait: u64,
}

/// The limits that have not passed. Some are of waits that have ended.
#[derive(Default)]
pub(super) struct Limits {
    heap: BinaryHeap<Reverse<Limit>>,
    made: u64,
}

impl Limits {
    pub(super) fn add(&mut self, at: u64, thread: u32, wait: u64) {
        self.made += 1;
        let made = self.made;
        self.heap.push(Reverse(Limit {
            at,
            made,
            thread,
            wait,
        }));
    }

    pub(super) fn first(&self) -> Option<Limit> {
        self.heap.peek().map(|Reverse(first)| *first)
    }

    pub(super) fn remove_first(&mut self) {
        self.heap.pop();
    }
}
