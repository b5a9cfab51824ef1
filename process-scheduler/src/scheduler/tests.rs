//! Rare limits and faults of a scheduler: many spawns, and a shutdown that can start no thread.
use super::{models::without_threads, *};
use crate::{Inbox, worker};
use std::{future::pending, sync::mpsc};

/// A test that waits this long has failed.
const LIMIT: Duration = Duration::from_secs(600);

/// Fails if the counts of spawns and ends wrap after 2³², as a `usize` does on a 32-bit target.
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
    // `spawned` includes the three calls of `begin` that were refused: `spawn_process` counts
    // refusals, and this test does not call it.
    assert_eq!(handle.metrics().spawned, ENDED + 6);
}

/// A process drops its scheduler, and no thread can be started for the shutdown. Another process
/// ignores its cancel.
///
/// Fails if a process or a worker outlives that shutdown. A worker that goes on keeps the
/// scheduler's memory.
#[test]
fn shutdown_without_a_thread_kills_all_and_stops() {
    let scheduler = Scheduler::builder().workers(2).build();
    let weak = Arc::downgrade(&scheduler.handle.shared);
    let (sender, ended) = mpsc::channel();
    let stubborn = scheduler.spawn_async(|_: Inbox<()>| pending::<()>());
    // The test drops the process's `Address`, which would keep the scheduler's memory.
    let stubborn = scheduler.exit_of(stubborn.unwrap().pid());
    let owner = scheduler.spawn_fn(move |mut scheduler: Scheduler, _| {
        assert!(worker::index_in(&scheduler.handle.shared).is_some());
        let refuse = |_| Err(io::ErrorKind::WouldBlock.into());
        sender
            .send(scheduler.end_on(Duration::MAX, refuse))
            .unwrap();
    });
    let owner = owner.unwrap();
    let own = scheduler.exit_of(owner.pid());
    assert!(owner.try_send(scheduler).is_ok());
    drop(owner);
    assert_eq!(ended.recv_timeout(LIMIT), Ok(ShutdownReport::default()));
    let (sender, exits) = mpsc::channel();
    thread::spawn(move || sender.send([stubborn.wait(), own.wait()]));
    // The owner is cancelled, not killed: it receives its cancel in the same step in which it drops
    // the scheduler.
    let reasons = [ExitReason::Killed, ExitReason::Cancelled];
    assert_eq!(exits.recv_timeout(LIMIT), Ok(reasons));
    let deadline = Instant::now() + LIMIT;
    while weak.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the workers go on");
        thread::yield_now();
    }
}
