//! An injector takes the overflow of a ring.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use queue_global::{Boxed, Injector, ValueInjector};
use queue_spmc::{Overflow, ring::Worker};

fn node(n: u32) -> Box<Boxed<u32>> {
    Box::new(Boxed::new(n))
}

fn drain(queue: &Injector<Boxed<u32>>) -> Vec<u32> {
    std::iter::from_fn(|| queue.pop())
        .map(|node| node.value)
        .collect()
}

#[test]
fn overflow_is_queued_in_order_even_if_closed() {
    for closed in [false, true] {
        let queue = Injector::new();
        Overflow::push(&queue, node(0));
        if closed {
            queue.close();
        }
        queue.push_batch_of(1..4);
        Overflow::push(&queue, node(4));
        queue.push_batch_of(5..5);
        assert_eq!(drain(&queue), [0, 1, 2, 3, 4]);
    }
}

/// Calls `push_batch` of the trait `Overflow`, which the injector's own `push_batch` hides.
trait Batch {
    fn push_batch_of(&self, numbers: std::ops::Range<u32>);
}

impl Batch for Injector<Boxed<u32>> {
    fn push_batch_of(&self, numbers: std::ops::Range<u32>) {
        Overflow::push_batch(self, numbers.map(node).collect::<Vec<_>>().into_iter());
    }
}

#[test]
fn a_full_ring_leaves_half_and_the_new_item_in_the_injector() {
    let mut ring = Worker::new(8);
    let queue = Injector::new();
    for n in 0..9 {
        ring.push_or_overflow(node(n), &queue);
    }
    let mut got = drain(&queue);
    assert!(got.len() > 1, "one item, not a batch");
    got.extend(std::iter::from_fn(|| ring.pop()).map(|node| node.value));
    got.sort_unstable();
    assert!(got.into_iter().eq(0..9));
}

#[test]
fn full_ring_overflows_into_a_queue_of_values() {
    let mut ring = Worker::new(8);
    let queue = ValueInjector::new();
    queue.close();
    for n in 0..9 {
        ring.push_or_overflow(n, &queue);
    }
    let mut got: Vec<u32> = queue.pop_n(9).collect();
    assert!(got.len() > 1, "one item, not a batch");
    got.extend(std::iter::from_fn(|| ring.pop()));
    got.sort_unstable();
    assert!(got.into_iter().eq(0..9));
}
