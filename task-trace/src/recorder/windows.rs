//! The windows of a recorder that may take only a part of the time, and keeps a stated time.
//!
//! 1. In a *window* the recorder is on, and each lane may record a number of events. The lane that
//!    has recorded them ends the window.
//! 2. The next window begins once the events of one lane have cost no more than the allowed part of
//!    the time since the last window began: the *period*. If the period is over when a window ends,
//!    the next one begins at once.
//! 3. Otherwise the recorder pauses. While it does, an event costs the scheduler as much as while
//!    the recorder is off. The scheduler calls `Recorder::go_on` from time to time, which begins
//!    the next window when the period is over.
//! 4. Each lane has two rings. The *recent* one has the events of all windows. The *sparse* one has
//!    those of some windows: so few that it takes the stated time at least to overwrite them. If
//!    windows are rare, all of them are in both.
//! 5. While events are few, a window does not end by itself. So `Recorder::go_on` also ends a
//!    window that is not sparse, once the next sparse one may begin, and begins that one. The quiet
//!    time before a flood of events is then in a sparse window, which the flood does not overwrite.
//! 6. A capture has the events of all windows as far back as the recent rings of all workers go,
//!    and before that those of the sparse windows, as far back as the sparse rings of all workers
//!    go. The rest is a *gap* in all lanes. The end of a poll that begins in a pause, or that is in
//!    progress as a pause begins, is not recorded.
use super::{clock::Clock, ring::Ring};
use std::{
    collections::VecDeque,
    hint::black_box,
    time::{Duration, Instant},
};

/// The most events of a lane in a window: 64 KiB, about two milliseconds of a busy server.
const MOST: u64 = 2048;

/// The windows of each kind that a recorder remembers.
const REMEMBERED: usize = 1 << 14;

/// The rule of a recorder's windows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The events that a lane may record in a window.
    events: u64,
    /// The ticks from the begin of a window to that of the next one, at least.
    period: u64,
    /// The same for sparse windows.
    sparse_period: u64,
}

impl Rule {
    /// Returns the rule for two rings of `capacity` events each. The events of a lane may take
    /// `part` of the time, and the sparse ring keeps the events of the time `keep`.
    ///
    /// # Panics
    /// If `part` is not above 0 and up to 1.
    #[track_caller]
    pub(super) fn new(capacity: usize, part: f64, keep: Duration, clock: &Clock) -> Self {
        assert!(
            part > 0.0 && part <= 1.0,
            "the part of the time is above 0 and up to 1, not {part}"
        );
        let ticks = |seconds: f64| {
            let time = Duration::try_from_secs_f64(seconds);
            clock.ticks(time.unwrap_or(Duration::MAX))
        };
        let capacity = capacity as u64;
        let events = (capacity / 4).clamp(1, MOST);
        let cost = cost_of_event(clock).as_secs_f64() * events as f64;
        // The sparse ring may be in the middle of a window, whose events overwrite older ones.
        let windows = ((capacity - events) / events).max(1);
        Self {
            events,
            period: ticks(cost / part),
            sparse_period: ticks(keep.as_secs_f64() / windows as f64),
        }
    }
}

/// The events that each lane may record in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowed {
    pub(super) events: u64,
    /// The same for the sparse ring.
    pub(super) sparse: u64,
}

/// The state of a recorder's windows.
#[derive(Clone)]
pub(super) struct Windows {
    /// `None` if the recorder may take all of the time.
    rule: Option<Rule>,
    /// The tick at which the window in progress, or the last one, began.
    begun: u64,
    /// Whether that window is sparse.
    is_sparse: bool,
    /// The tick from which on a window is sparse.
    next_sparse: u64,
    /// The tick at which the recorder paused, if it does.
    paused_at: Option<u64>,
    /// The begins and ends of the windows, without the one in progress.
    recent: VecDeque<(u64, u64)>,
    /// Those of the sparse ones.
    sparse: VecDeque<(u64, u64)>,
}

impl Windows {
    pub(super) const fn new() -> Self {
        Self {
            rule: None,
            begun: 0,
            is_sparse: false,
            next_sparse: 0,
            paused_at: None,
            recent: VecDeque::new(),
            sparse: VecDeque::new(),
        }
    }

    /// Forgets the windows, and begins the first one.
    pub(super) fn start(&mut self, rule: Option<Rule>, now: u64) -> Allowed {
        // The room is allocated here, and no more of it under the lock of a recorder that is on.
        let room = rule.map_or(0, |_| REMEMBERED);
        *self = Self {
            rule,
            recent: VecDeque::with_capacity(room),
            sparse: VecDeque::with_capacity(room),
            ..Self::new()
        };
        self.begin(now)
    }

    fn begin(&mut self, now: u64) -> Allowed {
        self.begun = now;
        self.is_sparse = now >= self.next_sparse;
        if let Some(rule) = self.rule.filter(|_| self.is_sparse) {
            self.next_sparse = now.saturating_add(rule.sparse_period);
        }
        self.allowed()
    }

    /// Returns the events that a new lane may record.
    pub(super) fn allowed(&self) -> Allowed {
        let events = self.rule.map_or(u64::MAX, |rule| rule.events);
        let sparse = if self.is_sparse { events } else { 0 };
        Allowed { events, sparse }
    }

    /// Ends the window, as a lane has recorded its events.
    pub(super) fn end(&mut self, now: u64) -> Next {
        let Some(rule) = self.rule.filter(|_| self.paused_at.is_none()) else {
            return Next::Nothing;
        };
        self.remember(now);
        let until = self.begun.saturating_add(rule.period);
        if until <= now {
            return Next::Window(self.begin(now));
        }
        self.paused_at = Some(now);
        Next::Pause(until)
    }

    fn remember(&mut self, now: u64) {
        let window = (self.begun, now);
        push(&mut self.recent, window);
        if self.is_sparse {
            push(&mut self.sparse, window);
        }
    }

    /// Returns the tick from which on the window in progress gives way to a sparse one, or 0 if it
    /// does not.
    pub(super) fn due(&self) -> u64 {
        let Some(rule) = self.rule.filter(|_| !self.is_sparse) else {
            return 0;
        };
        let until = self.begun.saturating_add(rule.period);
        self.next_sparse.max(until).max(1)
    }

    /// Begins the next window: after a pause, or in place of the window in progress. Returns also
    /// whether the recorder had paused.
    pub(super) fn go_on(&mut self, now: u64) -> (Allowed, bool) {
        let paused = self.paused_at.take().is_some();
        if !paused {
            self.remember(now);
        }
        (self.begin(now), paused)
    }

    /// Returns the parts of the time from `since` to `now` that a capture has not, the oldest
    /// first. It has the events of all windows from the tick `cut` on, and those of the sparse ones
    /// from the tick `sparse_cut` on.
    pub(super) fn gaps(
        &self,
        since: u64,
        (sparse_cut, cut): (u64, u64),
        now: u64,
    ) -> Vec<(u64, u64)> {
        let open = self.paused_at.is_none().then_some((self.begun, now));
        let open_sparse = open.filter(|_| self.is_sparse);
        let sparse = self.sparse.iter().copied().chain(open_sparse);
        let sparse = sparse.map(|(begun, ended)| (begun.max(sparse_cut), ended.min(cut)));
        let recent = self.recent.iter().copied().chain(open);
        let recent = recent.map(|(begun, ended)| (begun.max(cut), ended));
        let mut gaps = Vec::new();
        let mut recorded = since;
        let windows = sparse.chain(recent).filter(|window| window.0 < window.1);
        for (begun, ended) in windows.chain([(now, now)]) {
            if begun > recorded {
                gaps.push((recorded, begun));
            }
            recorded = recorded.max(ended);
        }
        gaps
    }
}

fn push(windows: &mut VecDeque<(u64, u64)>, window: (u64, u64)) {
    if windows.len() == REMEMBERED {
        windows.pop_front();
    }
    windows.push_back(window);
}

/// The state after a window.
#[must_use]
pub(super) enum Next {
    /// The recorder has no windows, or pauses already.
    Nothing,
    /// A window.
    Window(Allowed),
    /// A pause until this tick.
    Pause(u64),
}

/// Measures the cost of an event.
///
/// The loop has its code and its ring in the cache. Where it took 22 ns for an event, loads that
/// spawn tasks, wake them or echo on sockets lost up to 110 ns for one, in caches that the rings
/// have filled among others. So the result is six times that of the loop.
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
    (shortest * 6 / EVENTS).max(Duration::from_nanos(1))
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    const RULE: Rule = Rule {
        events: 8,
        period: 100,
        sparse_period: 250,
    };
    const BOTH: Allowed = Allowed {
        events: 8,
        sparse: 8,
    };
    const RECENT: Allowed = Allowed {
        events: 8,
        sparse: 0,
    };

    /// Windows of 50 ticks, one each 100 ticks from tick 10 on. Every third one is sparse.
    fn windows(count: u64) -> Windows {
        let mut windows = Windows::new();
        assert_eq!(windows.start(Some(RULE), 10), BOTH);
        for n in 0..count {
            let begun = 10 + n * 100;
            assert!(matches!(windows.end(begun + 50), Next::Pause(until) if until == begun + 100));
            let next = if (n + 1) % 3 == 0 { BOTH } else { RECENT };
            assert_eq!(windows.go_on(begun + 100), (next, true));
        }
        windows
    }

    #[test]
    fn window_that_ends_early_is_followed_by_a_gap() {
        let mut windows = windows(1);
        assert_eq!(windows.gaps(10, (10, 10), 120), [(60, 110)]);
        assert!(matches!(windows.end(215), Next::Window(RECENT)));
        assert_eq!(windows.gaps(10, (10, 10), 220), [(60, 110)]);
        assert!(matches!(windows.end(230), Next::Pause(315)));
        assert!(matches!(windows.end(231), Next::Nothing));
        assert_eq!(windows.gaps(10, (10, 10), 240), [(60, 110), (230, 240)]);
    }

    #[test]
    fn only_sparse_windows_count_before_the_cut() {
        let windows = windows(7);
        // The windows begin at 10, 110, …, 710. Those at 10, 310 and 610 are sparse.
        let gaps = windows.gaps(10, (10, 530), 720);
        assert_eq!(gaps, [(60, 310), (360, 530), (560, 610), (660, 710)]);
        let gaps = windows.gaps(10, (10, 335), 720);
        assert_eq!(gaps[..2], [(60, 310), (360, 410)]);
        let gaps = windows.gaps(10, (10, u64::MAX), 720);
        assert_eq!(gaps.last(), Some(&(660, 720)));
        // The sparse rings have lost the window that begins at 10, and a part of the next one.
        assert_eq!(windows.gaps(10, (330, 530), 720)[0], (10, 330));
    }

    #[test]
    fn quiet_window_gives_way_to_a_sparse_one() {
        let mut windows = Windows::new();
        assert_eq!(windows.start(Some(RULE), 10), BOTH);
        assert_eq!(windows.due(), 0);
        assert!(matches!(windows.end(60), Next::Pause(110)));
        assert_eq!(windows.go_on(200), (RECENT, true));
        // The next sparse one may begin at 260, but windows begin at least 100 ticks apart.
        assert_eq!(windows.due(), 300);
        assert_eq!(windows.go_on(310), (BOTH, false));
        assert_eq!(windows.due(), 0);
        assert_eq!(windows.gaps(10, (10, 10), 400), [(60, 200)]);
        assert_eq!(windows.gaps(10, (10, 400), 400), [(60, 310)]);
    }

    #[test]
    fn recorder_without_a_rule_has_no_windows() {
        let mut windows = Windows::new();
        let all = windows.start(None, 10);
        assert_eq!((all.events, all.sparse), (u64::MAX, u64::MAX));
        assert!(matches!(windows.end(60), Next::Nothing));
        assert!(windows.gaps(10, (10, 10), 70).is_empty());
    }

    #[test]
    fn oldest_windows_are_forgotten() {
        let windows = windows(REMEMBERED as u64 + 1);
        assert_eq!(windows.recent.len(), REMEMBERED);
        assert_eq!(windows.recent[0], (110, 160));
    }

    #[test]
    fn rule_holds_for_all_sizes_and_times() {
        let clock = Clock::new();
        std::thread::sleep(Duration::from_millis(2));
        let second = Duration::from_secs(1);
        for capacity in [1, 2, 8, 1 << 10, 1 << 14, 1 << 25] {
            let rule = Rule::new(capacity, 1.0, second, &clock);
            let windows = (capacity as u64).saturating_sub(rule.events) / rule.events;
            let kept = rule.sparse_period.saturating_mul(windows.max(1));
            // The tick's length is an estimate.
            assert!(
                kept >= clock.ticks(second) / 100 * 98,
                "{capacity}: {rule:?}"
            );
            assert!(rule.events >= 1 && rule.events <= MOST);
        }
        let rule = Rule::new(1 << 14, 1e-300, Duration::MAX, &clock);
        assert!(rule.period > u64::MAX / 4 && rule.sparse_period > u64::MAX / 4);
        let rule = Rule::new(1 << 14, 1.0, Duration::ZERO, &clock);
        assert_eq!(rule.sparse_period, 0);
    }
}
