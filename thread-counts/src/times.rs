//! How many times were how long: a bucket for each power of two of nanoseconds.
//!
//! | bucket | holds times |
//! |---|---|
//! | 0 | of 0 ns |
//! | `i` | from 2^(i − 1) ns, of less than 2^i ns |
//! | the last, 39 | from 2³⁸ ns on |
use crate::Counter;
use alloc::{boxed::Box, vec::Vec};
use core::{fmt, time::Duration};

const BUCKETS: usize = 40;

fn bucket(took: Duration) -> usize {
    let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let bits = 64 - nanos.leading_zeros();
    (bits as usize).min(BUCKETS - 1)
}

/// Times that one thread records and any may read, as a [`Histogram`]. 320 bytes.
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
    /// Without any.
    pub fn new() -> Self {
        Self((0..BUCKETS).map(|_| Counter::new()).collect())
    }

    /// By the one writer, as a [`Counter`]'s.
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

/// How many times were how long: a bucket for each power of two of nanoseconds.
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
    /// Bucket `i` counts the times of less than 2ⁱ ns that are in no bucket before; the last also those that were longer. Empty, if nothing was added.
    pub fn buckets(&self) -> &[u64] {
        &self.buckets
    }

    /// Times in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// A time that this part of the times, from 0 to 1, did not reach: the end of a bucket, so at most twice the truth. `None` without times.
    pub fn quantile(&self, part: f64) -> Option<Duration> {
        let count = self.count();
        // As an integer, of whatever was asked for.
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

    /// Adds what a thread has recorded so far.
    pub fn add(&mut self, times: &Times) {
        self.buckets.resize(BUCKETS, 0);
        for (bucket, counter) in self.buckets.iter_mut().zip(&times.0) {
            *bucket += counter.get();
        }
    }
}
