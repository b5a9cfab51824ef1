//! How a worker waits for work: the seam, and with `std` a thread's own way.
use core::time::Duration;

#[cfg(feature = "std")]
mod thread;

#[cfg(feature = "std")]
pub use thread::{ThreadPark, ThreadUnpark};

/// How a worker waits: an I/O driver is one.
pub trait Park {
    /// What wakes it.
    type Unpark: Unpark;

    /// Waits for an unpark since the last return, without end. May return early.
    fn park(&mut self);

    /// Waits for an unpark, or for `limit`. May return early.
    fn park_timeout(&mut self, limit: Duration);

    /// What wakes this.
    fn unparker(&self) -> Self::Unpark;
}

/// Wakes a [`Park`].
///
/// Whoever pushes calls it, so it is short: it neither blocks nor panics, and calls nothing of the scheduler's. A worker that was not woken after all is counted as awake for ever.
pub trait Unpark: Clone + Send + Sync + 'static {
    /// Ends the current or the next `park`. Several at a time count as one. What this thread did before is
    /// visible after the `park`.
    fn unpark(&self);
}
