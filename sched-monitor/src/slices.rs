//! The duty that ends time slices.
use crate::{Duty, Round, State};
use std::{fmt, time::Duration};

/// Requests the end of a worker's time slice when a run has lasted for a limit.
///
/// A run is a poll together with the polls that inherit its slice. The duty makes at most one
/// request in a run. The scheduler decides about the request's effect: usually the scheduler
/// refuses the polled task its next operation, and the task yields.
///
/// ```
/// use coop_budget::Preempt;
/// use sched_monitor::{Duty, EndSlices, Observed, Round, Sample, State};
/// use std::{sync::Arc, time::Duration};
///
/// let slices = Arc::new([Preempt::new()]);
/// let asked = slices.clone();
/// let mut duty = EndSlices::new(move |worker| asked[worker].request());
/// // The monitor makes the rounds. The worker has been in one poll for 10 ms.
/// let sample = Sample { state: State::Polling, polls: 7, runs: 7, calls: 0 };
/// let workers = [Observed { sample, ..Observed::default() }];
/// duty.look(&Round { now: Duration::from_millis(10), workers: &workers });
/// assert!(slices[0].need_preempt());
/// ```
pub struct EndSlices<F> {
    limit: Duration,
    request: F,
    /// For each worker, the run whose end was requested last.
    requested: Vec<Option<u64>>,
}

impl<F: FnMut(usize) + Send> EndSlices<F> {
    /// Creates the duty with a limit of 10 ms. `request` gets the index of the worker.
    pub fn new(request: F) -> Self {
        Self {
            limit: Duration::from_millis(10),
            request,
            requested: Vec::new(),
        }
    }

    /// Sets the limit.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }
}

impl<F: FnMut(usize) + Send> Duty for EndSlices<F> {
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        let mut wish = None;
        self.requested.resize(round.workers.len(), None);
        for (worker, seen) in round.workers.iter().enumerate() {
            let run = Some(seen.sample.runs);
            if seen.sample.state != State::Polling || self.requested[worker] == run {
                continue;
            }
            let ran = round.now.saturating_sub(seen.run_since);
            match self.limit.checked_sub(ran) {
                Some(left) if !left.is_zero() => {
                    wish = Some(wish.map_or(left, |wish: Duration| wish.min(left)));
                }
                _ => {
                    self.requested[worker] = run;
                    (self.request)(worker);
                }
            }
        }
        wish
    }
}

impl<F> fmt::Debug for EndSlices<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndSlices")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
