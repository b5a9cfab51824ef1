//! The end of a time slice, as a flag that somebody else sets.
//!
//! | state | who brings it about |
//! |---|---|
//! | open | whoever grants slices: a slice begins |
//! | asked | anyone, in an open slice: it is to end |
//! | deaf | whoever grants slices: what is asked until the next opening is not heard |
//!
//! 1. Only who grants slices ends a request. Looking doesn't: a slice may look many times, between polls too.
//! 2. Whoever grants slices opens one *before* others can know of it. So a request by one who knows of the slice comes after the
//!    opening in the flag's one order of writes, and stays until the next opening: no request is lost.
//! 3. A request that is under way while the next slice opens, or turns deaf, may end that one early. That costs a yield; nothing is wrong.
use sync_shim::atomic::{AtomicU32, Ordering::Relaxed};

const OPEN: u32 = 0;
const ASKED: u32 = 1;
const DEAF: u32 = 2;

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

static_assertions::assert_impl_all!(Preempt: Send, Sync);

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

    /// Begins the next slice, deaf if the last one was asked to end: in a deaf slice nobody is heard. So who asks all the time ends every other slice early,
    /// where he would end each before its first operation. A load and a store.
    ///
    /// ```
    /// let slice = coop_budget::Preempt::new();
    /// slice.request();
    /// slice.open_every_other();
    /// slice.request();
    /// assert!(!slice.need_preempt());
    /// slice.open_every_other();
    /// slice.request();
    /// assert!(slice.need_preempt());
    /// ```
    #[inline]
    pub fn open_every_other(&self) {
        let next = if self.need_preempt() { DEAF } else { OPEN };
        // Ordering: Relaxed, as in `open_slice`.
        self.0.store(next, Relaxed);
    }

    /// Goes on with the slice as if nobody had asked: what was asked for was done. A deaf one stays deaf. A load, and a store if somebody has asked.
    #[inline]
    pub fn forget_request(&self) {
        if self.need_preempt() {
            self.open_slice();
        }
    }

    /// Asks the slice to end. A load, and a store if nobody has asked yet.
    #[inline]
    pub fn request(&self) {
        let _ = self.ask();
    }

    /// As `request`. Whether it is asked by this: not if it was asked already, nor if it is deaf.
    #[inline]
    pub(crate) fn ask(&self) -> bool {
        // Ordering: Relaxed, as in `open_slice`. Who knows of the slice sees its opening or something later; what is left from before is not among it.
        let hears = self.0.load(Relaxed) == OPEN;
        if hears {
            // Ordering: Relaxed, as in `open_slice`.
            self.0.store(ASKED, Relaxed);
        }
        hears
    }

    /// Whether the slice is to end. A load.
    #[inline]
    pub fn need_preempt(&self) -> bool {
        // Ordering: Relaxed, as in `open_slice`; nothing is read on the strength of it.
        self.0.load(Relaxed) == ASKED
    }
}
