//! The tasks that wait for a value of a channel, or for its end.
//!
//! The first few receivers wait in one list, and the others in [`Lists`]. These are allocated when
//! the first receiver is created that needs them. So a channel with few receivers has no bytes for
//! them.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `first` | see the front page of `waiters.rs` |
//! | `more` | read by anyone; written once, by a thread that creates a receiver |
//! | `next` | counted up by each thread that creates a receiver with a list in `more` |
//!
//! # Rules
//!
//! 1. A thread that creates a receiver chooses the list. It sets `more` if it must, and then counts
//!    the receiver under the lock of the tail.
//! 2. `more` is set before there is a [`List`] of it, and never changes. So a receiver has one list
//!    all its life.
//! 3. A thread that wakes has had the lock of the tail since the event, or at the event.
//!
//! # Why no wake is lost
//!
//! Say that a receiver waits in `more`. If it was counted before the waking thread had the lock of
//! the tail, that thread finds `more`, and the front page of `lists.rs` says the rest. If it was
//! counted after that, the lock orders it after the event: it is not to get the value, or finds
//! that there is no sender.
use crate::{
    lists::{LISTS, Lists},
    waiters::Waiters,
};
use alloc::boxed::Box;
use core::{ptr, task::Waker};
use sync_shim::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// So many receivers wait in the first list.
const FEW: usize = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    1
} else {
    8
};

pub(super) struct Receiving {
    first: Waiters<()>,
    more: AtomicPtr<More>,
}

struct More {
    lists: Lists,
    /// The number of the next receiver's list, modulo that of the lists. Receivers come and go, so
    /// their count would send newcomers to the same list again and again.
    next: AtomicUsize,
}

/// The list of a receiver's waits: 0 is the first one, and others are one more than their number
/// in `more`.
#[derive(Clone, Copy)]
pub(super) struct List(u8);

impl Receiving {
    pub(super) fn new() -> Self {
        Self {
            first: Waiters::new(()),
            more: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn more(&self) -> Option<&More> {
        // Ordering: Acquire pairs with the Release of `make_more`.
        let more = self.more.load(Acquire);
        // SAFETY: the pointer is null, or of a box that lives as long as this value.
        unsafe { more.as_ref() }
    }

    /// Chooses the list of a new receiver, if there are so many others. To be called before the
    /// receiver is counted (rule 1).
    #[cfg_attr(
        selvedge_sim,
        allow(clippy::modulo_one, reason = "a simulation has one list")
    )]
    pub(super) fn choose(&self, receivers: usize) -> List {
        if receivers < FEW {
            return List(0);
        }
        let more = loop {
            match self.more() {
                Some(more) => break more,
                None => self.make_more(),
            }
        };
        // Ordering: Relaxed: the lists differ in nothing but their tasks.
        let turn = more.next.fetch_add(1, Relaxed);
        List(1 + (turn % LISTS) as u8)
    }

    #[cold]
    fn make_more(&self) {
        let more = Box::into_raw(Box::new(More {
            lists: Lists::new(),
            next: AtomicUsize::new(0),
        }));
        // Ordering: Release pairs with the Acquire of `more`. Relaxed on failure: `more` loads the
        // pointer that is there.
        let made = self
            .more
            .compare_exchange(ptr::null_mut(), more, Release, Relaxed);
        if made.is_err() {
            // SAFETY: the pointer is of the box above, and no other thread has it.
            drop(unsafe { Box::from_raw(more) });
        }
    }

    /// Returns the tasks that wait in a list that `choose` has returned.
    pub(super) fn tasks(&self, list: List) -> &Waiters<()> {
        match (list.0.checked_sub(1), self.more()) {
            (Some(index), Some(more)) => more.lists.list(usize::from(index)),
            _ => &self.first,
        }
    }

    /// Marks a list as used, before a look for a value. The caller holds its lock.
    pub(super) fn mark_used(&self, list: List) {
        if let (Some(index), Some(more)) = (list.0.checked_sub(1), self.more()) {
            more.lists.mark_used(usize::from(index));
        }
    }

    /// Wakes all tasks (rule 3).
    pub(super) fn wake_all(&self) {
        let _rest = Rest(self.more().map(|more| &more.lists));
        self.first.lock().wake_all(|()| ());
    }

    /// Calls `f` for each task that waits.
    pub(super) fn for_each(&self, f: &mut dyn FnMut(&Waker)) {
        self.first.lock().for_each(|waker, ()| f(waker));
        if let Some(more) = self.more() {
            more.lists.for_each(f);
        }
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // Ordering: Relaxed, as nobody else has the channel.
        let more = self.more.load(Relaxed);
        if !more.is_null() {
            // SAFETY: the pointer is of a box, and nobody uses it any more.
            drop(unsafe { Box::from_raw(more) });
        }
    }
}

/// Wakes the other tasks, also if a wake of the first ones unwinds: without `std` a panic is not
/// caught.
struct Rest<'a>(Option<&'a Lists>);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        if let Some(more) = self.0 {
            more.wake_all();
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_sim))))]
mod tests {
    use super::*;

    // Fails if the count of receivers chooses the list: it is the same for each of these.
    #[test]
    fn receivers_that_come_one_by_one_get_different_lists() {
        let receiving = Receiving::new();
        let mut seen = [0; 1 + LISTS];
        for _ in 0..5 * LISTS {
            let List(list) = receiving.choose(FEW);
            seen[usize::from(list)] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(seen[1..].iter().all(|&count| count == 5), "{seen:?}");
    }
}
