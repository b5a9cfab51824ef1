//! The delays before the restarts of a child.
use std::time::Duration;

/// How long a supervisor waits before a restart.
///
/// ```
/// use process_scheduler::Backoff;
/// use std::time::Duration;
///
/// let backoff = Backoff::new(Duration::from_millis(10), 2, Duration::from_secs(1)).jitter(0.0);
/// assert_eq!(backoff.delay(0, 0.5), Duration::from_millis(10));
/// assert_eq!(backoff.delay(3, 0.5), Duration::from_millis(80));
/// assert_eq!(backoff.delay(99, 0.5), Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backoff {
    first: Duration,
    factor: u32,
    longest: Duration,
    /// The largest change of a delay by the jitter, as a fraction of the delay: from 0 to 1.
    jitter: f64,
}

impl Backoff {
    /// Makes a backoff whose first delay is `first`. Each later delay is `factor` times as long as
    /// the one before, up to `longest`. Jitter then makes a delay up to a tenth longer or shorter.
    pub fn new(first: Duration, factor: u32, longest: Duration) -> Self {
        Self {
            first,
            factor,
            longest,
            jitter: 0.1,
        }
    }

    /// Sets by which fraction of itself a delay may be longer or shorter: 0.1 by default.
    pub fn jitter(mut self, fraction: f64) -> Self {
        self.jitter = fraction.clamp(0.0, 1.0);
        self
    }

    /// Returns the delay after this many restarts in a row. `random`, from 0 to 1, chooses between
    /// the shortest and the longest delay that the jitter allows.
    pub fn delay(&self, restarts: u32, random: f64) -> Duration {
        let factor = self.factor.checked_pow(restarts).unwrap_or(u32::MAX);
        let delay = self.first.saturating_mul(factor).min(self.longest);
        let scale = 1.0 + self.jitter * (2.0 * random.clamp(0.0, 1.0) - 1.0);
        Duration::try_from_secs_f64(delay.as_secs_f64() * scale).unwrap_or(delay)
    }
}

impl Default for Backoff {
    /// Returns a backoff whose first delay is a second. Each later delay is twice as long as the
    /// one before, up to 90 seconds.
    fn default() -> Self {
        Self::new(Duration::from_secs(1), 2, Duration::from_secs(90))
    }
}
