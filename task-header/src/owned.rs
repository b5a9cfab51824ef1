//! The list of live tasks of one owner, without a lock.
//!
//! The owner puts a task into the list after the poll that first returned `Pending`. One
//! read-modify-write then publishes that `Pending` and sets `LISTED`. From then on the list holds a
//! reference to the task, so a wake by reference can submit the task without counting. A task that
//! completes in its first poll touches no list. The rules are those of [`list`](crate::list).
use crate::{
    cell::{self, TaskPtr},
    complete::dealloc,
    id::Id,
    list::{Keep, List},
    notified::{Notified, Ran, Schedule},
    releases::next_taken,
    run,
    state::Duty,
};
use core::{fmt, marker::PhantomData, panic::Location, ptr::NonNull, task::Waker};

/// The live tasks of one owner, such as a worker's core or a local executor.
///
/// Every operation that touches the tasks takes `&mut self`: there is one owner, and no other
/// thread walks the list. The list's table has one word for each task. It grows, in blocks of 1
/// KiB, to the largest number of tasks that the list held at once. When the list becomes empty, it
/// frees all blocks but one.
///
/// The drop of the list releases the tasks that have ended. It neither cancels the others nor gives
/// up their references: such a task can still be woken and run, but its cell leaks. Its future
/// leaks too, unless a wake or an abort brings the task to its end.
pub struct Owned<S> {
    list: List,
    scheduler: PhantomData<fn() -> S>,
}

// SAFETY: only the owner reaches the tasks through the list. The list may change threads, as a run
// of a task may.
unsafe impl<S> Send for Owned<S> {}

impl<S: Schedule> Owned<S> {
    /// Makes an empty list. A task of the list may end *elsewhere*: in a run that did not use this
    /// list. Once [`watch_releases`](Self::watch_releases) was called, this wakes `owner`.
    pub fn new(owner: Waker) -> Self {
        Self::with_key(owner, 0)
    }

    /// Makes an empty list, as [`new`](Self::new) does, with a key of the owner's choice:
    /// [`Notified::owner_key`] returns that key for a task of this list. The key of a list that
    /// `new` made is 0.
    pub fn with_key(owner: Waker, key: usize) -> Self {
        Self {
            list: List::new(owner, key, false),
            scheduler: PhantomData,
        }
    }

    /// Returns the number of tasks in the list, including those that ended elsewhere and were not
    /// drained yet.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.list.len() == 0
    }

    /// Releases the tasks that ended elsewhere. Costs a load if there is none, otherwise one
    /// read-modify-write plus one per task.
    pub fn drain(&mut self) {
        drain(&mut self.list);
    }

    /// Returns whether tasks that ended elsewhere wait for [`drain`](Self::drain). A hint.
    pub fn has_releases(&self) -> bool {
        self.list.has_releases()
    }

    /// Has the owner woken from now on when a task of the list ends elsewhere. An owner that ends
    /// needs this: it waits until the list is empty. Tasks may still be added.
    pub fn watch_releases(&mut self) {
        self.list.watch();
    }

    /// Aborts every task of the list, and drops the futures of the idle tasks on this thread.
    ///
    /// The other tasks are queued or running. They end where they are run next, and the list is
    /// empty only after that. Costs one look at each word that the list has in use, and for each
    /// task:
    ///
    /// | the task | read-modify-writes |
    /// |---|---|
    /// | is queued or running | 1 |
    /// | is idle | 2 |
    /// | is idle, and a handle or a waker of it is left | 1 more |
    /// | is idle, and its end wakes a join waker | 1 more |
    pub fn cancel_all(&mut self) {
        self.cancel_all_and(|_, _| ());
    }

    /// Aborts every task as [`cancel_all`](Self::cancel_all) does, and calls `ended` for each task
    /// whose future was dropped on this thread. `ended` gets the place where the task was spawned,
    /// if the task recorded that place. By then another task may have the same id.
    ///
    /// # Panics
    /// If `ended` panics. The tasks that were not reached by then are neither aborted nor dropped.
    pub fn cancel_all_and(
        &mut self,
        mut ended: impl FnMut(Id, Option<&'static Location<'static>>),
    ) {
        let mut next = self.list.first();
        while let Some(task) = next {
            // SAFETY: a listed task is live.
            next = unsafe { self.list.after(task) };
            // SAFETY: as above.
            if let Duty::Submit = unsafe { task.as_ref() }.state.abort() {
                // SAFETY: as above.
                let location = unsafe { cell::details(task) }.location();
                // SAFETY: `Duty::Submit` gives this thread the task's only `Notified`, and the task
                // is in this list.
                unsafe { run::cancel(task, self.keep_here()) };
                ended(cell::id(task), location);
            }
        }
    }
}

impl<S: Schedule> Owned<S> {
    /// Returns a pointer to this list, for a run or a cancel of one of its tasks: a task that waits
    /// is kept here. The caller uses the pointer only while it has `&mut self`.
    pub(crate) fn keep_here(&mut self) -> Keep {
        Keep::In(NonNull::from(&mut self.list))
    }

    /// Runs a task once, in this list. See [`Notified::run`].
    #[inline]
    pub fn run(&mut self, task: Notified<S>) -> Ran<S> {
        task.run_in(|| Some(self))
    }

    /// Drops the future of a queued task instead of running it.
    pub fn cancel(&mut self, task: Notified<S>) {
        // SAFETY: a `Notified` is the only one of its task, and is consumed.
        unsafe { run::cancel(task.into_task(), self.keep_here()) };
    }
}

impl<S> Drop for Owned<S> {
    fn drop(&mut self) {
        // The drop of a task's metadata may end other tasks of the list.
        while self.list.has_releases() {
            drain(&mut self.list);
        }
    }
}

/// Releases the tasks on the list's release stack, to which other threads push tasks that ended
/// there. All of them are complete, because no task of an [`Owned`] is thread-local.
fn drain(list: &mut List) {
    let next = list.take();
    Taken { list, next }.release_all();
}

/// The tasks that a drain has taken from the release stack and has not released yet. In a build
/// that can't catch a panic, the drop of a task's metadata may interrupt the drain. The drop of
/// this value then releases the other tasks.
struct Taken<'a> {
    list: &'a mut List,
    next: Option<TaskPtr>,
}

impl Taken<'_> {
    fn release_all(&mut self) {
        while let Some(task) = self.next {
            // SAFETY: this task was taken from the stack, and is released below.
            self.next = unsafe { next_taken(task) };
            // SAFETY: only complete tasks of this list are pushed (rule 3).
            if let Duty::Dealloc = unsafe { self.list.release(task) } {
                // SAFETY: no reference is left.
                unsafe { dealloc(task) };
            }
        }
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.release_all();
    }
}

impl<S> fmt::Debug for Owned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned")
            .field("len", &self.list.len())
            .finish_non_exhaustive()
    }
}
