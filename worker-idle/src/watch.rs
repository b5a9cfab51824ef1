//! A sleeper's watch over what no push tells of: when it looks, and when it gives up.
//!
//! A scheduler may have places that only one worker empties, such as a LIFO slot, and whose filling is too frequent for a notification each. As a last resort
//! somebody looks after them now and then.
//!
//! 1. A sleeper is the watcher, if there is none, and sleeps with a limit. At each it looks at every place.
//! 2. Who fills an empty place and sees no watcher wakes a sleeper, who becomes one unless it finds work.
//! 3. The watcher that wakes for work leaves the watch. It is chosen last among the sleepers; as a searcher it looks after filled places when it stops to
//!    search, by waking another.
//! 4. Once all others have slept for a while, the watcher gives up, but looks once more after that. So whoever relied on it before (rule 2 has no fence)
//!    is seen by then. From there on an idle scheduler has no wake-up at all.
//! 5. A watch may be taken up where the last one was, by its [`Calm`]. One that was given up isn't, as long as all sleep.
use crate::Idle;
use core::{cell::Cell, time::Duration};

/// Between two looks while a place is filled; the limits of the others double up to the longest.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);

/// Looks at sleepers only, before the watch is given up.
const PATIENCE: u32 = 6;

/// How far a watch has come. The default is its beginning.
///
/// A worker keeps one, and puts the default there when something has ended its sleep: what it has seen is over then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calm {
    limit: Duration,
    /// Looks at sleepers only.
    quiet: u32,
}

impl Default for Calm {
    fn default() -> Self {
        Self {
            limit: SHORTEST,
            quiet: 0,
        }
    }
}

/// The watcher's watch: some 40 ms of looks (after 1, 2, 4, 8, … ms) while all sleep, and one each 8 ms at least while somebody doesn't.
///
/// ```
/// use std::{cell::Cell, thread};
/// use worker_idle::{Calm, Idle, Watch};
///
/// let (idle, calm) = (Idle::new(2), Cell::new(Calm::default()));
/// idle.sleep(0, false);
/// idle.sleep(1, false);
/// let mut watch = Watch::begin(&idle, 0, &calm, || false).expect("nobody else watches");
/// let mut looks = 0;
/// loop {
///     thread::sleep(watch.limit()); // A worker would park.
///     looks += 1;
///     if !watch.goes_on(false) {
///         break; // All sleep, and have for a while.
///     }
/// }
/// assert!(looks > 3 && !idle.is_watched());
/// assert!(Watch::begin(&idle, 0, &calm, || false).is_none());
/// calm.take(); // Something has happened.
/// assert!(Watch::begin(&idle, 0, &calm, || false).is_some());
/// ```
#[derive(Debug)]
pub struct Watch<'a> {
    idle: &'a Idle,
    worker: usize,
    calm: &'a Cell<Calm>,
    /// Rule 4: given up, but for one look.
    leaving: bool,
}

impl<'a> Watch<'a> {
    /// Begins a watch, or takes up the one that has come to `calm`, unless there is a watcher (rule 1), or there is nothing to watch (rule 5). The sleep was announced.
    /// Whether a place is filled, `filled` says; it is asked of a watch that was given up only, or is at its last look.
    pub fn begin(
        idle: &'a Idle,
        worker: usize,
        calm: &'a Cell<Calm>,
        filled: impl FnOnce() -> bool,
    ) -> Option<Self> {
        let quiet = calm.get().quiet;
        let still_quiet = quiet >= PATIENCE && idle.all_sleep() && !filled();
        if still_quiet && quiet > PATIENCE {
            return None;
        }
        if !still_quiet {
            if quiet >= PATIENCE {
                calm.take();
            }
            if !idle.try_watch(worker) {
                return None;
            }
        }
        Some(Self {
            idle,
            worker,
            calm,
            leaving: still_quiet,
        })
    }

    /// How long to sleep before the next look.
    pub fn limit(&self) -> Duration {
        self.calm.get().limit
    }

    /// After a look, which has found a place `filled` or not: whether there is to be another.
    pub fn goes_on(&mut self, filled: bool) -> bool {
        let Calm { limit, quiet } = self.calm.get();
        let all_sleep = !filled && self.idle.all_sleep();
        let calm = Calm {
            limit: if filled {
                SHORTEST
            } else {
                LONGEST.min(2 * limit)
            },
            quiet: if all_sleep { quiet + 1 } else { 0 },
        };
        self.calm.set(calm);
        if !all_sleep {
            // Somebody is awake after all.
            let goes_on = !self.leaving || self.idle.try_watch(self.worker);
            self.leaving &= !goes_on;
            return goes_on;
        }
        if calm.quiet == PATIENCE {
            self.leaving = true;
            self.idle.leave_watch();
        }
        calm.quiet <= PATIENCE
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
