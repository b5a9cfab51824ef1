//! Sleeps, timeouts and intervals, as in tokio.
pub use selvedge::time::*;

/// The longest sleep, of some 30 years. In tokio a longer one ends then, too. Tests with a paused
/// clock, which jumps to the end of a sleep, rely on such an end.
const LONGEST: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

/// Waits until `duration` is over, but for at most 30 years.
///
/// # Panics
/// The first poll panics if it has to wait where no runtime is current.
#[track_caller]
pub fn sleep(duration: Duration) -> Sleep {
    selvedge::time::sleep(duration.min(LONGEST))
}
