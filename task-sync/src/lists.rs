//! Several lists of tasks that wait for one event, which wakes all of them.
//!
//! A task waits in one of the lists. So tasks that wait again seldom meet the pass that wakes, or
//! each other, at a lock.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `lists` | see the front page of `waiters.rs` |
//! | `used` | a bit for each list, which the holder of the list's lock changes |
//!
//! # Rules
//!
//! 1. A thread that has made the event happen then reads `used` by a read-modify-write, and locks
//!    the lists whose bits are set. The bit of a list that it finds empty is cleared. So an event
//!    does not lock lists that are not used.
//! 2. A task that is to wait takes its list's lock, makes sure that the bit is set, and looks for
//!    the event.
//!
//! # Why no wake is lost
//!
//! If the bit was set after the read of rule 1, the task that set it has acquired the event, and so
//! has each task that held the lock later: none of them waits. Otherwise the thread finds the bit,
//! and then the tasks of the list.
use crate::waiters::Waiters;
use core::task::Waker;
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// The number of lists. There are few under a model. In a simulation there is one, as the order of
/// wakes must not depend on addresses.
pub(crate) const LISTS: usize = if cfg!(selvedge_sim) {
    1
} else if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    2
} else {
    8
};

/// The lists of the tasks that wait for an event.
pub(crate) struct Lists {
    lists: [Waiters<()>; LISTS],
    used: AtomicUsize,
}

impl Lists {
    pub(crate) fn new() -> Self {
        Self {
            lists: core::array::from_fn(|_| Waiters::new(())),
            used: AtomicUsize::new(0),
        }
    }

    /// Returns a list by its number, which is less than [`LISTS`].
    pub(crate) fn list(&self, index: usize) -> &Waiters<()> {
        &self.lists[index]
    }

    /// Marks a list as used, before a look for the event. The caller holds its lock.
    pub(crate) fn mark_used(&self, index: usize) {
        let bit = 1 << index;
        // Ordering: Relaxed. The bit is cleared under the lock alone.
        if self.used.load(Relaxed) & bit == 0 {
            // Ordering: Acquire pairs with the Release of `wake_all`: see the front page.
            self.used.fetch_or(bit, Acquire);
        }
    }

    /// Wakes all tasks that wait for the event, which has happened.
    pub(crate) fn wake_all(&self) {
        // Ordering: Release pairs with the Acquire of `mark_used`: see the front page. Acquire is
        // not needed: the locks order the lists.
        let used = self.used.fetch_or(0, Release);
        let mut pass = Pass { lists: self, used };
        pass.wake();
    }

    /// Wakes the tasks of a list.
    fn wake_list(&self, index: usize) {
        let locked = self.lists[index].lock();
        if locked.is_empty() {
            // Ordering: Relaxed. The lock orders it (rule 1).
            self.used.fetch_and(!(1 << index), Relaxed);
        }
        locked.wake_all(|()| ());
    }

    /// Calls `f` for each task that waits.
    pub(crate) fn for_each(&self, f: &mut dyn FnMut(&Waker)) {
        for list in &self.lists {
            list.lock().for_each(|waker, ()| f(waker));
        }
    }
}

/// A pass over the lists that were in use when it began.
struct Pass<'a> {
    lists: &'a Lists,
    /// A bit for each list that is left.
    used: usize,
}

impl Pass<'_> {
    /// Wakes the tasks of the lists that are left.
    fn wake(&mut self) {
        while self.used != 0 {
            let index = self.used.trailing_zeros() as usize;
            self.used &= self.used - 1;
            self.lists.wake_list(index);
        }
    }
}

impl Drop for Pass<'_> {
    /// Goes on if a wake unwinds: without `std` a panic is not caught.
    fn drop(&mut self) {
        self.wake();
    }
}
