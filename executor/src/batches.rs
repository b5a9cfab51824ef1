//! The lengths of the batches of tasks that a worker's deliveries wake. [`deliver`](crate::deliver)
//! decides by them whether the worker runs a batch alone.
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// The length of a batch that a worker runs alone. A sleeper that is woken takes half as long to
/// run its first stolen task, on a processor that slept.
pub(crate) const KEPT: Duration = Duration::from_micros(100);

/// The lengths of polls in a worker's last batches.
pub(crate) struct Batches {
    /// A delivery is in progress (rule 1).
    delivers: Cell<bool>,
    /// When the batch in progress began, and the worker's count of polls then.
    begun: Cell<Option<(Instant, u64)>>,
    /// The mean of a poll, in nanoseconds, once there is one.
    pub(crate) mean: Cell<Option<u64>>,
}

impl Batches {
    pub(crate) const fn new() -> Self {
        Self {
            delivers: Cell::new(false),
            begun: Cell::new(None),
            mean: Cell::new(None),
        }
    }

    /// Returns whether a delivery is in progress: the end of it notifies.
    #[inline]
    pub(crate) fn delivers(&self) -> bool {
        self.delivers.get()
    }

    pub(crate) fn set_delivers(&self, delivers: bool) {
        self.delivers.set(delivers);
    }

    /// Begins a batch, when the worker has made so many polls.
    pub(crate) fn begin(&self, now: Instant, polls: u64) {
        self.begun.set(Some((now, polls)));
    }

    /// Ends the batch in progress, if there is one, after so many polls.
    pub(crate) fn end(&self, polls: u64) {
        if let Some((begun, before)) = self.begun.take() {
            self.record(begun.elapsed(), polls - before);
        }
    }

    /// Records the length of a batch. The last batch counts for a quarter, so a poll of a
    /// millisecond makes the mean a long one for the next batches.
    fn record(&self, took: Duration, polls: u64) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        if let Some(took) = took.checked_div(polls) {
            let mean = self
                .mean
                .get()
                .map_or(took, |mean| mean - mean / 4 + took / 4);
            self.mean.set(Some(mean));
        }
    }

    /// Returns whether this number of polls should be over soon.
    pub(crate) fn is_short(&self, polls: u64) -> bool {
        let kept = KEPT.as_nanos() as u64;
        let mean = self.mean.get();
        mean.is_some_and(|mean| mean.saturating_mul(polls) <= kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_follows_the_last_batches() {
        let batches = Batches::new();
        assert!(!batches.is_short(1));
        batches.record(Duration::from_micros(40), 4);
        assert!(batches.is_short(10) && !batches.is_short(11));
        batches.record(Duration::from_millis(1), 0); // The tasks were stolen.
        assert!(batches.is_short(10));
        batches.record(Duration::from_millis(1), 2);
        assert!(!batches.is_short(1));
        for _ in 0..32 {
            batches.record(Duration::from_micros(10), 1);
        }
        assert!(batches.is_short(9));
        batches.record(Duration::MAX, 1);
        assert!(!batches.is_short(1));
    }
}
