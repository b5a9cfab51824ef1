//! The watch: a sleeper that checks, at intervals, places for which no push notifies.
//!
//! A scheduler may have places that only one worker empties, such as a LIFO slot. The places are
//! filled so often that it costs too much to notify each time. So one sleeper, the *watcher*,
//! *looks* at all of these places now and then. A thread that fills an empty place is a *filler*.
//!
//! # States
//!
//! | state | watcher wanted | watcher | sleeps |
//! |---|---|---|---|
//! | *off* | no | none | no sleep has a limit |
//! | *wanted* | yes | none | the next sleeper becomes the watcher |
//! | *watched* | yes | one | each sleep of the watcher has a limit, and the watcher then looks |
//! | *leaving* | no | none | as *off*, but the last watcher sleeps with a limit and looks once more |
//!
//! # Rules
//!
//! 1. A worker that goes to sleep becomes the watcher if one is wanted and there is none.
//! 2. A filler that sees no watcher requests one and notifies. Unless a worker is searching, this
//!    wakes a sleeper, which becomes the watcher unless it finds work. So no sleep has a limit
//!    before a place is filled.
//! 3. A watcher that wakes for work ends its watch. Notifiers choose it last of the sleepers in its
//!    mask. The last searcher that finds work checks whether a watcher is wanted and there is none.
//!    If so, and if a place is filled, the searcher wakes another sleeper.
//! 4. Once several looks in a row found no filled place, the watcher gives up: it withdraws the
//!    request for a watcher, and looks once more after that. If it is notified before that look, it
//!    requests a watcher. If its sleep ends for another reason, the last look may come in its next
//!    sleep. The worker then looks as it wakes, too, as the next sleep may be far.
//! 5. A worker's next watch may continue where its last watch stopped, by its [`WatchState`], which
//!    also has the time of the last look. So the watcher looks once an interval has passed, however
//!    many sleeps there were in it, and events that end each sleep do not keep the watch from its
//!    end.
//!
//! # Why no filled place is forgotten
//!
//! 1. A filler that saw a watcher relies on it. If that watcher gives up, its last look comes an
//!    interval later and sees the place (rule 4), with the exception below.
//! 2. A filler that saw no watcher has requested one. The request is not lost in any of three
//!    cases: the worker that was woken for it found work, a worker was searching at the time, or a
//!    watcher left for work. Each of these workers looks for filled places if it stops as the last
//!    searcher (rule 3).
//! 3. Once the watch is off, the scheduler has no wake-ups at all until a place is filled (rule 2).
//!
//! # What a watch may miss
//!
//! A filler fills its place and then checks for a watcher, without a fence in between: a fence
//! would cost every fill. A watcher that ends its watch likewise has no fence before its next look.
//! So a filler may see a watcher that ends its watch at that moment, while a look that comes at
//! once does not see the place yet:
//!
//! - The watcher leaves for work, finds none, and looks as the last searcher.
//! - The watcher leaves for work, and another worker stops as the last searcher. That worker may
//!   still see the watcher, and then does not look.
//! - The watcher gives up, and its sleep before the last look ends at once. A sleep may end without
//!   a reason ([`Watch::record_look`] counts the look nevertheless). After a full interval the look
//!   sees the place. If the watcher then works for long, its last look comes as late.
//!
//! The place then waits for the worker that empties it, or for the next look by any watcher or last
//! searcher. If the watcher left for work, a watcher is still wanted, so the next sleeper becomes
//! the watcher. If the watcher gave up, the next filler that sees no watcher requests one.
use crate::Idle;
use core::{cell::Cell, time::Duration};
#[cfg(feature = "std")]
use std::time::Instant;

/// The first interval between two looks, and the interval while places are filled. Each look that
/// finds no filled place doubles the interval, up to `LONGEST`.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);

/// The number of looks in a row without a filled place after which the watcher gives up.
const PATIENCE: u32 = 6;

/// False in a model: a model must be repeatable, so it reads no clock.
#[cfg(feature = "std")]
const HAS_CLOCK: bool = cfg!(not(any(selvedge_loom, selvedge_shuttle)));

/// The progress of a watch. The default is the state without a watch.
///
/// Each worker keeps one state. The worker [forgets](Watch::forget) the state when a notification
/// ends the worker's sleep, or a look finds work. After a sleep that ended for another reason, the
/// next sleep may continue the watch. The end of a watch resets the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchState {
    limit: Duration,
    /// The number of looks in a row that found no filled place.
    quiet: u32,
    /// The time of the last look, or of the beginning of the watch.
    #[cfg(feature = "std")]
    looked_at: Option<Instant>,
}

impl WatchState {
    /// Records that the watcher has just begun its watch, or has looked.
    fn record_time(&mut self) {
        #[cfg(feature = "std")]
        if HAS_CLOCK {
            self.looked_at = Some(sync_shim::time::now());
        }
    }
}

impl Default for WatchState {
    fn default() -> Self {
        Self {
            limit: SHORTEST,
            quiet: 0,
            #[cfg(feature = "std")]
            looked_at: None,
        }
    }
}

/// A watch in progress: looks after 1, 2, 4, 8, 8, … ms, until no place was filled for about 40 ms.
///
/// ```
/// use std::{cell::Cell, thread};
/// use worker_idle::{Idle, Watch, WatchState};
///
/// let (idle, state) = (Idle::new(2), Cell::new(WatchState::default()));
/// idle.sleep(1, false);
/// assert!(Watch::begin(&idle, 1, &state).is_none(), "no watcher is wanted");
///
/// // Worker 0 fills its place, and sees no watcher:
/// idle.want_watcher();
/// assert_eq!(idle.notify(), Some(1));
///
/// idle.sleep(1, true);
/// let mut watch = Watch::begin(&idle, 1, &state).expect("there is no other watcher");
/// let mut looks = 0;
/// loop {
///     while !watch.is_due() {
///         thread::sleep(watch.until_look()); // A worker would park, perhaps for less.
///     }
///     looks += 1;
///     if !watch.record_look(false) {
///         break; // No place was filled for a while.
///     }
/// }
/// assert!(looks > 3 && !idle.is_watched() && !idle.is_watcher_wanted());
/// ```
#[derive(Debug)]
pub struct Watch<'a> {
    idle: &'a Idle,
    worker: usize,
    state: &'a Cell<WatchState>,
    /// Whether the watcher has given up, with one look left (rule 4).
    leaving: bool,
}

impl<'a> Watch<'a> {
    /// Begins a watch, or continues the one that `state` describes, if a watcher is wanted and
    /// there is none. Also continues a watch that was given up, for its last look. Resets `state`
    /// if no watcher is wanted.
    ///
    /// Call it after [`Idle::sleep`]. The beginning of a watch reads the clock.
    ///
    /// # Panics
    /// If there is no such worker.
    #[track_caller]
    pub fn begin(idle: &'a Idle, worker: usize, state: &'a Cell<WatchState>) -> Option<Self> {
        let (quiet, wanted) = (state.get().quiet, idle.is_watcher_wanted());
        // The watch that `state` describes was given up, and has its last look left.
        let leaving = quiet == PATIENCE && !wanted;
        if !leaving {
            if !wanted {
                state.take();
                return None;
            }
            if !idle.try_watch(worker) {
                return None;
            }
            let mut begun = state.get();
            if quiet == PATIENCE || begun == WatchState::default() {
                begun = WatchState::default();
                begun.record_time();
                state.set(begun);
            }
        }
        Some(Self {
            idle,
            worker,
            state,
            leaving,
        })
    }

    /// Returns whether the watcher has given up: its next look is the last one (rule 4).
    pub fn is_leaving(&self) -> bool {
        self.leaving
    }

    /// Forgets the state of a watch, after a notification ended the worker's sleep, or a look found
    /// work.
    ///
    /// Do not call it while a watch with this state is in progress.
    pub fn forget(idle: &Idle, state: &Cell<WatchState>) {
        // Rule 4: the last look was still to come.
        if state.take().quiet == PATIENCE {
            idle.want_watcher();
        }
    }

    /// Returns the interval between the last look and the next one. Without the feature `std`, the
    /// caller measures the time since the last look.
    pub fn limit(&self) -> Duration {
        self.state.get().limit
    }

    /// Returns how long to sleep before the next look: the rest of the interval since the last
    /// look, or since the beginning of the watch. In a model no time passes.
    #[cfg(feature = "std")]
    pub fn until_look(&self) -> Duration {
        let since = self.state.get().looked_at.map(sync_shim::time::since);
        self.limit().saturating_sub(since.unwrap_or_default())
    }

    /// Returns whether the next look is due. A sleep may end early, without a reason or for an
    /// event, so call this after each sleep. In a model every look is due.
    #[cfg(feature = "std")]
    pub fn is_due(&self) -> bool {
        !HAS_CLOCK || self.until_look().is_zero()
    }

    /// Records a look that found a filled place, or none. Returns whether the watcher looks again.
    /// If not, the watch has ended.
    pub fn record_look(&mut self, filled: bool) -> bool {
        let mut state = self.state.take();
        if filled {
            if self.leaving {
                self.idle.want_watcher();
                self.leaving = !self.idle.try_watch(self.worker);
            }
            if self.leaving {
                return false;
            }
            state = WatchState::default();
        } else if self.leaving {
            return false;
        } else {
            state.quiet += 1;
            state.limit = LONGEST.min(2 * state.limit);
            if state.quiet == PATIENCE {
                self.leaving = true;
                self.idle.give_up_watch();
            }
        }
        state.record_time();
        self.state.set(state);
        true
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.leaving {
            self.idle.leave_watch();
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
