//! The task that a poll belongs to, for locks that note their holder.
//!
//! A lock that notes its holder at each acquisition would cost every program. So a lock does it
//! only once a runtime [asks for it](note_holders), and then by a bit of its own state, which makes
//! its fast path fail: see `task-sync`'s mutex.
use crate::scope::CURRENT;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Not of `sync-shim`: it is no part of a protocol, and a model has no statics.
static NOTES: AtomicBool = AtomicBool::new(false);

/// Asks the locks of the process to note their holders, from now on: for a runtime that lists its
/// tasks. A lock that was created before begins with it when a task waits for it.
///
/// ```
/// coop_budget::note_holders();
/// assert!(coop_budget::notes_holders());
/// ```
pub fn note_holders() {
    #[cfg(selvedge_sim)]
    if sync_shim::sim::notes_holders(true).is_some() {
        return;
    }
    // Ordering: Relaxed, as the flag publishes nothing else.
    NOTES.store(true, Relaxed);
}

/// Returns whether some runtime wants that locks [note their holders](note_holders). Costs a load.
#[inline]
pub fn notes_holders() -> bool {
    #[cfg(selvedge_sim)]
    if let Some(notes) = sync_shim::sim::notes_holders(false) {
        return notes;
    }
    // Ordering: Relaxed, as in `note_holders`.
    NOTES.load(Relaxed)
}

/// Runs a poll of the task of this number. A lock that is acquired in it is held by that task. The
/// number is not 0, and of no other task of the process, so that a lock has to keep no more.
///
/// ```
/// use coop_budget::{poll_as, polled_task};
///
/// assert_eq!(polled_task(), None);
/// poll_as(7, || assert_eq!(polled_task(), Some(7)));
/// ```
pub fn poll_as<R>(task: u32, poll: impl FnOnce() -> R) -> R {
    struct Restore(u32);

    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.task.set(self.0));
        }
    }

    let _restore = Restore(CURRENT.with(|current| current.task.replace(task)));
    poll()
}

/// Returns the task of the innermost [`poll_as`] of this thread.
pub fn polled_task() -> Option<u32> {
    let task = CURRENT.try_with(|current| current.task.get());
    task.ok().filter(|task| *task != 0)
}
