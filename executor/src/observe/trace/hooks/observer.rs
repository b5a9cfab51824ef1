//! The duty by which the monitor records long polls, and threads that had no CPU.
//!
//! These events go to the lane of the monitor's thread. They are few, so they stay while the lanes
//! of the workers have been overwritten many times. They also come while the recorder pauses.
use crate::worker::shared::Shared;
use sched_monitor::{Duty, Monitor, Observed, Round, State, Times, Workers};
use std::time::Duration;
use sync_shim::{atomic::Ordering::Relaxed, sync::Arc};
use task_trace::recorder::Event;

/// The length from which on a poll is recorded, and again whenever it is twice as long.
const LONG: Duration = Duration::from_millis(5);

/// The length from which on a wait for a CPU is recorded.
const WAIT: Duration = Duration::from_millis(1);

/// Adds the duty that records what the monitor sees.
pub(crate) fn watch<W: Workers>(monitor: Monitor<W>, shared: &Arc<Shared>) -> Monitor<W> {
    monitor.duty(Observer {
        workers: shared.remotes.iter().map(|_| Worker::default()).collect(),
        shared: shared.clone(),
    })
}

struct Observer {
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

/// A worker, as the last round has left it.
#[derive(Default)]
struct Worker {
    /// The thread, and the time that it had waited for a CPU.
    waited: Option<(u32, Duration)>,
    /// The length at which the poll in progress is recorded next.
    next: Duration,
    /// Whether the worker was idle.
    was_idle: bool,
}

impl Duty for Observer {
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        let trace = &self.shared.trace;
        trace.go_on();
        let recorder = trace.recorder();
        if !recorder.is_started() {
            return None;
        }
        let workers = self.workers.iter_mut().zip(round.workers).enumerate();
        for (index, (worker, seen)) in workers {
            if let Some(event) = worker.long_poll(&self.shared, index, seen, round.now) {
                recorder.with_thread(|lane| lane.record(event));
            }
            if let Some(event) = worker.wait(&self.shared, index, seen) {
                recorder.with_thread(|lane| lane.record(event));
            }
        }
        None
    }
}

impl Worker {
    fn long_poll(
        &mut self,
        shared: &Shared,
        worker: usize,
        seen: &Observed,
        now: Duration,
    ) -> Option<Event> {
        let lasted = now.saturating_sub(seen.poll_since);
        if seen.sample.state != State::Polling || lasted < LONG {
            self.next = LONG;
            return None;
        }
        let task = shared.remotes[worker].counters.polled() as u64;
        if lasted < self.next || task == 0 {
            return None;
        }
        self.next = lasted * 2;
        Some(Event::LongPoll {
            worker,
            task,
            lasted,
        })
    }

    /// Compares the time that the worker's thread had waited for a CPU with that of the last round.
    /// The system counts a wait when it is over. Reads a small file, unless the worker sleeps.
    fn wait(&mut self, shared: &Shared, worker: usize, seen: &Observed) -> Option<Event> {
        let is_idle = seen.sample.state == State::Idle;
        if std::mem::replace(&mut self.was_idle, is_idle) && is_idle {
            return None;
        }
        // Ordering: Relaxed, as the number publishes nothing. It is the id of the thread that has
        // the core, or that had the core a moment ago.
        let thread = shared.remotes[worker].thread.load(Relaxed);
        let now = Times::of(thread)?.runnable;
        let before = self.waited.replace((thread, now));
        let (_, before) = before.filter(|before| before.0 == thread)?;
        let waited = now.saturating_sub(before);
        (waited >= WAIT).then_some(Event::NoCpu { worker, waited })
    }
}
