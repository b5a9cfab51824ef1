//! The windows of a recorder that may take only a part of the time.
//!
//! 1. In a *window* the recorder is on, and each lane may record [`WINDOW`] events. The lane that
//!    has recorded them ends the window.
//! 2. The next window begins once the events of one lane have cost no more than the allowed part of
//!    the time since the last window began: the *period*. If the period is over when a window ends,
//!    the next one begins at once.
//! 3. Otherwise the recorder pauses. While it does, an event costs the scheduler as much as while
//!    the recorder is off. The scheduler calls `Recorder::go_on` from time to time, which begins
//!    the next window when the period is over.
//! 4. A pause leaves a *gap* in all lanes. The end of a poll that begins in a gap, or that is in
//!    progress as a gap begins, is not recorded.
use super::{clock::Clock, ring::Ring};
use std::{
    collections::VecDeque,
    hint::black_box,
    time::{Duration, Instant},
};

/// The events of a lane in a window: 64 KiB, about two milliseconds of a busy server.
pub(super) const WINDOW: u64 = 2048;

/// The gaps that a recorder remembers: those of half a minute, if periods are 2 ms.
const GAPS: usize = 1 << 14;

/// The state of a recorder's windows.
pub(super) struct Windows {
    /// The ticks of a period. `None` if the recorder may take all of the time.
    period: Option<u64>,
    /// The tick at which the window began.
    begun: u64,
    /// The tick at which the recorder paused, if it does.
    paused_at: Option<u64>,
    gaps: VecDeque<(u64, u64)>,
}

impl Windows {
    pub(super) const fn new() -> Self {
        Self {
            period: None,
            begun: 0,
            paused_at: None,
            gaps: VecDeque::new(),
        }
    }

    /// Forgets the gaps, and begins a window. Returns the events that each lane may record.
    pub(super) fn start(&mut self, period: Option<u64>, now: u64) -> u64 {
        self.period = period;
        self.paused_at = None;
        self.gaps.clear();
        self.begin(now)
    }

    /// Begins a window. Returns the events that each lane may record.
    fn begin(&mut self, now: u64) -> u64 {
        self.begun = now;
        self.allowed()
    }

    /// Returns the events that a new lane may record.
    pub(super) fn allowed(&self) -> u64 {
        self.period.map_or(u64::MAX, |_| WINDOW)
    }

    /// Ends the window, as a lane has recorded its events.
    pub(super) fn end(&mut self, now: u64) -> Next {
        let Some(period) = self.period.filter(|_| self.paused_at.is_none()) else {
            return Next::Nothing;
        };
        let until = self.begun.saturating_add(period);
        if until <= now {
            return Next::Window(self.begin(now));
        }
        self.paused_at = Some(now);
        Next::Pause(until)
    }

    /// Begins the next window, if the recorder pauses. Returns the events that each lane may
    /// record.
    pub(super) fn go_on(&mut self, now: u64) -> Option<u64> {
        let paused_at = self.paused_at.take()?;
        if self.gaps.len() == GAPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back((paused_at, now));
        Some(self.begin(now))
    }

    /// Ends the pause, if there is one. No window begins.
    pub(super) fn stop(&mut self, now: u64) {
        self.go_on(now);
    }

    /// Returns the gaps up to now, the oldest first.
    pub(super) fn gaps(&self, now: u64) -> Vec<(u64, u64)> {
        let open = self.paused_at.map(|at| (at, now));
        self.gaps.iter().copied().chain(open).collect()
    }
}

/// The state after a window.
#[must_use]
pub(super) enum Next {
    /// The recorder has no windows, or pauses already.
    Nothing,
    /// A window, in which each lane may record this many events.
    Window(u64),
    /// A pause until this tick.
    Pause(u64),
}

/// Returns the period in which the events of a window cost this part of the time.
///
/// # Panics
/// If `part` is not above 0 and up to 1.
#[track_caller]
pub(super) fn period(part: f64, clock: &Clock) -> u64 {
    assert!(
        part > 0.0 && part <= 1.0,
        "the part of the time is above 0 and up to 1, not {part}"
    );
    let window = cost_of_event(clock).as_secs_f64() * WINDOW as f64;
    clock.ticks(Duration::from_secs_f64((window / part).min(1e6)))
}

/// Measures the cost of an event.
///
/// The loop has its code and its ring in the cache. Among the work of tasks an event took twice as
/// long, up to 43 ns where it took 22 ns in the loop. So the result is twice that of the loop.
fn cost_of_event(clock: &Clock) -> Duration {
    const EVENTS: u32 = 256;
    let ring = Ring::<4>::new(EVENTS as usize);
    let run = || {
        let begun = Instant::now();
        for n in 0..EVENTS {
            black_box(&ring).push([clock.now(), u64::from(n), 0, 0]);
        }
        begun.elapsed()
    };
    // The system may suspend this thread during some of the runs.
    let shortest = (0..5).map(|_| run()).min().unwrap_or_default();
    (shortest * 2 / EVENTS).max(Duration::from_nanos(1))
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn window_that_ends_early_is_followed_by_a_gap() {
        let mut windows = Windows::new();
        assert_eq!(windows.start(Some(100), 10), WINDOW);
        assert!(matches!(windows.end(60), Next::Pause(110)));
        assert!(matches!(windows.end(61), Next::Nothing));
        assert_eq!(windows.gaps(70), [(60, 70)]);
        assert_eq!(windows.go_on(115), Some(WINDOW));
        assert_eq!(windows.go_on(116), None);
        assert!(matches!(windows.end(215), Next::Window(WINDOW)));
        assert_eq!(windows.gaps(220), [(60, 115)]);
    }

    #[test]
    fn recorder_without_a_limit_has_no_windows() {
        let mut windows = Windows::new();
        assert_eq!(windows.start(None, 10), u64::MAX);
        assert!(matches!(windows.end(60), Next::Nothing));
        assert!(windows.gaps(70).is_empty());
    }

    #[test]
    fn old_gaps_are_forgotten() {
        let mut windows = Windows::new();
        windows.start(Some(10), 0);
        for n in 0..=GAPS as u64 {
            assert!(matches!(windows.end(n * 10), Next::Pause(_)));
            windows.go_on(n * 10 + 1);
            windows.begun = n * 10 + 10;
        }
        let gaps = windows.gaps(0);
        assert_eq!((gaps.len(), gaps[0]), (GAPS, (10, 11)));
    }

    #[test]
    fn smaller_part_of_the_time_has_a_longer_period() {
        let clock = Clock::new();
        std::thread::sleep(Duration::from_millis(2));
        let (all, little) = (period(1.0, &clock), period(1e-300, &clock));
        assert!(all > 0 && little > 1_000 * all);
    }
}
