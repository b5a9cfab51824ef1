//! The end of a time slice, as a flag that somebody else sets.
//!
//! | state | who brings it about |
//! |---|---|
//! | open | whoever grants slices: a slice begins |
//! | asked | anyone: it is to end |
//! | nudged | anyone, in an open slice: its next operation is to be refused |
//! | deaf | the operation that is refused for a nudge, and a look that found work: no nudge is heard until one has found nothing, or a budget is used up |
//!
//! 1. Only opening a slice ends a request. Looking doesn't: a slice may look many times, between polls too.
//! 2. Whoever grants slices opens one *before* others can know of it. So a request by one who knows of the slice comes after the
//!    opening in the flag's one order of writes, and stays until the next opening: no request is lost.
//! 3. A request that is under way while the next slice opens may end that one early. That costs a yield; nothing is wrong.
//! 4. A nudge is a hint, for who has work that somebody should look at. It is over with the operation that it refuses, so that what waits in its poll, on its thread, goes on; and the deafness after it leaves
//!    polls their operations while somebody nudges all the time. It is forgotten by who looks anyway, with a fence before the look: what was pushed, with a fence between it and the nudge, is seen, or the
//!    nudge finds the slice open. One that meets another, a request, or a deaf slice is not made. All that nudges bring about are exchanges, so that none takes a request's place.
use sync_shim::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};

const OPEN: u32 = 0;
const DEAF: u32 = 1;
/// The first state that refuses operations.
const ASKED: u32 = 2;
const NUDGED: u32 = 3;

/// One slice's flag: set by a monitor or a timer, asked between the polls of the slice.
///
/// ```
/// use coop_budget::Preempt;
///
/// let slice = Preempt::new();
/// slice.open_slice();
/// // A worker polls while `!slice.need_preempt()`; a monitor that finds it has run for long:
/// slice.request();
/// assert!(slice.need_preempt());
/// assert!(slice.need_preempt(), "until the next slice");
/// slice.open_slice();
/// assert!(!slice.need_preempt());
/// ```
#[derive(Debug)]
pub struct Preempt(AtomicU32);

/// The flag where there is no slice, so that nobody need ask whether there is one. What the models take for an atomic is made in no constant: there it is null.
#[cfg(feature = "std")]
pub(crate) const NONE: *const Preempt = {
    #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
    {
        static NEVER_SET: Preempt = Preempt(AtomicU32::new(OPEN));
        &raw const NEVER_SET
    }
    #[cfg(any(selvedge_loom, selvedge_shuttle, selvedge_count))]
    core::ptr::null()
};

impl Preempt {
    /// A flag that is not set.
    #[expect(
        clippy::new_without_default,
        reason = "a flag belongs to a slice: say so"
    )]
    pub fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// Begins a slice: requests so far are of the last one. A store.
    ///
    /// Open it before you tell anyone of the slice.
    #[inline]
    pub fn open_slice(&self) {
        // Ordering: Relaxed, the flag alone is the message: its own order of writes decides which slice a request
        // falls in (rule 2).
        self.0.store(OPEN, Relaxed);
    }

    /// Asks the slice to end. An exchange.
    #[inline]
    pub fn request(&self) {
        // Ordering: Relaxed, as in `open_slice`. No store: the model would have a nudge's exchange read past it.
        self.0.swap(ASKED, Relaxed);
    }

    /// Asks for the slice's next operation to be refused, that one alone: whoever polls then should look for work. A hint, which a slice that has just heard one doesn't hear. A load, and an exchange if
    /// it is made. Whether it was.
    ///
    /// ```
    /// use coop_budget::{Budget, OnExhausted, Preempt, poll_proceed, with_slice};
    /// use std::task::{Context, Waker};
    ///
    /// struct Worker;
    ///
    /// impl OnExhausted for Worker {
    ///     fn defer(&self, _: &Waker) {}
    /// }
    ///
    /// let slice = Preempt::new();
    /// assert!(slice.nudge());
    /// with_slice(Budget::DEFAULT, &slice, &Worker, || {
    ///     let mut cx = Context::from_waker(Waker::noop());
    ///     assert!(poll_proceed(&mut cx).is_pending());
    ///     assert!(!slice.nudge(), "deaf");
    ///     assert!(poll_proceed(&mut cx).is_ready());
    /// });
    /// slice.open_slice();
    /// assert!(slice.nudge());
    /// ```
    #[inline]
    pub fn nudge(&self) -> bool {
        self.turn(OPEN, NUDGED)
    }

    /// From one state into another, if it is in that. A load, and an exchange.
    #[inline]
    fn turn(&self, from: u32, to: u32) -> bool {
        // Ordering: Relaxed, as in `open_slice`; rule 4's fences are around it.
        self.0.load(Relaxed) == from
            // Ordering: Relaxed, as above.
            && self.0.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
    }

    /// Does what a nudge asks for: looks for work. A nudge so far is forgotten. The slice is deaf after a `look` that found something, as there will be another soon, and hears again after one that did not.
    /// Three loads at most; an exchange if that changes; an exchange and a fence if there was a nudge.
    ///
    /// ```
    /// let slice = coop_budget::Preempt::new();
    /// assert!(slice.nudge());
    /// assert_eq!(slice.look(|| Some(7)), Some(7));
    /// assert!(!slice.nudge());
    /// assert_eq!(slice.look(|| None::<u32>), None);
    /// assert!(slice.nudge());
    /// ```
    #[inline]
    pub fn look<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.turn(NUDGED, OPEN) {
            // Ordering: SeqCst pairs with the fence of who nudges (rule 4).
            fence(SeqCst);
        }
        let found = look();
        if found.is_none() {
            self.hear_again();
        } else {
            let _ = self.turn(OPEN, DEAF) || self.turn(NUDGED, DEAF);
        }
        found
    }

    #[inline]
    pub(crate) fn hear_again(&self) {
        let _ = self.turn(DEAF, OPEN);
    }

    /// Whether the slice is to end. A load.
    #[inline]
    pub fn need_preempt(&self) -> bool {
        // Ordering: Relaxed, as in `open_slice`; nothing is read on the strength of it.
        self.0.load(Relaxed) == ASKED
    }

    /// Whether the next operation is to be refused, for either reason. A load.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn refuses(&self) -> bool {
        // Ordering: Relaxed, as in `need_preempt`.
        self.0.load(Relaxed) >= ASKED
    }

    /// Whether an operation is refused for a nudge: by this one, which ends it.
    #[cfg(feature = "std")]
    pub(crate) fn heed_nudge(&self) -> bool {
        self.turn(NUDGED, DEAF)
    }

    /// Whether it is asked in the end: by an exchange, as a load in the model may go back behind a store of which it could know.
    #[cfg(test)]
    pub(crate) fn take_request(&self) -> bool {
        // Ordering: Relaxed, an exchange reads the last of all.
        self.0.swap(OPEN, Relaxed) == ASKED
    }
}
