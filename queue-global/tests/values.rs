//! The queue of values: random sequences of operations, threads, and the memory that the queue
//! keeps.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use proptest::prelude::*;
use queue_global::{Batch, Closed, ValueInjector};
use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::VecDeque,
    thread,
};

/// The system's allocator, with a count of the blocks and bytes of each thread.
struct Counting;

thread_local! {
    static BLOCKS: Cell<isize> = const { Cell::new(0) };
    static BYTES: Cell<isize> = const { Cell::new(0) };
}

fn count(blocks: isize, layout: Layout) {
    BLOCKS.set(BLOCKS.get() + blocks);
    BYTES.set(BYTES.get() + blocks * layout.size() as isize);
}

// SAFETY: each call goes to the system's allocator, which fulfils the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(-1, layout);
        // SAFETY: the caller fulfils the same contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone, Debug)]
enum Op {
    Push,
    Batch(usize),
    Pop,
    PopN(usize),
    Requeue,
    RequeueBatch(usize),
    Close,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Push),
        4 => (0..150usize).prop_map(Op::Batch),
        4 => Just(Op::Pop),
        8 => (0..70usize).prop_map(Op::PopN),
        1 => Just(Op::Requeue),
        1 => (0..150usize).prop_map(Op::RequeueBatch),
        1 => Just(Op::Close),
    ]
}

proptest! {
    #[test]
    fn value_injector_behaves_as_a_vec_deque(ops in prop::collection::vec(op(), 0..80)) {
        let queue = ValueInjector::new();
        let (mut model, mut next, mut closed) = (VecDeque::new(), 0_usize, false);
        for op in ops {
            // The values are boxed, so that a sanitizer finds one that is lost or dropped twice.
            let fresh = |n: usize| (next..next + n).map(Box::new).collect::<Vec<_>>();
            match op {
                Op::Push => {
                    let back = queue.push(Box::new(next));
                    let refused = closed.then(|| Closed(Box::new(next)));
                    prop_assert_eq!(back, refused.map_or(Ok(()), Err));
                    if !closed { model.push_back(Box::new(next)) }
                    next += 1;
                }
                Op::Batch(n) => {
                    match queue.push_batch(fresh(n)) {
                        Ok(()) => {
                            prop_assert!(!closed);
                            model.extend(fresh(n));
                        }
                        Err(Closed(back)) => {
                            prop_assert!(closed);
                            prop_assert_eq!(back.collect::<Vec<_>>(), fresh(n));
                        }
                    }
                    next += n;
                }
                Op::Pop => prop_assert_eq!(queue.pop(), model.pop_front()),
                Op::PopN(n) => {
                    let got: Vec<_> = queue.pop_n(n).collect();
                    let n = n.min(model.len()).min(Batch::<u32>::CAPACITY);
                    prop_assert_eq!(got, model.drain(..n).collect::<Vec<_>>());
                }
                Op::Requeue => {
                    queue.requeue(Box::new(next));
                    model.push_back(Box::new(next));
                    next += 1;
                }
                Op::RequeueBatch(n) => {
                    queue.requeue_batch(fresh(n));
                    model.extend(fresh(n));
                    next += n;
                }
                Op::Close => {
                    prop_assert_eq!(queue.close(), !closed);
                    closed = true;
                }
            }
            prop_assert_eq!(queue.len(), model.len());
            prop_assert_eq!(queue.is_empty(), model.is_empty());
            prop_assert_eq!(queue.is_closed(), closed);
        }
    }
}

#[test]
fn emptied_queue_keeps_two_blocks_at_most() {
    let queue = ValueInjector::<u64>::new();
    let (blocks, bytes) = (BLOCKS.get(), BYTES.get());
    for items in [1, 100, 10_000] {
        queue.push_batch(0..items).unwrap();
        assert!(BYTES.get() - bytes < 9 * items as isize + 3 * 1100);
        assert_eq!(std::iter::from_fn(|| queue.pop()).count() as u64, items);
        assert!(BLOCKS.get() - blocks <= 2 && BYTES.get() - bytes <= 2 * 1100);
    }
    // If the values come one at a time, the queue reuses those blocks.
    let before = BLOCKS.get();
    for n in 0..1_000 {
        queue.push(n).unwrap();
        assert_eq!(queue.pop(), Some(n));
        assert_eq!(BLOCKS.get(), before);
    }
    drop(queue);
    assert_eq!((BLOCKS.get(), BYTES.get()), (blocks, bytes));
}

/// Each value comes out once. A consumer gets the values of one pusher in the order in which they
/// were pushed.
#[test]
fn values_of_two_pushers_reach_two_consumers_once() {
    const EACH: u64 = 20_000;
    let queue = ValueInjector::new();
    let sums: Vec<_> = thread::scope(|scope| {
        let pushers: Vec<_> = [0, EACH]
            .map(|first| {
                let queue = &queue;
                scope.spawn(move || {
                    for n in (first..first + EACH).step_by(100) {
                        queue.push(n).unwrap();
                        queue.push_batch(n + 1..n + 100).ok().unwrap();
                    }
                })
            })
            .into();
        let consumers: Vec<_> = [1, 7]
            .map(|share| {
                let queue = &queue;
                scope.spawn(move || {
                    let (mut count, mut sum, mut least) = (0, 0, [0, EACH]);
                    loop {
                        let closed = queue.is_closed();
                        let got = queue.pop_n(share);
                        if got.len() == 0 && closed {
                            return (count, sum);
                        }
                        if got.len() == 0 {
                            thread::yield_now();
                        }
                        for n in got {
                            let least = &mut least[usize::from(n >= EACH)];
                            assert!(n >= *least);
                            (*least, count, sum) = (n + 1, count + 1, sum + n);
                        }
                    }
                })
            })
            .into();
        pushers
            .into_iter()
            .for_each(|pusher| pusher.join().unwrap());
        queue.close();
        (consumers.into_iter())
            .map(|consumer| consumer.join().unwrap())
            .collect()
    });
    assert_eq!(sums.iter().map(|sums| sums.0).sum::<u64>(), 2 * EACH);
    assert_eq!(
        sums.iter().map(|sums| sums.1).sum::<u64>(),
        EACH * (2 * EACH - 1)
    );
}
