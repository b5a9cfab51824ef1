//! The duty that takes cores from workers whose annotated calls take long.
use crate::{Duty, Round, State, monitor::MIN_PAUSE};
use std::{fmt, time::Duration};

/// How long after the last call the rounds stay 1 ms apart.
const RECENT: Duration = Duration::from_secs(1);

/// Hands a worker over to another thread when its annotated call takes long.
///
/// If work waits for the worker, the duty hands the worker over when two rounds have found it in
/// the same call: after about 1 ms. If no work waits, the duty hands the worker over after 10 ms.
/// While workers begin annotated calls, and for a second afterwards, the rounds are 1 ms apart.
///
/// ```
/// use sched_monitor::{Duty, Observed, Retake, Round, Sample, State};
/// use std::{sync::mpsc, time::Duration};
///
/// let (sender, handed_over) = mpsc::channel();
/// let mut duty = Retake::new(|_worker| true, move |worker| sender.send(worker).unwrap());
/// let sample = Sample { state: State::Calling, polls: 7, runs: 7, calls: 1 };
/// let workers = [Observed { sample, ..Observed::default() }];
/// duty.look(&Round { now: Duration::from_millis(1), workers: &workers });
/// assert_eq!(handed_over.try_recv(), Ok(0));
/// ```
pub struct Retake<H, F> {
    tick: Duration,
    limit: Duration,
    has_work: H,
    hand_over: F,
    /// The number of all workers' calls at the last round, and the time of the last round at which
    /// that number had changed.
    calls: (u64, Option<Duration>),
}

impl<H, F> Retake<H, F>
where
    H: FnMut(usize) -> bool + Send,
    F: FnMut(usize) + Send,
{
    /// Creates the duty. `has_work` says whether work waits for the worker. `hand_over` lets
    /// another thread continue as this worker, if the worker is still in its call: see
    /// [`Handoff::retake`](crate::Handoff::retake).
    pub fn new(has_work: H, hand_over: F) -> Self {
        Self {
            tick: MIN_PAUSE,
            limit: 10 * MIN_PAUSE,
            has_work,
            hand_over,
            calls: (0, None),
        }
    }
}

impl<H, F> Duty for Retake<H, F>
where
    H: FnMut(usize) -> bool + Send,
    F: FnMut(usize) + Send,
{
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        let mut calls = 0_u64;
        for (worker, seen) in round.workers.iter().enumerate() {
            calls = calls.wrapping_add(seen.sample.calls);
            if seen.sample.state != State::Calling {
                continue;
            }
            let lasted = round.now.saturating_sub(seen.call_since);
            if lasted >= self.limit || lasted >= self.tick && (self.has_work)(worker) {
                (self.hand_over)(worker);
            }
        }
        if calls != self.calls.0 {
            self.calls = (calls, Some(round.now));
        }
        let last = self.calls.1?;
        (round.now.saturating_sub(last) < RECENT).then_some(self.tick)
    }
}

impl<H, F> fmt::Debug for Retake<H, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retake")
            .field("tick", &self.tick)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
