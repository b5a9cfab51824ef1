//! No operation on a list or a queue of nodes allocates or frees memory, and a queue of few values
//! uses its blocks again.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use queue_global::{Boxed, Closed, Injector, List, ValueInjector};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

/// The system's allocator, with a count of the calls by each thread.
struct Counting;

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: each call goes to the system's allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn nothing_is_allocated_or_freed() {
    let mut nodes: Vec<_> = (0..64).map(|n| Box::new(Boxed::new(n))).collect();
    let before = CALLS.get();
    let queue: Injector<Boxed<u32>> = Injector::new();
    for _ in 0..3 {
        for (n, node) in nodes.drain(..16).enumerate() {
            match n % 2 {
                0 => assert!(queue.push(node).is_ok()),
                _ => queue.requeue(node),
            }
        }
        let mut front: List<_> = nodes.drain(..16).collect();
        let mut back: List<_> = nodes.drain(..).collect();
        let mut middle = back.split_off_front(7);
        front.append(&mut middle);
        assert!(queue.push_batch(front).is_ok());
        queue.requeue_batch(back);
        nodes.extend(queue.pop());
        nodes.extend(queue.pop_n(40));
        nodes.extend(std::iter::from_fn(|| queue.pop()));
        assert!(nodes.len() + queue.len() == 64 && queue.is_empty());
        assert!(nodes.iter().map(|node| node.value).eq(0..64));
    }
    assert!(queue.close() && queue.is_closed());
    if let Some(Err(Closed(node))) = nodes.pop().map(|node| queue.push(node)) {
        nodes.push(node);
    }
    drop(queue);
    assert_eq!(CALLS.get(), before);
    assert_eq!(nodes.len(), 64);
}

#[test]
fn queue_of_few_values_uses_its_blocks_again() {
    let queue = ValueInjector::<u32>::new();
    let turn = || {
        for n in 0..1_000 {
            queue.push(n).unwrap();
            assert_eq!(queue.pop(), Some(n));
        }
    };
    turn();
    let before = CALLS.get();
    turn();
    assert_eq!(CALLS.get(), before);
}
