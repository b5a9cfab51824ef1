//! The task that holds a lock, for dumps of tasks.
//!
//! # The story
//!
//! A runtime that lists its tasks says in each of their polls which task it is, and asks for the
//! holders of locks ([`is_wanted`]). A lock notes its holder while the bit *noted* of its state is
//! set. That bit makes the fast path of an acquisition fail, as a contended state does. So in other
//! programs no acquisition and no release looks for it: the bit is clear, and costs nothing.
//!
//! | a lock that is | has the bit |
//! |---|---|
//! | created while holders are wanted | from then on |
//! | created in a constant | from then on; if no holder is wanted at an acquisition, this clears it |
//! | found by a dump, with a task that waits for it | from then on |
//!
//! # Rules
//!
//! 1. A task that acquires a lock with the bit notes itself after the acquisition, or that it is no
//!    listed task.
//! 2. An owner of a mutex, and a writer, that finds the bit clears the note before it releases the
//!    lock. It finds the bit if it has noted itself: only an owner clears the bit, in place of its
//!    note. So such a note is of the task that has acquired the lock, or there is none.
//! 3. Of several readers, the note is of the last one to enter, which clears it after it has left.
//!    Between the two, its poll goes on. So in a dump that finds it waiting, it is in the lock, or
//!    the second round of the dump finds it no more.
//! 4. A guard may move to another task. The note stays that of the task that has acquired the lock.
//!    A reader's guard that is dropped by another task leaves its note until the next one.
//!
//! A note orders nothing: all its operations are Relaxed. The release that follows a cleared note
//! passes it on to the next owner, and to the look of a dump, which acquires.
#[cfg(feature = "coop-budget")]
use sync_shim::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of the task that holds a lock, or 0.
pub(crate) struct Holder(#[cfg(feature = "coop-budget")] AtomicU32);

impl Holder {
    sync_shim::const_fn! {
        pub(crate) const fn new() -> Self {
            Self(#[cfg(feature = "coop-budget")] AtomicU32::new(0))
        }
    }
}

/// Whether a constant lock begins with the bit. Under a model there are no constant locks. The
/// counts of read-modify-writes leave out the two by which the first owner clears the bit.
pub(crate) const IN_CONSTANTS: bool = cfg!(all(
    feature = "coop-budget",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
));

#[cfg(feature = "coop-budget")]
impl Holder {
    /// Notes the task whose poll this is.
    pub(crate) fn set(&self) {
        // Ordering: Relaxed, here and below: see the front page.
        self.0.store(this_task(), Relaxed);
    }

    /// Forgets the holder, for the owner that is about to release the lock (rule 2).
    #[inline]
    pub(crate) fn clear(&self) {
        // Ordering: as above.
        self.0.store(0, Relaxed);
    }

    /// Forgets the holder, if it is the task whose poll this is (rule 3).
    #[cfg(feature = "rwlock")]
    pub(crate) fn clear_own(&self) {
        let own = this_task();
        // Ordering: as above.
        if own != 0 && self.0.load(Relaxed) == own {
            // Ordering: as above. Another holder may have noted itself meanwhile.
            let _ = self.0.compare_exchange(own, 0, Relaxed, Relaxed);
        }
    }

    pub(crate) fn get(&self) -> Option<u64> {
        // Ordering: as above.
        let task = self.0.load(Relaxed);
        (task != 0).then(|| task.into())
    }
}

#[cfg(feature = "coop-budget")]
fn this_task() -> u32 {
    coop_budget::polled_task().unwrap_or(0)
}

/// Returns whether locks are to note their holders. In a model, a task that has a number wants it.
#[cfg(feature = "coop-budget")]
#[inline]
pub(crate) fn is_wanted() -> bool {
    match cfg!(any(selvedge_loom, selvedge_shuttle)) {
        true => this_task() != 0,
        false => coop_budget::notes_holders(),
    }
}

#[cfg(not(feature = "coop-budget"))]
impl Holder {
    pub(crate) fn set(&self) {}
    pub(crate) fn clear(&self) {}
    #[cfg(feature = "rwlock")]
    pub(crate) fn clear_own(&self) {}
}

#[cfg(not(feature = "coop-budget"))]
pub(crate) fn is_wanted() -> bool {
    false
}

/// Returns whether a lock that is created now has the bit. A model sets the bit itself.
#[inline]
pub(crate) fn begins() -> bool {
    !cfg!(any(selvedge_loom, selvedge_shuttle)) && is_wanted()
}
