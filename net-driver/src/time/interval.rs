//! `interval`: ticks that are one period apart.
use super::{Instant, Sleep, sleep_until};
use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

/// How late a tick may be before it counts as missed.
const TOLERANCE: Duration = Duration::from_millis(5);

/// Makes an interval, whose first tick is at once.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     let begun = time::Instant::now();
///     let mut interval = time::interval(Duration::from_millis(2));
///     for _ in 0..3 {
///         interval.tick().await;
///     }
///     assert!(begun.elapsed() >= Duration::from_millis(4));
/// });
/// ```
///
/// # Panics
/// If `period` is zero.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Makes an interval whose first tick is at `start`.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     let start = time::Instant::now() + Duration::from_millis(1);
///     let mut interval = time::interval_at(start, Duration::from_millis(2));
///     assert_eq!(interval.tick().await, start);
/// });
/// ```
///
/// # Panics
/// If `period` is zero.
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    assert!(
        !period.is_zero(),
        "the period of an interval must not be zero"
    );
    Interval {
        sleep: Box::pin(sleep_until(start)),
        period,
        missed: MissedTickBehavior::Burst,
    }
}

/// The schedule of an [`Interval`] after a tick that comes more than 5 ms late.
///
/// Say that ticks are due at 0, 10, 20, … ms, and that the tick due at 10 ms comes at 35 ms:
///
/// | behaviour | the next ticks are at (ms) |
/// |---|---|
/// | `Burst` | 35, 35, 40, 50 |
/// | `Delay` | 45, 55, 65 |
/// | `Skip` | 40, 50, 60 |
///
/// ```
/// use net_driver::time::{MissedTickBehavior, interval};
///
/// let mut interval = interval(std::time::Duration::from_millis(10));
/// assert_eq!(interval.missed_tick_behavior(), MissedTickBehavior::Burst);
/// interval.set_missed_tick_behavior(MissedTickBehavior::Skip);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissedTickBehavior {
    /// The missed ticks come at once, until the interval is on time again.
    #[default]
    Burst,
    /// The next tick comes a period after the late one.
    Delay,
    /// The next tick comes at the next time at which a tick would have been due.
    Skip,
}

impl MissedTickBehavior {
    /// Returns when the next tick is due, after a tick that was due at `due` and came too late, at
    /// `now`.
    fn next(self, due: Instant, now: Instant, period: Duration) -> Instant {
        match self {
            Self::Burst => due.after(period),
            Self::Delay => now.after(period),
            Self::Skip => {
                let since = now.duration_since(due).as_nanos() % period.as_nanos();
                // The remainder is below the period, so it fits into a `Duration`.
                let seconds = (since / 1_000_000_000) as u64;
                let since = Duration::new(seconds, (since % 1_000_000_000) as u32);
                now.after(period - since)
            }
        }
    }
}

/// Ticks at multiples of a period: see [`interval`].
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     let mut interval: time::Interval = time::interval(Duration::from_secs(60));
///     assert_eq!(interval.period(), Duration::from_secs(60));
///     interval.set_missed_tick_behavior(time::MissedTickBehavior::Skip);
///     assert_eq!(interval.missed_tick_behavior(), time::MissedTickBehavior::Skip);
///     let first = interval.tick().await; // At once.
///     interval.reset_immediately();
///     assert!(interval.tick().await >= first);
///     interval.reset_after(Duration::from_millis(1));
///     assert!(interval.tick().await >= first + Duration::from_millis(1));
///     let soon = time::Instant::now() + Duration::from_millis(1);
///     interval.reset_at(soon);
///     assert_eq!(interval.tick().await, soon);
///     interval.reset(); // The next tick is a minute from now.
///     let next = time::timeout(Duration::from_millis(1), interval.tick());
///     assert!(next.await.is_err());
/// });
/// ```
pub struct Interval {
    sleep: Pin<Box<Sleep>>,
    period: Duration,
    missed: MissedTickBehavior,
}

impl Interval {
    /// Waits for the next tick. Returns the time at which the tick was due.
    ///
    /// The future may be dropped early: the next call then returns the tick.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|cx| self.poll_tick(cx)).await
    }

    /// Polls for the next tick: see [`tick`](Self::tick).
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{future::poll_fn, time::Duration};
    ///
    /// let mut interval = time::interval(Duration::from_secs(60));
    /// let tick = poll_fn(|cx| interval.poll_tick(cx));
    /// Driver::new(1).park(0).block_on(tick);
    /// ```
    pub fn poll_tick(&mut self, cx: &mut Context<'_>) -> Poll<Instant> {
        ready!(self.sleep.as_mut().poll(cx));
        let (due, now) = (self.sleep.deadline(), Instant::now());
        let next = if now > due.after(TOLERANCE) {
            self.missed.next(due, now, self.period)
        } else {
            due.after(self.period)
        };
        self.sleep.as_mut().reset(next);
        Poll::Ready(due)
    }

    /// Starts anew: the next tick comes a period from now.
    pub fn reset(&mut self) {
        self.reset_at(Instant::now().after(self.period));
    }

    /// Starts anew: the next tick comes at once.
    pub fn reset_immediately(&mut self) {
        self.reset_at(Instant::now());
    }

    /// Starts anew: the next tick comes after this span.
    pub fn reset_after(&mut self, span: Duration) {
        self.reset_at(Instant::now().after(span));
    }

    /// Starts anew: the next tick comes at `deadline`, and the later ticks at multiples of the
    /// period after it.
    pub fn reset_at(&mut self, deadline: Instant) {
        self.sleep.as_mut().reset(deadline);
    }

    /// Returns what happens after a tick that comes too late.
    pub fn missed_tick_behavior(&self) -> MissedTickBehavior {
        self.missed
    }

    /// Sets what happens after a tick that comes too late. `Burst` by default.
    pub fn set_missed_tick_behavior(&mut self, behavior: MissedTickBehavior) {
        self.missed = behavior;
    }

    /// Returns the period.
    pub fn period(&self) -> Duration {
        self.period
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval")
            .field("next", &self.sleep.deadline())
            .field("period", &self.period)
            .field("missed", &self.missed)
            .finish()
    }
}
