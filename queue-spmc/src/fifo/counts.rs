//! Counts the cost of each operation, as the README's table states it.
use super::*;
use sync_shim::count::counted;

fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    counts.rmws
}

#[test]
fn fifo_operations_cost_what_the_readme_says() {
    let mut worker = Worker::with_capacity(8);
    let mut thief = Worker::with_capacity(8);
    let stealer = worker.stealer();
    assert_eq!(rmws(|| worker.extend(0..8)), 0);
    assert_eq!(rmws(|| worker.push(8)), 1, "growing");
    assert_eq!(rmws(|| worker.pop()), 1);
    assert_eq!(rmws(|| stealer.steal()), 2);
    // Moves four items.
    let half = StealLimit::Half;
    assert_eq!(rmws(|| stealer.steal_into(&mut thief, half)), 2);
    assert_eq!(rmws(|| stealer.steal_into_and_pop(&mut thief, half)), 2);
    assert_eq!(rmws(|| worker.pop()), 2, "shrinking");
    assert_eq!((rmws(|| worker.pop()), rmws(|| stealer.steal())), (0, 0));
    worker.extend(0..8);
    assert_eq!(rmws(|| stealer.steal_into(&mut thief, half)), 3, "growing");
}
