//! Counts the cost of each operation, as the README's table states it.
use super::*;
use sync_shim::count::{Counts, counted};

/// Returns the numbers of read-modify-writes and of `SeqCst` fences.
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
fn deque_operations_cost_what_the_readme_says() {
    let mut worker = Worker::with_capacity(8);
    let mut thief = Worker::new();
    let stealer = worker.stealer();
    assert_eq!(cost(|| worker.extend(0..8)), (0, 0));
    assert_eq!(cost(|| worker.push(8)), (1, 0), "growing");
    assert_eq!(cost(|| worker.pop()), (0, 1));
    assert_eq!(cost(|| stealer.steal()), (2, 1));
    // Moves four items.
    let half = StealLimit::Half;
    assert_eq!(cost(|| stealer.steal_into(&mut thief, half)), (5, 4));
    assert_eq!(cost(|| worker.pop()), (1, 1), "shrinking");
    assert_eq!(cost(|| worker.pop()), (0, 1));
    assert_eq!(cost(|| worker.pop()), (1, 0), "the last");
    assert_eq!(cost(|| worker.pop()), (0, 0), "empty");
    worker.extend(0..2);
    assert_eq!(cost(|| stealer.steal()), (2, 1));
    assert_eq!(cost(|| worker.pop()), (1, 1), "the last, after a steal");
    assert_eq!(cost(|| stealer.steal()), (0, 1));
}
