//! The end of a time slice, as a flag that somebody else sets.
//!
//! Whoever grants a slice opens it, which clears the flag; a monitor or a timer requests its end;
//! who runs in the slice asks, between polls too. A request that is made after the opening stays until the next opening.
use sync_shim::atomic::{AtomicBool, Ordering::Relaxed};

/// One slice's flag.
#[derive(Debug)]
pub struct Preempt(AtomicBool);

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
    pub fn open_slice(&self) {
        // Ordering: Relaxed, the flag alone is the message: its own modification order decides
        // which slice a request falls in.
        self.0.store(false, Relaxed);
    }

    /// Asks the slice to end. A store.
    pub fn request(&self) {
        // Ordering: Relaxed, as in `open_slice`.
        self.0.store(true, Relaxed);
    }

    /// Whether the slice is to end. A load.
    pub fn need_preempt(&self) -> bool {
        // Ordering: Relaxed, as in `open_slice`; nothing is read on the strength of it.
        self.0.load(Relaxed)
    }
}
