//! `Spacing`: how long the poller leaves timers that are due shortly after each other, so that one
//! wake of its thread serves several of them.
//!
//! A wake costs a few microseconds of processor time, as much as some 20 tasks that a timer wakes.
//! So the poller waits for more timers to come due. Its spacing is one of these:
//!
//! | timers fire | the spacing is |
//! |---|---|
//! | for the first time after a [`PAUSE`], and until a [`CLUSTER`]'s time after that | [`SHORT`] |
//! | later in the first [`WINDOW`] after a pause | [`MEDIUM`] |
//! | less often than once a tick (61,000 in a second), in the last window | [`MEDIUM`] |
//! | more often | the time in which [`BATCH`] of them come due, from [`MEDIUM`] to [`LONG`] |
//!
//! So a cluster of timers that are due together, and then none for a while, fires almost on time:
//! its few wakes cost little. The timers of an even stream are late by up to the spacing. The rate
//! of a stream is that of a whole window: the last timers of a cluster come a few in a short time,
//! and would look like a dense stream.
use super::clock;
use sync_shim::{
    atomic::{AtomicU64, Ordering::Relaxed},
    count::shared,
};

/// 33 µs, in ticks.
const SHORT: u64 = clock::ticks(1 << 15);
/// 131 µs, in ticks.
const MEDIUM: u64 = clock::ticks(1 << 17);
/// 1,049 µs, in ticks.
const LONG: u64 = clock::ticks(1 << 20);
/// The time after a pause in which a cluster of timers may come due together: 1,049 µs, in ticks.
const CLUSTER: u64 = LONG;
/// The time without a firing that ends a stream: 2,097 µs, in ticks. A stream whose spacing is
/// [`LONG`] must not seem to pause, so a pause is longer.
const PAUSE: u64 = 2 * LONG;
/// The time over which the rate of a stream is measured: 17 ms, in ticks.
const WINDOW: u64 = clock::ticks(1 << 24);
/// The number of timers that one wake is to fire if more than one comes due in a tick.
const BATCH: u64 = 128;
/// 16 µs, in ticks: one tick, but for the feature `test-util`.
const DENSE: u64 = clock::ticks(1 << 14);

/// Keeps what the last firings say about the next ones. The threads that fire timers at the same
/// time may overwrite each other's values: all of them are hints, and a wrong one makes a timer
/// late by [`LONG`] at most.
pub(crate) struct Spacing {
    /// The tick of the last firing.
    fired_at: AtomicU64,
    /// The tick of the last firing that came after a [`PAUSE`].
    resumed_at: AtomicU64,
    /// The tick at which the present window began.
    window: AtomicU64,
    /// The number of timers that have fired in the present window.
    fired: AtomicU64,
    spacing: AtomicU64,
}

impl Spacing {
    pub(crate) fn new() -> Self {
        Self {
            fired_at: shared(AtomicU64::new(0)),
            resumed_at: AtomicU64::new(0),
            window: AtomicU64::new(0),
            fired: AtomicU64::new(0),
            spacing: AtomicU64::new(MEDIUM),
        }
    }

    /// Returns the tick of the last firing.
    pub(crate) fn fired_at(&self) -> u64 {
        // Ordering: Relaxed: a hint.
        self.fired_at.load(Relaxed)
    }

    /// Returns the tick until which a park for this deadline lasts.
    pub(crate) fn park_until(&self, next: u64) -> u64 {
        let fired_at = self.fired_at();
        if next <= fired_at {
            return next; // The last firing has left timers that were due.
        }
        // Ordering: Relaxed: a hint.
        let resumed_at = self.resumed_at.load(Relaxed);
        let spacing = if fired_at.saturating_sub(resumed_at) < CLUSTER {
            SHORT
        } else {
            // Ordering: Relaxed: a hint.
            self.spacing.load(Relaxed)
        };
        next.max(fired_at.saturating_add(spacing))
    }

    /// Records a firing of this many timers.
    pub(crate) fn record_firing(&self, now: u64, fired: u64) {
        // Ordering: Relaxed, as in `park_until`: all of these are hints.
        let since = now.saturating_sub(self.fired_at.swap(now, Relaxed));
        if since >= PAUSE {
            // Ordering: Relaxed, as above.
            self.resumed_at.store(now, Relaxed);
            return self.begin_window(now, MEDIUM);
        }
        // Ordering: Relaxed, as above.
        let window = now.saturating_sub(self.window.load(Relaxed));
        if window >= WINDOW {
            // Ordering: Relaxed, as above.
            let fired = self.fired.load(Relaxed).saturating_add(fired);
            self.begin_window(now, choose(window, fired));
        } else {
            // Ordering: Relaxed, as above.
            self.fired.fetch_add(fired, Relaxed);
        }
    }

    fn begin_window(&self, now: u64, spacing: u64) {
        // Ordering: Relaxed, as in `park_until`.
        self.window.store(now, Relaxed);
        // Ordering: Relaxed, as above.
        self.fired.store(0, Relaxed);
        // Ordering: Relaxed, as above.
        self.spacing.store(spacing, Relaxed);
    }
}

/// Returns the spacing of a stream of which `fired` timers have fired within `window` ticks.
fn choose(window: u64, fired: u64) -> u64 {
    let is_dense = fired.saturating_mul(DENSE) >= window;
    if is_dense {
        let batch = window.saturating_mul(BATCH) / fired.max(1);
        batch.clamp(MEDIUM, LONG)
    } else {
        MEDIUM
    }
}

#[cfg(test)]
mod tests {
    use super::{BATCH, CLUSTER, DENSE, LONG, MEDIUM, PAUSE, SHORT, Spacing, WINDOW, choose};

    /// Fires `fired` timers every `spacing` ticks, for the time `span` from `from` on. Returns the
    /// tick of the last firing.
    fn fire(spacing: &Spacing, from: u64, span: u64, every: u64, fired: u64) -> u64 {
        let ticks = (from..from + span).step_by(every as usize);
        ticks.fold(from, |_, now| {
            spacing.record_firing(now, fired);
            now
        })
    }

    /// Returns the spacing after the firing at `now`.
    fn after(spacing: &Spacing, now: u64) -> u64 {
        spacing.park_until(now + 1) - now
    }

    /// Fails if a cluster of timers after a pause waits for the spacing of a stream.
    #[test]
    fn cluster_after_a_pause_gets_the_short_spacing() {
        let spacing = Spacing::new();
        for cluster in 1..4 {
            let begun = cluster * (WINDOW + PAUSE);
            let last = fire(&spacing, begun, CLUSTER, SHORT, 100 * DENSE);
            assert_eq!(after(&spacing, last), SHORT);
            let last = fire(&spacing, begun + CLUSTER, LONG, MEDIUM, 100 * DENSE);
            assert_eq!(after(&spacing, last), MEDIUM);
        }
    }

    /// Fails if timers that are late already wait for the spacing.
    #[test]
    fn deadline_that_has_passed_is_not_put_off() {
        let spacing = Spacing::new();
        let last = fire(&spacing, WINDOW, 3 * WINDOW, MEDIUM, 1);
        assert_eq!(spacing.park_until(last), last);
        assert_eq!(spacing.park_until(last + LONG), last + LONG);
        assert_eq!(after(&spacing, last), MEDIUM);
    }

    /// Fails if a dense stream costs more wakes than one for each `BATCH` timers, or if a firing
    /// that is late by the spacing ends the stream.
    #[test]
    fn dense_stream_gets_a_spacing_for_a_batch() {
        let spacing = Spacing::new();
        let last = fire(&spacing, WINDOW, 3 * WINDOW, LONG, 2 * LONG / DENSE);
        assert_eq!(after(&spacing, last), LONG);
        assert_eq!(choose(WINDOW, WINDOW / DENSE - 1), MEDIUM);
        assert_eq!(choose(WINDOW, WINDOW / DENSE), LONG);
        assert_eq!(choose(WINDOW, WINDOW / (4 * MEDIUM) * BATCH), 4 * MEDIUM);
        assert_eq!(choose(WINDOW, u64::MAX), MEDIUM);
        assert_eq!(choose(0, 0), MEDIUM);
    }
}
