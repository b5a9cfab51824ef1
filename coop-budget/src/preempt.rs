//! The end of a time slice, as a flag that somebody else sets.
//!
//! | field | who may write it |
//! |---|---|
//! | the flag | whoever grants a slice clears it; anyone sets it |
//!
//! 1. Only opening a slice clears the flag. Looking doesn't: a slice may look many times, between polls too.
//! 2. Whoever grants slices opens one *before* others can know of it. So a request by one who knows of the slice comes after the
//!    opening in the flag's one order of writes, and stays until the next opening: no request is lost.
//! 3. A request that is under way while the next slice opens may end that one early. That costs a yield; nothing is wrong.
use sync_shim::atomic::{AtomicBool, Ordering::Relaxed};

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
pub struct Preempt(AtomicBool);

static_assertions::assert_impl_all!(Preempt: Send, Sync);

impl Preempt {
    /// A flag that is not set.
    #[expect(
        clippy::new_without_default,
        reason = "a flag belongs to a slice: say so"
    )]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Begins a slice: requests so far are of the last one. A store.
    ///
    /// Open it before you tell anyone of the slice.
    #[inline]
    pub fn open_slice(&self) {
        // Ordering: Relaxed, the flag alone is the message: its own order of writes decides which slice a request
        // falls in (rule 2).
        self.0.store(false, Relaxed);
    }

    /// Asks the slice to end. A store.
    #[inline]
    pub fn request(&self) {
        // Ordering: Relaxed, as in `open_slice`.
        self.0.store(true, Relaxed);
    }

    /// Whether the slice is to end. A load.
    #[inline]
    pub fn need_preempt(&self) -> bool {
        // Ordering: Relaxed, as in `open_slice`; nothing is read on the strength of it.
        self.0.load(Relaxed)
    }
}
