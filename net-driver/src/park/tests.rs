use super::*;

/// Fails if events that come one at a time count as many, or if many at a time are not noticed
/// within a few waits, or are never forgotten.
#[test]
fn batch_is_large_while_many_tasks_wake_at_a_time() {
    let mut batch = Batch::default();
    (0..1_000).for_each(|_| batch.record(1));
    assert!(!batch.is_large());
    (0..3).for_each(|_| batch.record(50));
    assert!(batch.is_large());
    (0..100).for_each(|_| batch.record(0)); // Waits for nothing say nothing.
    assert!(batch.is_large());
    (0..40).for_each(|_| batch.record(1));
    assert!(!batch.is_large());
    (0..100).for_each(|_| batch.record(usize::MAX));
    assert!(batch.is_large());
}
