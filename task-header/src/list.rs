//! The list of one owner's tasks, and the rules of the stack on which others give tasks back to it
//! (`releases.rs`).
//!
//! 1. The list is touched by the owner alone, which has it exclusively or on its own thread. It is a [table](crate::table).
//! 2. A task leaves the list only after `COMPLETE`, when it can never be queued again.
//! 3. A task that completes elsewhere is pushed on the owner's stack by the thread that completed it, once; its queue link is free
//!    by then and serves the stack. The owner takes it out, gives up `LISTED`, and frees the cell if that was the last reference.
//!    A task of one thread that is queued is pushed by whoever holds its one `Notified`, in whose place it is then on the stack.
//! 4. The stack outlives every task that names it: a list that is dropped with tasks in it leaks it.
//! 5. A tag in the stack's head says that the owner wants to be woken. It is set by the owner with a read-modify-write: a push before that
//!    is found by the owner's next look, which comes after; a push that follows sees the tag, takes it away and wakes. The owner sets it
//!    again as it empties the stack, so that it is there whenever the stack is empty. The waker is cloned before the push: after it the owner may be gone.
//!    A push whose clone panicked can't wake and leaves the tag to the next one.
//! 6. A link may name a task that was freed after the pusher's look, and another was put in its place and pushed: the exchange then expects the right address
//!    by an old pointer. So nobody's pointer goes with a link: a push exposes its task's provenance, and the owner makes pointers from addresses.
//!    Only links of the stack are such. Links that the owner writes itself are the tasks' pointers.
use crate::{
    cell::{self, TaskPtr, header},
    releases::Releases,
    state::{Duty, State},
    table::{self, Table},
};
use core::{ptr::NonNull, task::Waker};

/// Where a task that waits is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep {
    /// In no list.
    Nowhere,
    /// In this list, which is live and the caller's for as long as the value is held. Nothing borrows it
    /// for longer than a step that runs no code of users.
    In(NonNull<List>),
    /// The owner whose list it was to be is gone: a task in no list is to be queued again, to find one.
    Requeue,
}

impl Keep {
    /// # Safety
    /// No borrow that this has given is in use, and none is kept beyond a step that runs no code of users.
    pub(crate) unsafe fn list<'a>(self) -> Option<&'a mut List> {
        match self {
            // SAFETY: live and the caller's alone, by what `In` says.
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
    /// An empty list. `watched`: the owner is woken when something comes onto the stack.
    pub(crate) fn new(owner: Waker, watched: bool) -> Self {
        Self {
            tasks: Table::new(),
            watched,
            releases: Releases::allocate(owner, watched),
        }
    }

    fn releases(&self) -> &Releases {
        // SAFETY: freed only in `drop`, and only borrowed shared until then.
        unsafe { self.releases.as_ref() }
    }

    pub(crate) fn first(&self) -> Option<TaskPtr> {
        self.tasks.first()
    }

    /// The task after this one, as [`first`](Self::first) begins.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn after(&self, task: TaskPtr) -> Option<TaskPtr> {
        // SAFETY: a listed task is live.
        let place = unsafe { cell::place(task) };
        // SAFETY: passed on.
        unsafe { self.tasks.after(place) }
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether something is on the stack. A hint.
    pub(crate) fn has_releases(&self) -> bool {
        !self.releases().is_empty()
    }

    /// Puts a task in.
    ///
    /// # Safety
    /// The calling thread runs the task, which is in no list, and sets LISTED next; or the task is new, and nobody else has it.
    pub(crate) unsafe fn insert(&mut self, task: TaskPtr) {
        // SAFETY: always this stack, which outlives the tasks (rule 4).
        let place = unsafe { self.tasks.insert(task, self.releases) };
        // SAFETY: the run keeps the task alive, or it is the caller's.
        let header = unsafe { header(task) };
        // SAFETY: this thread alone looks at it so far.
        header.place.with_mut(|slot| unsafe { *slot = Some(place) });
    }

    /// Takes a task out.
    ///
    /// # Safety
    /// The task is in this list.
    pub(crate) unsafe fn remove(&mut self, task: TaskPtr) {
        // SAFETY: a listed task is live.
        let place = unsafe { cell::place(task) };
        // SAFETY: in this list, and so not removed yet.
        unsafe { self.tasks.remove(place) };
    }

    /// Takes what others have pushed, the newest first.
    pub(crate) fn take(&mut self) -> Option<TaskPtr> {
        self.releases().take(self.watched)
    }

    /// Takes a complete task out for good.
    ///
    /// # Safety
    /// The task is complete, in this list, and on no stack.
    pub(crate) unsafe fn release(&mut self, task: TaskPtr) -> Duty {
        // SAFETY: passed on.
        unsafe { self.remove(task) };
        // SAFETY: LISTED keeps the task alive until this transition.
        unsafe { state(task) }.release_listed()
    }

    /// From now on the owner is woken by a push.
    pub(crate) fn watch(&mut self) {
        if !core::mem::replace(&mut self.watched, true) {
            self.releases().watch();
        }
    }
}

/// # Safety
/// As for [`header`].
unsafe fn state<'a>(task: TaskPtr) -> &'a State {
    // SAFETY: passed on.
    &unsafe { header(task) }.state
}

/// The stack of a listed task's owner.
///
/// # Safety
/// LISTED is set, which the caller has acquired, and keeps.
pub(crate) unsafe fn releases(task: TaskPtr) -> NonNull<Releases> {
    // SAFETY: a listed task is live.
    let place = unsafe { cell::place(task) };
    // SAFETY: passed on.
    unsafe { table::releases(place) }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.len() != 0 {
            return; // Rule 4.
        }
        // SAFETY: no task is left that names it, and no handle of it but this.
        unsafe { Releases::free(self.releases) };
    }
}
