use super::*;

/// Fails if batches of one task count as large, if batches of many tasks do not count as large
/// after a few waits, or if later batches of one task do not change that.
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
