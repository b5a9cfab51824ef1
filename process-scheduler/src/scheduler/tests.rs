//! Limits and faults of a scheduler that are rare: many spawns, and no more threads.
use super::{models::without_threads, *};

/// Fails if the counts of spawns and ends wrap after 2³², as those of a 32-bit target may.
#[test]
fn limit_of_processes_holds_after_many_spawns() {
    const ENDED: u64 = u32::MAX as u64;
    let mut handle = without_threads();
    let shared = Arc::get_mut(&mut handle.shared).unwrap();
    shared.config.max_processes = 2;
    for count in [&shared.begun, &shared.gone] {
        // Ordering: Relaxed, one thread.
        count.store(ENDED, Relaxed);
    }
    assert_eq!([(); 4].map(|()| shared.begin()), [true, true, false, false]);
    assert_eq!(shared.live(), 2);
    shared.ended();
    assert!(shared.begin());
    assert!(!shared.begin());
    assert_eq!(handle.metrics().processes, 2);
    // The three that were refused count too: `spawn_process` counts them as such.
    assert_eq!(handle.metrics().spawned, ENDED + 6);
}
