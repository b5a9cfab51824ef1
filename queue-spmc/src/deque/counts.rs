//! What an operation costs: the README's table, counted.
use super::*;
use sync_shim::count::{Counts, counted};

/// Read-modify-writes and fences.
fn cost<R>(f: impl FnOnce() -> R) -> (u64, u64) {
    let (
        _,
        Counts {
            rmws,
            seqcst_fences,
            ..
        },
    ) = counted(f);
    (rmws, seqcst_fences)
}

#[test]
fn every_operation_costs_what_the_readme_says() {
    let mut worker = Worker::with_capacity(8);
    let mut thief = Worker::new();
    let stealer = worker.stealer();
    assert_eq!(cost(|| worker.extend(0..8)), (0, 0));
    assert_eq!(cost(|| worker.push(8)), (1, 0), "growing");
    assert_eq!(cost(|| worker.pop()), (0, 1));
    assert_eq!(cost(|| stealer.steal()), (2, 1));
    // Four items.
    let half = StealLimit::Half;
    assert_eq!(cost(|| stealer.steal_into(&mut thief, half)), (5, 4));
    assert_eq!(cost(|| worker.pop()), (1, 1), "shrinking");
    assert_eq!(cost(|| worker.pop()), (0, 1));
    assert_eq!(cost(|| worker.pop()), (1, 1), "the last");
    assert_eq!(cost(|| worker.pop()), (0, 1));
    assert_eq!(cost(|| stealer.steal()), (0, 1));
}
