//! Histograms of durations: a bucket for each power of two of nanoseconds.
//!
//! | bucket | holds times of |
//! |---|---|
//! | 0 | 0 ns |
//! | `i` | at least 2^(i − 1) ns and less than 2^i ns |
//! | the last, 39 | 2³⁸ ns and more |
use super::counter::Counter;
use std::{fmt, time::Duration};

const BUCKETS: usize = 40;

fn bucket(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let bits = 64 - nanos.leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

/// Durations that one thread records and any thread may read, as a [`PollTimes`]. The buckets take
/// 320 bytes of the heap.
pub(crate) struct Times(Box<[Counter]>);

impl Times {
    /// Makes a recorder without any durations.
    pub(crate) fn new() -> Self {
        Self((0..BUCKETS).map(|_| Counter::new()).collect())
    }

    /// Records a duration. Only the one thread that writes these counters calls this, as with
    /// [`Counter::add`].
    #[inline]
    pub(crate) fn record(&self, took: Duration) {
        self.0[bucket(took)].add(1);
    }
}

impl Default for Times {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(Counter::get))
            .finish()
    }
}

/// A histogram of durations: a bucket for each power of two of nanoseconds. See
/// [`Builder::measure_polls`](crate::Builder::measure_polls).
///
/// ```
/// use std::time::Duration;
///
/// let runtime = selvedge_executor::Builder::new().workers(1).measure_polls(true).build()?;
/// runtime.block_on(runtime.spawn(async {})).unwrap();
/// let times: selvedge_executor::PollTimes = runtime.snapshot().poll_times;
/// assert_eq!((times.count(), times.buckets().iter().sum::<u64>()), (1, 1));
/// assert!(times.quantile(1.0).unwrap() > Duration::ZERO);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "metrics", derive(serde::Serialize))]
pub struct PollTimes {
    buckets: Vec<u64>,
}

impl PollTimes {
    /// The buckets. Bucket 0 counts the times of 0 ns. Bucket `i` counts the times of at least
    /// 2^(i − 1) ns and less than 2^i ns. The last bucket also counts all longer times. There are
    /// no buckets if the times were not measured.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// The number of times in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The end of the bucket that holds the given quantile. `part` is a number from 0 to 1. `None`
    /// if there are no times.
    ///
    /// The end is above the exact value, and at most twice that value. There are two exceptions.
    /// For 0 ns the end is 1 ns. For the last bucket it is 2³⁹ ns, and the exact value may be
    /// longer.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        // `wanted` is the product, rounded up. Each cast to `u64` accepts any number: it saturates,
        // and turns NaN into 0.
        let part = count as f64 * part;
        let whole = part as u64;
        let wanted = whole.saturating_add(u64::from(part > whole as f64));
        let wanted = wanted.clamp(1, count.max(1));
        let mut before = 0;
        let at = self.buckets.iter().position(|times| {
            before += times;
            before >= wanted
        })?;
        Some(Duration::from_nanos(1 << at))
    }

    /// Adds the times that a thread has recorded so far.
    pub(crate) fn add(&mut self, times: &Times) {
        self.buckets.resize(BUCKETS, 0);
        for (bucket, counter) in self.buckets.iter_mut().zip(&times.0) {
            *bucket += counter.get();
        }
    }
}
