//! A wheel allocates nothing, and `Timers` only if there are more timers than ever before.
mod common;

use common::Numbered;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};
use timer_wheel::{Timers, Wheel};

/// The system's allocator, with a count of the calls of each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: each call goes to the system's allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn wheel_allocates_nothing() {
    let mut entries: Vec<_> = (0..200).map(Numbered::new).collect();
    let before = CALLS.get();
    let mut wheel = Wheel::<Numbered>::new();
    for now in [0, 1 << 20, 1 << 50] {
        for entry in entries.drain(..) {
            let deadline = now + u64::from(entry.id).pow(3);
            wheel.insert(entry, deadline);
        }
        assert!(wheel.next_expiration() >= wheel.next_bound());
        wheel.advance(now + 1_000_000, |_, entry| entries.push(entry));
        while let Some(entry) = wheel.pop_any() {
            entries.push(entry);
        }
        assert_eq!(entries.len(), 200);
    }
    drop(wheel);
    assert_eq!(CALLS.get(), before);
}

#[test]
fn timers_allocate_for_more_than_ever_before() {
    let mut timers = Timers::new();
    let fill = |timers: &mut Timers<u64>| {
        (0..200).for_each(|n| {
            timers.insert(n * n, n);
        });
    };
    fill(&mut timers);
    let before = CALLS.get();
    for _ in 0..3 {
        timers.clear();
        fill(&mut timers);
        timers.advance(u64::from(u32::MAX), |_, _| {});
        fill(&mut timers);
    }
    assert_eq!(CALLS.get(), before);
    // There is room for 256 timers, and this makes 400.
    fill(&mut timers);
    assert!(CALLS.get() > before);
}
