//! Histograms of durations: a bucket for each power of two of nanoseconds.
//!
//! | bucket | holds times of |
//! |---|---|
//! | 0 | 0 ns |
//! | `i` | at least 2^(i − 1) ns and less than 2^i ns |
//! | the last, 39 | 2³⁸ ns and more |
use crate::Counter;
use alloc::{boxed::Box, vec::Vec};
use core::{fmt, time::Duration};

const BUCKETS: usize = 40;

fn bucket(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let bits = 64 - nanos.leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

/// Durations that one thread records and any thread may read, as a [`Histogram`]. 320 bytes.
///
/// ```
/// use std::time::Duration;
/// use thread_counts::{Histogram, Times};
///
/// let times = Times::new();
/// times.record(Duration::from_micros(3));
/// let mut histogram = Histogram::default();
/// histogram.add(&times);
/// assert_eq!(histogram.quantile(1.0), Some(Duration::from_nanos(4096)));
/// ```
pub struct Times(Box<[Counter]>);

impl Times {
    /// Makes a recorder without any durations.
    pub fn new() -> Self {
        Self((0..BUCKETS).map(|_| Counter::new()).collect())
    }

    /// Records a duration. Called by the one writer, as [`Counter`]'s `add` is.
    #[inline]
    pub fn record(&self, took: Duration) {
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

/// A histogram of durations: a bucket for each power of two of nanoseconds.
///
/// ```
/// use std::time::Duration;
/// use thread_counts::{Histogram, Times};
///
/// let times = Times::new();
/// (1..=8).for_each(|ns| times.record(Duration::from_nanos(ns)));
/// let mut histogram = Histogram::default();
/// assert_eq!(histogram.quantile(0.5), None);
/// histogram.add(&times);
/// assert_eq!(histogram.count(), 8);
/// assert_eq!(histogram.buckets()[..5], [0, 1, 2, 4, 1]);
/// assert_eq!(histogram.quantile(0.5), Some(Duration::from_nanos(8)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Histogram {
    buckets: Vec<u64>,
}

impl Histogram {
    /// The buckets. Bucket `i` counts the times of less than 2ⁱ ns that no earlier bucket counts;
    /// the last one also counts all longer times. Empty if nothing was recorded.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// The number of times in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// An upper bound of the given quantile, `part` from 0 to 1: the end of a bucket, so at most
    /// twice the exact value, unless that is in the last bucket. `None` without times.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        // As an integer, for any argument.
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
    pub fn add(&mut self, times: &Times) {
        self.buckets.resize(BUCKETS, 0);
        for (bucket, counter) in self.buckets.iter_mut().zip(&times.0) {
            *bucket += counter.get();
        }
    }
}
