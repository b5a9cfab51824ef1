//! A sleeper's watch over what no push tells of: when it looks, and when it gives up.
//!
//! A scheduler may have places that only one worker empties, such as a LIFO slot, and whose filling is too frequent for a notification each. As a last resort
//! somebody looks after them now and then.
//!
//! 1. A sleeper is the watcher, if one is wanted and there is none, and sleeps with a limit. At each it looks at every place.
//! 2. Who fills an empty place and sees no watcher says that one is wanted, and notifies: a sleeper wakes, and becomes one unless it finds work; or there is a searcher. So
//!    where no place is filled nobody's sleep has a limit.
//! 3. The watcher that wakes for work leaves the watch; it is chosen last among the sleepers. The last searcher that leaves with work looks whether a watcher is wanted and there
//!    is none, and a place is filled: then it wakes another sleeper. So neither who was woken by rule 2 and has found work, nor who was a searcher at that time, nor the
//!    watcher that has left, takes the watch with it.
//! 4. Once no look has found a filled place for a while, the watcher gives up, and none is wanted, but it looks once more after that. So whoever relied on it
//!    before is seen by then; if something else ends the sleep before that look, a watcher is wanted again. From there on an idle scheduler has no wake-up at all.
//! 5. A watch may be taken up where the last one was, by its [`WatchState`].
use crate::Idle;
use core::{cell::Cell, time::Duration};

/// Between two looks while a place is filled; the limits of the others double up to the longest.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);

/// Looks that find nothing, before the watch is given up.
const PATIENCE: u32 = 6;

/// How far a watch has come. The default is its beginning.
///
/// A worker keeps one, and [forgets](Watch::forget) it when something has ended its sleep: what it has seen is over then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchState {
    limit: Duration,
    /// Looks in a row that have found nothing.
    quiet: u32,
}

impl Default for WatchState {
    fn default() -> Self {
        Self {
            limit: SHORTEST,
            quiet: 0,
        }
    }
}

/// The watcher's watch: looks after 1, 2, 4, 8, 8, … ms, and for some 40 ms after the last that has found a filled place.
///
/// ```
/// use std::{cell::Cell, thread};
/// use worker_idle::{WatchState, Idle, Watch};
///
/// let (idle, state) = (Idle::new(2), Cell::new(WatchState::default()));
/// idle.sleep(1, false);
/// assert!(Watch::begin(&idle, 1, &state).is_none(), "nobody wants one");
///
/// // Worker 0 fills its place, and sees no watcher:
/// idle.want_watcher();
/// assert_eq!(idle.notify(), Some(1));
///
/// idle.sleep(1, true);
/// let mut watch = Watch::begin(&idle, 1, &state).expect("nobody else watches");
/// let mut looks = 0;
/// loop {
///     thread::sleep(watch.limit()); // A worker would park.
///     looks += 1;
///     if !watch.record_look(false) {
///         break; // Nothing was filled for a while.
///     }
/// }
/// assert!(looks > 3 && !idle.is_watched() && !idle.is_watcher_wanted());
/// ```
#[derive(Debug)]
pub struct Watch<'a> {
    idle: &'a Idle,
    worker: usize,
    state: &'a Cell<WatchState>,
    /// Rule 4: given up, but for one look.
    leaving: bool,
}

impl<'a> Watch<'a> {
    /// Begins a watch, or takes up the one that has come to `state`, if a watcher is wanted and there is none. The sleep was announced.
    ///
    /// # Panics
    /// When there is no such worker.
    #[track_caller]
    pub fn begin(idle: &'a Idle, worker: usize, state: &'a Cell<WatchState>) -> Option<Self> {
        let (quiet, wanted) = (state.get().quiet, idle.is_watcher_wanted());
        // Taken up at the last look.
        let leaving = quiet == PATIENCE && !wanted;
        if !leaving {
            if !wanted || !idle.try_watch(worker) {
                return None;
            }
            if quiet >= PATIENCE {
                state.take();
            }
        }
        Some(Self {
            idle,
            worker,
            state,
            leaving,
        })
    }

    /// The next watch is a new one: something else than a look has ended the sleep. Not while there is one that has come to `state`.
    pub fn forget(idle: &Idle, state: &Cell<WatchState>) {
        // Rule 4: it owes a look.
        if state.take().quiet == PATIENCE {
            idle.want_watcher();
        }
    }

    /// How long to sleep before the next look.
    pub fn limit(&self) -> Duration {
        self.state.get().limit
    }

    /// After a look, which has found a place `filled` or not: whether there is to be another.
    pub fn record_look(&mut self, filled: bool) -> bool {
        let WatchState { limit, quiet } = self.state.get();
        if filled {
            self.state.take();
            if self.leaving {
                self.idle.want_watcher();
                self.leaving = !self.idle.try_watch(self.worker);
            }
            return !self.leaving;
        }
        let quiet = quiet + 1;
        let limit = LONGEST.min(2 * limit);
        self.state.set(WatchState { limit, quiet });
        if quiet == PATIENCE {
            self.leaving = true;
            self.idle.give_up_watch();
        }
        quiet <= PATIENCE
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.leaving {
            self.idle.leave_watch();
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
