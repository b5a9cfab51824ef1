//! What an operation costs, in read-modify-writes: the README's table, counted.
use super::*;
use sync_shim::count::counted;

struct Nowhere;

impl Overflow<u32> for Nowhere {
    fn push(&self, _: u32) {}
    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        batch.for_each(drop);
    }
}

fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    counts.rmws
}

#[test]
fn every_operation_costs_what_the_readme_says() {
    let mut worker = Worker::new(8);
    let mut thief = Worker::new(8);
    let stealer = worker.stealer();
    for item in 0..8 {
        assert_eq!(rmws(|| worker.push(item)), 0);
    }
    assert_eq!(rmws(|| worker.push(8)), 0);
    assert_eq!(rmws(|| worker.push_or_overflow(8, &Nowhere)), 1);
    assert_eq!(rmws(|| worker.pop()), 1);
    assert_eq!(rmws(|| stealer.steal()), 2);
    assert_eq!(
        rmws(|| stealer.steal_into_and_pop(&mut thief, StealLimit::Half)),
        2
    );
    assert_eq!(rmws(|| stealer.steal_into(&mut thief, StealLimit::Half)), 2);
    assert_eq!(rmws(|| (worker.pop(), stealer.steal())), 0);
    drop(thief);
}
