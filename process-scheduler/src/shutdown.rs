//! The shutdown of a scheduler.
//!
//! 1. The registry is closed: either a new process is in the registry by then, or its spawn is
//!    refused.
//! 2. All processes get a cancel. The workers continue, so that processes can clean up with
//!    commands, messages and timers.
//! 3. At the deadline, all processes that are left get a final kill, which acts between their
//!    steps.
//! 4. The shutdown waits for 100 ms after the kills. It waits longer, for at most 10 seconds, while
//!    a process is left that is not in a step, and a worker is free to end it. The processes that
//!    are left then are *stuck*. Then the workers stop: each worker, once it is in no step, ends
//!    the processes that are left in the queues (rule 6 of `worker.rs`). These are stuck only
//!    because no worker was free. The shutdown joins the threads of the workers one after the
//!    other. If processes are stuck, it waits for each thread for 100 ms. A thread that is still in
//!    a step then, or still ends processes, is leaked.
//! 5. A shutdown on a worker leaves rules 3 and 4 to a thread. If the system refuses that thread,
//!    no thread waits for the deadline. So all processes that are left get their final kill at
//!    once, the last end stops the workers, and nobody joins the workers. Workers that stopped
//!    before the last end would leave processes that never end.
use crate::{
    CancelReason, ExitReason, Phase, Signal, any_cell::AnyCell, guard::guarded, shared::Shared,
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use sync_shim::{
    atomic::Ordering::{Relaxed, Release},
    sim::thread::{self, JoinHandle},
};

/// How long a forced shutdown waits for the steps that run.
const GRACE: Duration = Duration::from_millis(100);
/// How long a forced shutdown waits at most while workers are free (rule 4).
const FREE_LIMIT: Duration = Duration::from_secs(10);

/// The outcome of a shutdown: how the processes that it found have ended.
///
/// ```
/// use process_scheduler::{Scheduler, ShutdownReport};
///
/// let scheduler = Scheduler::new();
/// let _idle = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
/// let report = scheduler.shutdown();
/// assert_eq!((report.graceful, report.forced, report.stuck), (1, 0, 0));
/// # let _: ShutdownReport = report;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Processes that ended before the deadline.
    pub graceful: usize,
    /// Processes that the kill at the deadline has ended.
    pub forced: usize,
    /// Processes that are left, because a step did not return or no worker was free to end them.
    /// The threads of these steps are leaked, and so is a thread that still ends processes 100 ms
    /// after the stop. When such a step returns, its thread ends the processes that are left and
    /// are in no step.
    pub stuck: usize,
}

impl Shared {
    /// Waits until no process is left, or until the deadline.
    fn wait_for_all(&self, deadline: Option<Instant>) {
        let mut guard = self.ended.lock();
        while self.live() > 0 {
            // If the last process ended just before the close, its end notified nobody. So this
            // thread checks again after each interval.
            let interval = Duration::from_millis(20);
            let time_left = deadline.map_or(interval, |at| {
                at.saturating_duration_since(sync_shim::time::now())
            });
            if time_left.is_zero() {
                return;
            }
            guard = self
                .all_ended
                .wait_timeout(guard, time_left.min(interval))
                .0;
        }
    }

    /// Refuses spawns, and cancels all processes. Returns the number of processes, or `None` if the
    /// scheduler was closed before.
    pub(crate) fn close(&self) -> Option<usize> {
        // Ordering: Relaxed: one caller gets `false`. The locks of the registry pair with those of
        // a process that stops: see `is_closed`.
        if self.is_closed.swap(true, Relaxed) {
            return None;
        }
        self.registry.close();
        let all = self.registry.all();
        for cell in &all {
            // A process that has just ended needs no cancel.
            drop(cell.signal(Signal::Cancel(CancelReason::Shutdown)));
            if cell.info().phase == Phase::Stopped {
                cell.kill(ExitReason::Killed, true);
            }
        }
        Some(all.len())
    }

    /// Waits while a process is left that is not in a step, and a worker is free to end it. On a
    /// busy machine this may take long, so the wait ends after `FREE_LIMIT`.
    fn wait_for_free_workers(&self) {
        let limit = sync_shim::time::now() + FREE_LIMIT;
        while self.live() > 0 && sync_shim::time::now() < limit {
            let live = self.registry.all();
            let is_running = |cell: &&Arc<dyn AnyCell>| cell.info().phase == Phase::Running;
            let running = live.iter().filter(is_running).count();
            if running == live.len() || running >= self.stealers.len() {
                return;
            }
            drop(live);
            self.wait_for_all(sync_shim::time::now().checked_add(Duration::from_millis(20)));
        }
    }

    pub(crate) fn end(
        &self,
        threads: Vec<JoinHandle<()>>,
        found: usize,
        limit: Duration,
    ) -> ShutdownReport {
        self.wait_for_all(sync_shim::time::now().checked_add(limit));
        let left = self.live();
        if left > 0 {
            for cell in self.registry.all() {
                cell.kill(ExitReason::Killed, true);
            }
            self.wait_for_all(sync_shim::time::now().checked_add(GRACE));
            self.wait_for_free_workers();
        }
        let stuck = self.live();
        self.stop_workers();
        for thread in threads {
            // Only stuck processes keep a thread from ending: it is in a step, or it ends those
            // that are left. After the deadline it is leaked (rule 4).
            let deadline = sync_shim::time::now() + GRACE;
            while stuck > 0 && !thread.is_finished() && sync_shim::time::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            if stuck == 0 || thread.is_finished() {
                drop(thread.join());
            }
        }
        self.timer.stop();
        ShutdownReport {
            graceful: found.saturating_sub(left),
            forced: left.saturating_sub(stuck),
            stuck,
        }
    }

    pub(crate) fn stop_workers(&self) {
        // Ordering: Release pairs with `take_left`. The token of the unpark publishes the flag to a
        // worker that parks.
        self.stop.store(true, Release);
        for waker in &self.wakers {
            guarded(|| waker.wake_by_ref());
        }
    }

    /// Ends a shutdown that has begun on a worker, and has no thread of its own (rule 5).
    pub(crate) fn end_without_a_thread(&self) {
        for cell in self.registry.all() {
            cell.kill(ExitReason::Killed, true);
        }
        self.stop_after_the_last_end();
    }

    /// Stops the workers and the timer after the last end (rule 5).
    pub(crate) fn stop_after_the_last_end(&self) {
        // Ordering: Relaxed, as the next operation publishes the flag.
        self.is_unattended.store(true, Relaxed);
        // Ordering: Release pairs with the read-modify-write of `ended`: of the two, the later one
        // reads the earlier one. So the last end sees the flags, or the load of `live` below sees
        // the last end.
        self.gone.fetch_add(0, Release);
        if self.live() == 0 {
            self.stop_unattended();
        }
    }

    pub(crate) fn stop_unattended(&self) {
        self.stop_workers();
        self.timer.stop();
    }
}
