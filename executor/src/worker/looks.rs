//! `Looks`: what decides when a worker looks elsewhere than in its own queue. [`next`](super::next)
//! has the looks.
use crate::worker::interval::Interval;
use std::cell::Cell;
use worker_idle::Spin;

pub(crate) struct Looks {
    pub(crate) interval: Interval,
    /// Whether a poll ended at a refused operation: the budget was used up, or a nudge came in. A
    /// poll that used up its budget was long. In both cases the injector comes next.
    pub(crate) forced: Cell<bool>,
    /// Whether a driven worker must poll its parker at the end of this tick: an interval has
    /// passed, or timers or sockets are due.
    pub(crate) poll_is_due: Cell<bool>,
    /// The looks at the driver that were skipped in a row, because the ring was full.
    pub(crate) skipped: Cell<u32>,
    /// Counts the looks at an injector of several shards.
    pub(crate) injected: Cell<usize>,
    /// Counts polls of tasks that only yield.
    pub(crate) spin: Spin,
    /// Whether the last look ran a task of the worker's own next, as its slice was over.
    own_was_next: Cell<bool>,
}

impl Looks {
    pub(crate) fn new(interval: Interval) -> Self {
        Self {
            interval,
            forced: Cell::new(false),
            poll_is_due: Cell::new(false),
            skipped: Cell::new(0),
            injected: Cell::new(0),
            spin: Spin::new(),
            own_was_next: Cell::new(false),
        }
    }

    /// Decides whether a task of the worker's own comes before the injector, as a slice is over and
    /// there `is_own`. Never so twice in a row.
    pub(crate) fn own_is_next(&self, is_over: bool, is_own: bool) -> bool {
        let own_is_next = is_over && is_own && !self.own_was_next.get();
        self.own_was_next.set(own_is_next);
        own_is_next
    }
}
