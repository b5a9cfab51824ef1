//! Rare limits and faults of a scheduler: many spawns, a shutdown that can start no thread, and one
//! that finds no free worker.
use super::*;
use crate::{
    EventsOf, ExitReason, Inbox, NoCommand, OutputOf, Pid, Process, Step, StepOf,
    shared::models::without_threads, worker,
};
use std::{
    future::pending,
    sync::{Weak, mpsc},
    time::Instant,
};
use sync_shim::atomic::Ordering::Relaxed;

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
    wait_for_drop(&weak);
}

/// Waits until the workers have ended, and the scheduler's memory is freed.
fn wait_for_drop(shared: &Weak<Shared>) {
    let deadline = Instant::now() + LIMIT;
    while shared.strong_count() > 0 {
        assert!(Instant::now() < deadline, "the workers go on");
        thread::yield_now();
    }
}

/// Idles, and counts its closes.
struct Idles(mpsc::Sender<()>);

impl Process for Idles {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        // A cancel does not end this process.
        Step::Idle
    }

    fn close(&mut self) {
        self.0.send(()).unwrap();
    }
}

/// The only worker is in a step when the shutdown kills all processes, and goes on only after the
/// shutdown.
///
/// Fails if the worker ends without a run of the other process, which then never ends.
#[test]
fn process_behind_a_stuck_step_ends_after_that_step() {
    let scheduler = Scheduler::builder().workers(1).build();
    let weak = Arc::downgrade(&scheduler.handle.shared);
    let (sender, closes) = mpsc::channel();
    let idle = scheduler.spawn(Idles(sender)).unwrap().pid();
    let (sender, begun) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let stuck = scheduler.spawn_fn(move |(), _| {
        sender.send(()).unwrap();
        released.recv().unwrap()
    });
    let stuck = stuck.unwrap();
    let ends = [idle, stuck.pid()].map(|pid| scheduler.exit_of(pid));
    stuck.try_send(()).unwrap();
    drop(stuck);
    begun.recv_timeout(LIMIT).unwrap();
    let report = scheduler.shutdown_timeout(Duration::from_millis(10));
    assert_eq!((report.graceful, report.forced, report.stuck), (0, 0, 2));
    release.send(()).unwrap();
    let (sender, exits) = mpsc::channel();
    thread::spawn(move || sender.send(ends.map(crate::Exit::wait)));
    // The step that returns receives the cancel, too.
    let reasons = [ExitReason::Killed, ExitReason::Cancelled];
    assert_eq!(exits.recv_timeout(LIMIT), Ok(reasons));
    assert_eq!(closes.iter().count(), 1);
    wait_for_drop(&weak);
}

/// A worker is in a step that returns only after the test, and the last process of its deque waits
/// there. The other worker leaves another step after the shutdown.
///
/// Fails if a worker that sees the stop leaves the last process of a deque to its owner.
#[test]
fn process_in_the_deque_of_a_stuck_worker_ends() {
    let scheduler = Scheduler::builder().workers(2).build();
    let (sender, begun) = mpsc::channel();
    // Two processes block: one of them until after the shutdown, the other until the end.
    let block = |released: mpsc::Receiver<()>, wakes: Option<Pid>| {
        let (sender, handle) = (sender.clone(), scheduler.handle());
        let process = scheduler.spawn_fn(move |(), _| {
            if let Some(pid) = wakes {
                handle.try_send(pid, ()).unwrap();
            }
            sender.send(()).unwrap();
            let _ = released.recv();
        });
        let process = process.unwrap();
        process.try_send(()).unwrap();
        begun.recv_timeout(LIMIT).unwrap();
    };
    let (sender, closes) = mpsc::channel();
    let woken = scheduler.spawn(Idles(sender)).unwrap().pid();
    let end = scheduler.exit_of(woken);
    while scheduler.inspect(woken).unwrap().phase != crate::Phase::Idle {
        thread::yield_now();
    }
    let (release, released) = mpsc::channel();
    let (_never, never) = mpsc::channel();
    block(released, None);
    block(never, Some(woken));
    let report = scheduler.shutdown_timeout(Duration::from_millis(10));
    assert_eq!((report.graceful, report.forced, report.stuck), (0, 0, 3));
    release.send(()).unwrap();
    let (sender, exits) = mpsc::channel();
    thread::spawn(move || sender.send(end.wait()));
    assert_eq!(exits.recv_timeout(LIMIT), Ok(ExitReason::Killed));
    assert_eq!(closes.iter().count(), 1);
}
