//! Whether a worker's core may go to another thread, and by which call it went last.
use std::cell::Cell;

pub(crate) struct Lending {
    /// Whether a task that is polled now may lend the core.
    allowed: Cell<bool>,
    /// The id of the last [`Call`](crate::blocking::call::Call) that gave the core away: that call
    /// put the core into `Remote::call`, or offered it to other threads.
    pub(crate) call: Cell<usize>,
}

impl Lending {
    /// Lending is forbidden at first: a driven worker's core never moves.
    pub(crate) fn new() -> Self {
        Self {
            allowed: Cell::new(false),
            call: Cell::new(0),
        }
    }

    #[inline]
    pub(crate) fn is_allowed(&self) -> bool {
        self.allowed.get()
    }

    pub(crate) fn allow(&self) {
        self.allowed.set(true);
    }

    /// Forbids lending. Returns what [`restore`](Self::restore) needs.
    #[inline]
    pub(crate) fn forbid(&self) -> bool {
        self.allowed.replace(false)
    }

    #[inline]
    pub(crate) fn restore(&self, was_allowed: bool) {
        self.allowed.set(was_allowed);
    }
}
