//! The list of one owner's tasks, and the rules of the stack (`releases.rs`) over which other
//! threads return tasks to that owner.
//!
//! # Actors
//!
//! The *owner* has the list, exclusively or on its own thread. A *releaser* is a thread that
//! pushes a task on the owner's stack. Either the releaser, which is not the owner, has completed
//! the task, or it holds the one `Notified` of a thread-local task.
//!
//! # States
//!
//! | a listed task is | its queue link belongs to |
//! |---|---|
//! | *live* | the holder of its `Notified`, if there is one |
//! | *complete*, not yet pushed | the thread that completed it |
//! | *on the stack* | the owner |
//!
//! | the stack's head | meaning |
//! |---|---|
//! | tag clear | a push does not wake the owner |
//! | tag set | the owner wants to be woken by the next push |
//!
//! # Rules
//!
//! 1. Only the owner touches the list. It is a [table](crate::table).
//! 2. A task leaves the list only after `COMPLETE`, when it can never be queued again.
//! 3. A thread that is not the owner and completes a task pushes the task on the owner's stack,
//!    once. The task's queue link is free by then and links the stack. The owner takes the task out
//!    of its list, releases `LISTED`, and frees the cell if that was the last reference. A
//!    thread-local task that is queued is pushed by the holder of its one `Notified`; on the stack,
//!    the task stands for that `Notified`.
//! 4. The stack outlives every task that names it: a list that is dropped with tasks in it leaks
//!    its stack.
//! 5. No wake of the owner of a watched list is lost. (The list of a [`LocalOwned`] is watched from
//!    the start, that of an [`Owned`] since `watch_releases`.) The owner sets the tag with a
//!    read-modify-write. If a push comes before that, the owner's next look finds the task. If a
//!    push comes afterwards, the releaser sees the tag, clears it, and wakes the owner. The owner
//!    sets the tag again as it empties the stack, so the tag is set whenever the stack is empty.
//!    The releaser clones the owner's waker before the push, because after the push the owner may
//!    be gone. A releaser whose clone panicked can't wake the owner; it leaves the tag for the next
//!    push.
//! 6. A link may hold a stale pointer. Between a releaser's load of the head and its exchange, the
//!    task at the head may be freed, and another task may be allocated at its address and pushed.
//!    The exchange then succeeds, as the addresses are equal. So links of the stack are addresses
//!    only: each push exposes its task's provenance, and the owner makes pointers from the
//!    addresses. Links that the owner writes itself hold real pointers.
//!
//! [`LocalOwned`]: crate::LocalOwned
//! [`Owned`]: crate::Owned
use crate::{
    cell::{Place, TaskPtr},
    releases::Releases,
    state::Duty,
    table::{self, Table},
};
use core::{ptr::NonNull, task::Waker};

/// The list that keeps a waiting task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep {
    /// In no list.
    Nowhere,
    /// In this list, which is live and the caller's for as long as the value is held. Each borrow
    /// of the list ends before user code runs.
    In(NonNull<List>),
    /// The intended list's owner is gone: a task in no list is queued again, to find another owner.
    Requeue,
}

impl Keep {
    /// # Safety
    /// No borrow that an earlier call returned is in use. The caller ends the new borrow before
    /// user code runs.
    pub(crate) unsafe fn list<'a>(self) -> Option<&'a mut List> {
        match self {
            // SAFETY: the list is live and the caller's alone, by the docs of `In`.
            Self::In(mut list) => Some(unsafe { list.as_mut() }),
            Self::Nowhere | Self::Requeue => None,
        }
    }
}

/// The list itself, untyped.
pub(crate) struct List {
    tasks: Table,
    watched: bool,
    /// The stack, which outlives the tasks of the list (rule 4).
    pub(crate) releases: NonNull<Releases>,
}

impl List {
    /// Makes an empty list with this key. If `watched` is true, the first push wakes the owner, and
    /// so does the first push after each [`take`](Self::take).
    pub(crate) fn new(owner: Waker, key: usize, watched: bool) -> Self {
        Self {
            tasks: Table::new(),
            watched,
            releases: Releases::allocate(owner, key, watched),
        }
    }

    fn releases(&self) -> &Releases {
        // SAFETY: the stack is freed only in `drop`, and only borrowed shared until then.
        unsafe { self.releases.as_ref() }
    }

    pub(crate) fn first(&self) -> Option<TaskPtr> {
        self.tasks.first()
    }

    /// Returns the task after this one, in the order that [`first`](Self::first) begins.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn after(&self, task: TaskPtr) -> Option<TaskPtr> {
        // SAFETY: a listed task is live.
        let place = unsafe { place(task) };
        // SAFETY: the caller promises this.
        unsafe { self.tasks.after(place) }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Returns whether the stack holds a task. A hint.
    pub(crate) fn has_releases(&self) -> bool {
        !self.releases().is_empty()
    }

    /// Puts a task in.
    ///
    /// # Safety
    /// The calling thread runs the task, which is in no list, and sets LISTED next; or the task is
    /// new, and no other thread has it.
    pub(crate) unsafe fn insert(&mut self, task: TaskPtr) {
        // SAFETY: each call passes the same stack, which outlives the tasks (rule 4).
        let place = unsafe { self.tasks.insert(task, self.releases) };
        // SAFETY: the run keeps the task alive, or the caller alone has the new task.
        let header = unsafe { task.as_ref() };
        // SAFETY: so far only this thread looks at the place.
        header.place.with_mut(|slot| unsafe { *slot = Some(place) });
    }

    /// Takes a task out.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn remove(&mut self, task: TaskPtr) {
        // SAFETY: a listed task is live.
        let place = unsafe { place(task) };
        // SAFETY: the task is in this list, so it was not removed yet.
        unsafe { self.tasks.remove(place) };
    }

    /// Takes the tasks that releasers have pushed, the newest first.
    pub(crate) fn take(&mut self) -> Option<TaskPtr> {
        self.releases().take(self.watched)
    }

    /// Takes a complete task out for good.
    ///
    /// # Safety
    /// The task is complete, in this list, and on no stack.
    pub(crate) unsafe fn release(&mut self, task: TaskPtr) -> Duty {
        // SAFETY: the caller promises this.
        unsafe { self.remove(task) };
        // SAFETY: LISTED keeps the task alive until this transition.
        unsafe { task.as_ref() }.state.release_listed()
    }

    /// Makes the next push wake the owner, and the first push after each [`take`](Self::take).
    pub(crate) fn watch(&mut self) {
        if !core::mem::replace(&mut self.watched, true) {
            self.releases().watch();
        }
    }
}

/// Returns the task's place in its owner's table.
///
/// # Safety
/// The caller has a reference to the task, which is listed, and has acquired the listing.
unsafe fn place(task: TaskPtr) -> NonNull<Place> {
    // SAFETY: the caller promises this.
    let place = &unsafe { task.as_ref() }.place;
    // SAFETY: the place is constant since the listing.
    let place = place.with(|place| unsafe { *place });
    // SAFETY: a listed task has a place.
    unsafe { place.unwrap_unchecked() }
}

/// Returns the stack of the owner of a listed task.
///
/// # Safety
/// LISTED is set, the caller has acquired that, and LISTED stays set during the call.
pub(crate) unsafe fn releases(task: TaskPtr) -> NonNull<Releases> {
    // SAFETY: a listed task is live.
    let place = unsafe { place(task) };
    // SAFETY: the caller promises this.
    unsafe { table::releases(place) }
}

/// Returns the key of the list in which a task is.
///
/// # Safety
/// As for [`releases`].
pub(crate) unsafe fn key(task: TaskPtr) -> usize {
    // SAFETY: the caller promises this.
    let releases = unsafe { releases(task) };
    // SAFETY: the stack outlives the listed task (rule 4), and is only borrowed shared until then.
    unsafe { releases.as_ref() }.key
}

impl Drop for List {
    fn drop(&mut self) {
        if self.len() != 0 {
            return; // Rule 4.
        }
        // SAFETY: no task is left that names the stack, and this is its only handle.
        unsafe { Releases::free(self.releases) };
    }
}
