//! The duty that serves timers and sockets which no worker waits for.
use crate::worker::shared::Shared;
use sched_monitor::{Duty, Observed, Round, State};
use std::time::Duration;
use sync_shim::sync::Arc;

/// How late the monitor fires timers and polls sockets while no worker is idle. If workers fire
/// timers after the deadline, the monitor leaves the others to them for up to half of this time
/// more. Up to a millisecond is added, the shortest pause between the monitor's rounds. If a timer
/// is armed after a round, its lateness is at most the longest pause, 10 ms.
const LATE: Duration = Duration::from_millis(5);

/// If a poll is at least this long, another worker is to wait for timers and sockets.
const LONG: Duration = Duration::from_millis(2);

/// Fires timers and polls sockets that no worker waits for. The tasks that this wakes go to the
/// injector, and a sleeping worker is notified.
///
/// While no worker is idle, the workers look for events between their polls, and queue the tasks in
/// the order of the events. The tasks that the monitor wakes would run before tasks of earlier
/// events, which wait in a worker's ring. So the monitor then acts only if a timer has been due for
/// the time `late`, or half as long again while workers fire timers, or if nobody has polled the
/// sockets for the time `late`.
///
/// If a poll is long while a worker is idle, the duty also wakes that worker. The worker finds no
/// task, parks, and so waits for timers and sockets from then on.
pub(super) struct PollOverdue {
    shared: Arc<Shared>,
    late: Duration,
}

impl PollOverdue {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, late: LATE }
    }
}

impl Duty for PollOverdue {
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        let (shared, all_busy) = (&self.shared, round.all_busy());
        let late = match all_busy {
            true => self.late,
            false => Duration::ZERO,
        };
        // Wakers are user code.
        shared.hooks.contain(|| shared.events.poll_overdue(late));
        let next = shared.events.until_overdue(self.late)?;
        // Nobody waits for timers and sockets.
        if !all_busy
            && round
                .workers
                .iter()
                .any(|worker| is_long(worker, round.now))
        {
            shared.notify();
        }
        Some(next)
    }
}

/// Returns whether the worker's poll in progress is long.
fn is_long(worker: &Observed, now: Duration) -> bool {
    let polls = matches!(worker.sample.state, State::Polling | State::Calling);
    polls && now.saturating_sub(worker.poll_since) >= LONG
}

#[cfg(all(test, feature = "net", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::PollOverdue;
    use crate::Builder;
    use net_driver::time::sleep;
    use sched_monitor::{Duty, Observed, Round, Sample, State};
    use std::{
        future::Future,
        pin::pin,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering::Relaxed},
            mpsc,
        },
        task::{Context, Wake},
        thread,
        time::Duration,
    };

    struct Counts(AtomicUsize);

    impl Wake for Counts {
        fn wake(self: Arc<Self>) {
            // Ordering: Relaxed, as it is only a count.
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Runs a round of the duty, 10 ms after a timer became due, while the only worker is in a
    /// poll. Returns whether the duty has fired the timer.
    fn fires(state: State, late: Duration) -> bool {
        let builder = Builder::new().workers(1).monitor(false);
        let runtime = builder.build().unwrap();
        let counts = Arc::new(Counts(AtomicUsize::new(0)));
        let (armed, is_armed) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let waker = counts.clone().into();
        let task = runtime.spawn(async move {
            let mut cx = Context::from_waker(&waker);
            loop {
                // A sleep that ends in its first poll arms no timer.
                let mut sleep = pin!(sleep(Duration::from_millis(1)));
                if sleep.as_mut().poll(&mut cx).is_pending() {
                    armed.send(()).unwrap();
                    return ends.recv().unwrap();
                }
            }
        });
        is_armed.recv().unwrap();
        thread::sleep(Duration::from_millis(15));
        let shared = runtime.handle().shared().clone();
        let sample = Sample {
            state,
            ..Sample::default()
        };
        let worker = Observed {
            sample,
            ..Observed::default()
        };
        let pause = PollOverdue { shared, late }.look(&Round {
            now: Duration::ZERO,
            workers: &[worker],
        });
        assert!(pause.is_none_or(|pause| pause <= late));
        end.send(()).unwrap();
        // Ordering: Relaxed, as only this thread's call of `look` may have counted.
        let fired = counts.0.load(Relaxed) == 1;
        runtime.block_on(task).unwrap();
        fired
    }

    /// Fails if the monitor fires timers, and so queues their tasks, before the tasks that wait
    /// behind a poll of a millisecond. Fails too if it leaves late timers to busy workers, or if it
    /// does not use an idle worker.
    #[test]
    fn monitor_leaves_events_to_busy_workers_until_they_are_late() {
        let hour = Duration::from_secs(3600);
        for state in [State::Polling, State::Awake, State::Calling] {
            assert!(!fires(state, hour));
            assert!(fires(state, Duration::from_millis(10)));
        }
        assert!(fires(State::Idle, hour));
    }
}
