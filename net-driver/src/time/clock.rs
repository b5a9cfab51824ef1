//! Ticks: the time in a wheel.
//!
//! A tick is 2¹⁴ ns, some 16 µs, so that the next 64 ticks, the wheel's lowest level, are about a
//! millisecond. A deadline is rounded up to a tick, and the present time is rounded down. So no
//! timer fires early, and the rounding makes a timer late by at most a tick. With the feature
//! `test-util` a tick is a nanosecond.
//!
//! Tick 0 is the time of the first use of this module, for all drivers of the process. So a timer's
//! tick is the same in each driver.
use super::Instant;
use std::{sync::OnceLock, time::Duration};

/// The last tick of a deadline. The two larger numbers are states of a timer that is in no wheel.
pub(crate) const LAST_TICK: u64 = u64::MAX - 2;
/// A tick is 2 to the power of this, in nanoseconds.
const TICK_BITS: u32 = if cfg!(feature = "test-util") { 0 } else { 14 };
/// No timer is due later than this tick, 584 years after the start. This limit keeps a deadline in
/// nanoseconds within 64 bits.
const FAR: u64 = if TICK_BITS == 0 {
    LAST_TICK
} else {
    u64::MAX >> TICK_BITS
};

/// Returns a span in ticks, rounded down.
pub(crate) const fn ticks(nanos: u64) -> u64 {
    nanos >> TICK_BITS
}

static START: OnceLock<std::time::Instant> = OnceLock::new();

/// Returns the tick of a deadline, rounded up.
#[inline]
pub(crate) fn tick_of(deadline: Instant) -> u64 {
    nanos(deadline).div_ceil(1 << TICK_BITS).min(FAR)
}

/// Returns the tick of the present time, rounded down.
#[inline]
pub(crate) fn tick_at(now: Instant) -> u64 {
    nanos(now) >> TICK_BITS
}

/// Returns how long it is from `now` until the start of a tick, or zero if that time has passed.
pub(crate) fn span_until(tick: u64, now: Instant) -> Duration {
    let at = tick.min(FAR) << TICK_BITS;
    Duration::from_nanos(at.saturating_sub(nanos(now)))
}

/// Sets the time of tick 0 to the present, unless it is set. A clock must not be paused before that
/// time: all times up to tick 0 are the same tick.
#[cfg(feature = "test-util")]
pub(crate) fn start() {
    START.get_or_init(std::time::Instant::now);
}

/// Returns the last time that a paused clock shows: one tick before [`FAR`], which stands for all
/// later deadlines.
#[cfg(feature = "test-util")]
pub(crate) fn end() -> std::time::Instant {
    time_of(FAR - 1)
}

/// The time that an advance leaves before the end of the clock, for the sleeps after it: 36 years.
#[cfg(feature = "test-util")]
const ROOM: Duration = Duration::from_nanos(1 << 60);

/// Returns by how much an advance by `span` moves a paused clock that shows `now`. An advance
/// leaves at least [`ROOM`], or else half of the time that is left. So later sleeps can end,
/// however often a test advances the clock without a limit.
#[cfg(feature = "test-util")]
pub(crate) fn limit_advance(now: std::time::Instant, span: Duration) -> Duration {
    let left = end().saturating_duration_since(now);
    span.min(left.saturating_sub(ROOM).max(left / 2))
}

/// Returns the time of a tick.
#[cfg(feature = "test-util")]
pub(crate) fn time_of(tick: u64) -> std::time::Instant {
    begun() + Duration::from_nanos(tick << TICK_BITS)
}

/// Returns the time from tick 0 to this one.
#[cfg(selvedge_sim)]
pub(crate) fn since_start(tick: u64) -> Duration {
    Duration::from_nanos(tick << TICK_BITS)
}

/// Returns the time of tick 0.
#[inline]
fn begun() -> std::time::Instant {
    sync_shim::time::epoch_or(|| *START.get_or_init(std::time::Instant::now))
}

/// Returns the nanoseconds from the start, limited to 64 bits.
#[inline]
fn nanos(at: Instant) -> u64 {
    let since = at.into_std().saturating_duration_since(begun());
    let seconds = since.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(u64::from(since.subsec_nanos()))
}
