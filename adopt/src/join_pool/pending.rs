//! The count of a scope's jobs that are not done, in two halves.
use super::worker::Awaited;
use std::cell::Cell;
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

#[cfg(all(test, selvedge_loom))]
mod models;

/// The number of jobs that are not done: the sum of two halves. The scope's owner, which is the
/// worker that waits for the jobs, spawns and runs most of them. It counts them in its own half,
/// without a read-modify-write.
///
/// Whenever the owner reads the sum, each job that is counted as done is also counted as spawned.
/// The owner counts its spawns before it reads the sum, and other threads count a job before they
/// push it. A job that spawns another job counts the new job before it is done itself. So if the
/// owner sees a sum of 0, all jobs are done. A half alone may be below 0, so both halves wrap.
///
/// Only the owner calls `owner_spawns`, `owner_ends_one`, `is_done` and `will_sleep`.
pub(super) struct Pending {
    /// The half that the owner counts.
    by_owner: Cell<usize>,
    /// The half that other threads count.
    by_others: AtomicUsize,
}

impl Pending {
    pub(super) fn new() -> Self {
        Self {
            by_owner: Cell::new(0),
            by_others: AtomicUsize::new(0),
        }
    }

    #[inline]
    pub(super) fn owner_spawns(&self) {
        self.by_owner.set(self.by_owner.get().wrapping_add(1));
    }

    #[inline]
    pub(super) fn owner_ends_one(&self) {
        self.by_owner.set(self.by_owner.get().wrapping_sub(1));
    }

    /// Counts a job that a thread other than the owner is about to push.
    #[inline]
    pub(super) fn other_spawns(&self) {
        // Ordering: Relaxed. The push of the job comes next, and publishes this addition. So the
        // job is counted as done only after this addition.
        self.by_others.fetch_add(1, Relaxed);
    }

    /// Counts a job that has ended on a thread other than the owner. Returns whether this thread
    /// must now unpark the owner. The scope may be gone when this function returns.
    ///
    /// # Safety
    /// `this` is live until the job is counted.
    #[inline]
    #[must_use]
    pub(super) unsafe fn other_ends_one(this: *const Self) -> bool {
        // SAFETY: the caller promises that `this` is live here.
        let by_others = unsafe { &(*this).by_others };
        // Ordering: Release pairs with the load in `is_done`.
        by_others.fetch_sub(1, Release) == 1
    }
}

impl Awaited for Pending {
    fn is_done(&self) -> bool {
        // Ordering: Acquire pairs with the subtraction in `other_ends_one`: the owner sees what
        // jobs on other threads did.
        self.by_owner
            .get()
            .wrapping_add(self.by_others.load(Acquire))
            == 0
    }

    /// Adds the owner's half to the other half, and sets the owner's half to 0. From then on, the
    /// thread that counts the other half down to 0 unparks the owner.
    fn will_sleep(&self) {
        // Ordering: Relaxed. The owner calls `is_done` before it parks, and that load acquires.
        self.by_others.fetch_add(self.by_owner.take(), Relaxed);
    }
}
