//! Counts how often the operations access the nodes of entries, by the wheel's calls of
//! `Entry::node`.
use std::{cell::Cell, ptr::NonNull};
use timer_wheel::{Entry, Node, Step, Wheel};

thread_local! {
    static LOOKS: Cell<u64> = const { Cell::new(0) };
}

/// An entry that counts the calls of `node` in its thread.
struct Counted {
    node: Node<Counted>,
}

// SAFETY: a box owns its content, which stays in place.
unsafe impl Entry for Counted {
    type Handle = Box<Counted>;

    fn into_ptr(handle: Box<Counted>) -> NonNull<Counted> {
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }
    unsafe fn from_ptr(entry: NonNull<Counted>) -> Box<Counted> {
        // SAFETY: the pointer came from `into_raw`.
        unsafe { Box::from_raw(entry.as_ptr()) }
    }
    unsafe fn node(entry: NonNull<Counted>) -> NonNull<Node<Counted>> {
        LOOKS.set(LOOKS.get() + 1);
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

/// Runs an operation. Returns the number of its accesses to nodes, and its result.
fn looks<R>(operation: impl FnOnce() -> R) -> (u64, R) {
    let before = LOOKS.get();
    let result = operation();
    (LOOKS.get() - before, result)
}

/// Inserts entries, and returns pointers to them.
fn insert(wheel: &mut Wheel<Counted>, deadlines: &[u64]) -> Vec<NonNull<Counted>> {
    let insert = |&deadline| {
        let node = Node::new();
        let entry = Counted::into_ptr(Box::new(Counted { node }));
        // SAFETY: the pointer came from `into_ptr`.
        wheel.insert(unsafe { Counted::from_ptr(entry) }, deadline);
        entry
    };
    deadlines.iter().map(insert).collect()
}

/// Returns 100 deadlines in one slot of 4,096 ticks. The second of them is the earliest one.
fn unsorted(start: u64) -> Vec<u64> {
    let rest = (0..98).map(|n| start + 200 + n * 7 % 50);
    [start + 150, start + 100].into_iter().chain(rest).collect()
}

#[test]
fn next_expiration_within_64_ticks_looks_at_none() {
    let mut wheel = Wheel::new();
    let entries = insert(&mut wheel, &[9, 5, 7, 60, 5]);
    assert_eq!(looks(|| wheel.next_expiration()), (0, Some(5)));
    for entry in [entries[1], entries[4]] {
        // SAFETY: the entry is in the wheel.
        drop(unsafe { wheel.remove(entry) });
    }
    assert_eq!(looks(|| wheel.next_expiration()), (0, Some(7)));
}

#[test]
fn next_expiration_of_sorted_slot_looks_at_one() {
    let mut wheel = Wheel::new();
    let deadlines: Vec<u64> = (0..100).map(|n| 5000 + n).collect();
    let entries = insert(&mut wheel, &deadlines);
    assert_eq!(looks(|| wheel.next_expiration()), (0, Some(5000)));
    // SAFETY: the entry is in the wheel.
    drop(unsafe { wheel.remove(entries[0]) });
    assert_eq!(looks(|| wheel.next_bound()), (1, Some(5001)));
    assert_eq!(looks(|| wheel.next_expiration()), (1, Some(5001)));
}

#[test]
fn next_expiration_scans_unsorted_slot_once() {
    let mut wheel = Wheel::new();
    let entries = insert(&mut wheel, &unsorted(8192));
    // The insertions have kept the earliest deadline.
    assert_eq!(looks(|| wheel.next_expiration()), (0, Some(8292)));
    // SAFETY: the entry is in the wheel.
    drop(unsafe { wheel.remove(entries[1]) });
    assert_eq!(looks(|| wheel.next_bound()), (0, Some(8192)));
    // The scan reads the deadline and the link of each entry.
    assert_eq!(looks(|| wheel.next_expiration()), (2 * 99, Some(8342)));
    assert_eq!(looks(|| wheel.next_expiration()), (0, Some(8342)));
    // The removal of another entry, and an insertion, keep the result.
    // SAFETY: the entry is in the wheel.
    drop(unsafe { wheel.remove(entries[50]) });
    insert(&mut wheel, &[8400]);
    assert_eq!(looks(|| wheel.next_expiration()), (0, Some(8342)));
}

#[test]
fn next_expiration_scans_the_next_unsorted_slot_once() {
    let mut wheel = Wheel::new();
    insert(&mut wheel, &unsorted(8192));
    insert(&mut wheel, &unsorted(8192 + 4096));
    wheel.advance(8192 + 4095, |_, _| {});
    assert_eq!(wheel.len(), 100);
    // The advance to the first slot has discarded the kept result.
    let first = Some(8192 + 4096 + 100);
    assert_eq!(looks(|| wheel.next_expiration()), (2 * 100, first));
    assert_eq!(looks(|| wheel.next_expiration()), (0, first));
}

/// Returns the most accesses of a step, an insert and a removal, in a wheel of `count` entries.
fn most(count: u64) -> [u64; 3] {
    let mut wheel = Wheel::new();
    let deadlines: Vec<u64> = (0..count).map(|n| 8192 + n * 7 % 100).collect();
    let inserted = |&deadline| looks(|| insert(&mut wheel, &[deadline]));
    let (inserts, mut entries): (Vec<u64>, Vec<_>) = deadlines.iter().map(inserted).unzip();
    let removals = entries.drain(..entries.len() / 4).map(|entry| {
        // SAFETY: the entry is in the wheel.
        looks(|| unsafe { wheel.remove(entry[0]) }).0
    });
    let removals = removals.max();
    let mut steps = 0;
    loop {
        let (looks, step) = looks(|| wheel.step(u64::MAX));
        steps = steps.max(looks);
        if let Step::Done = step {
            break;
        }
    }
    assert!(wheel.is_empty());
    [steps, inserts.into_iter().max().unwrap(), removals.unwrap()]
}

#[test]
fn step_looks_at_as_many_in_a_large_wheel() {
    assert_eq!(most(2_000), most(20_000));
}
