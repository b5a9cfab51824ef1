//! Sleeps, timeouts and intervals, as in tokio: each belongs to a runtime from the start.
pub use selvedge::time::*;

#[cfg(feature = "test-util")]
mod clock;

#[cfg(feature = "test-util")]
pub use clock::{advance, pause, resume};
use selvedge::checks::assert_may_sleep;

/// The longest sleep, of some 30 years. In tokio a longer one ends then, too. Tests with a paused
/// clock, which jumps to the end of a sleep, rely on such an end.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Waits until `duration` is over, but for at most 30 years.
///
/// # Panics
/// Outside of a runtime, and in one without `enable_time`.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    assert_may_sleep();
    selvedge::time::sleep(duration.min(LONGEST))
}

/// Waits until `deadline`.
///
/// # Panics
/// As [`sleep`].
#[track_caller]
pub fn sleep_until(deadline: Instant) -> Sleep {
    assert_may_sleep();
    selvedge::time::sleep_until(deadline)
}

/// Limits a future to `duration` from now, and to at most 30 years.
///
/// # Panics
/// As [`sleep`].
#[track_caller]
pub fn timeout<F: IntoFuture>(duration: Duration, future: F) -> Timeout<F::IntoFuture> {
    timeout_at(sleep(duration).deadline(), future)
}

/// Limits a future by a deadline.
///
/// # Panics
/// As [`sleep`].
#[track_caller]
pub fn timeout_at<F: IntoFuture>(deadline: Instant, future: F) -> Timeout<F::IntoFuture> {
    assert_may_sleep();
    selvedge::time::timeout_at(deadline, future)
}

/// Makes an interval, whose first tick is at once.
///
/// # Panics
/// If `period` is zero, and as [`sleep`].
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now(), period)
}

/// Makes an interval whose first tick is at `start`.
///
/// # Panics
/// If `period` is zero, and as [`sleep`].
#[track_caller]
pub fn interval_at(start: Instant, period: Duration) -> Interval {
    let interval = selvedge::time::interval_at(start, period);
    assert_may_sleep();
    interval
}
