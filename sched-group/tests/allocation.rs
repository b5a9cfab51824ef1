//! Switches, activations and changes of shares allocate nothing.
use sched_group::{Cap, FairQueue, GroupKey, Pick, Shares};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    time::Duration,
};

/// The system's allocator, with a count of the calls of each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: each method forwards to the system's allocator, which keeps the contract.
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
fn steady_state_allocates_nothing() {
    let time = Cell::new(0);
    let shares = |number| Shares::new(number).unwrap();
    let mut queue = FairQueue::new(|| time.get());
    let mut keys: Vec<GroupKey> = (1..=50).map(|n| queue.insert(shares(n), ())).collect();
    for n in 0..50 {
        keys.push(queue.insert_under(keys[n / 5], shares(3), ()).unwrap());
    }
    let cap = Cap::new(Duration::from_micros(700), Duration::from_millis(20)).unwrap();
    for &key in keys.iter().step_by(3) {
        queue.set_cap(key, Some(cap)).unwrap();
    }
    let before = CALLS.get();
    let mut throttled = 0;
    for step in 0..20_000_usize {
        let key = keys[step * 7 % keys.len()];
        queue.activate(key).unwrap();
        queue.set_shares(key, shares(1 + step as u32 % 9)).unwrap();
        let pick = match step % 3 {
            0 => queue.pick_another(),
            _ => queue.pick(),
        };
        match pick {
            Pick::Throttled { until } => time.set(until),
            _ => time.set(time.get() + 600_000),
        }
        throttled += usize::from(queue.is_throttled(key).unwrap());
        if step % 5 == 0 {
            queue.deactivate(key).unwrap();
        }
    }
    assert_eq!(CALLS.get(), before);
    assert!(throttled > 100);
}
