//! A ring allocates when it is created, and never again.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use allocation_counter::measure;
use queue_spmc::{
    Overflow,
    ring::{Inline, StealLimit, Worker},
};

struct Nowhere;

impl Overflow<u32> for Nowhere {
    fn push(&self, _: u32) {}
    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        batch.for_each(drop);
    }
}

#[test]
fn ring_on_the_heap_allocates_only_when_created() {
    let birth = measure(|| drop(Worker::<u32>::new(64)));
    assert!(birth.count_total > 0, "the measure counts");
    let (mut worker, mut thief) = (Worker::new(64), Worker::new(64).with_claim(16));
    let stealer = worker.stealer();
    let work = measure(|| {
        for round in 0..1_000 {
            worker.extend(0..round % 70);
            worker.push_or_overflow(round, &Nowhere);
            let _ = worker.push(round);
            let _ = stealer.clone().steal();
            let _ = stealer.steal_into_and_pop(&mut thief, StealLimit::Half);
            let _ = stealer.steal_into(&mut thief, StealLimit::AtMost(3));
            worker.pop_n(5).for_each(drop);
            worker.pop();
            thief.drain().for_each(drop);
        }
    });
    assert_eq!(work.count_total, 0);
}

#[test]
fn inline_ring_never_allocates() {
    let all = measure(|| {
        let mut ring = Inline::<u32, 64>::new();
        let (mut worker, stealer) = ring.split();
        worker.extend(0..64);
        let _ = stealer.steal();
        worker.drain().for_each(drop);
    });
    assert_eq!(all.count_total, 0);
}
