//! The list of live tasks of one owner, without a lock.
//!
//! A task is listed by the owner that polls it, just before its first `Pending` is published, and
//! the list holds a reference to it (`LISTED`) from that same read-modify-write on: that is what
//! lets a wake by reference submit the task without counting. A task that completes in its first
//! poll touches no list. The rules are those of [`list`](crate::list).
use crate::{
    cell::{self, header},
    complete::dealloc,
    id::Id,
    list::{Keep, List},
    notified::{Notified, Ran, Schedule},
    releases::next_taken,
    run,
    state::Duty,
};
use core::{fmt, marker::PhantomData, ptr::NonNull, task::Waker};

/// The live tasks of one owner: a worker's core, a local executor.
///
/// Every operation takes `&mut self`: there is one owner, and nobody else walks the list. That takes a word of memory for each task in it, of as many as there were at
/// a time, in blocks of 1 KiB; all but one are given back when the list is empty, at once.
pub struct Owned<S> {
    list: List,
    scheduler: PhantomData<fn() -> S>,
}

// SAFETY: the list points to tasks, which only the owner reaches through this; it may move between
// threads, as a run of a task may.
unsafe impl<S> Send for Owned<S> {}

impl<S: Schedule> Owned<S> {
    /// An empty list. `owner` is woken when a task of a closing list ends elsewhere.
    pub fn new(owner: Waker) -> Self {
        Self {
            list: List::new(owner, false),
            scheduler: PhantomData,
        }
    }

    /// Tasks in the list, those that ended elsewhere and were not drained yet among them.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether no task is in the list.
    pub fn is_empty(&self) -> bool {
        self.list.len() == 0
    }

    /// Lets go of tasks that ended elsewhere. A load if there is none, else one read-modify-write,
    /// and one a task.
    pub fn drain(&mut self) {
        drain(&mut self.list);
    }

    /// Whether tasks that ended elsewhere wait for [`drain`](Self::drain). A hint.
    pub fn has_releases(&self) -> bool {
        self.list.has_releases()
    }

    /// Closes the list: from now on the owner is woken when a task of the list ends elsewhere.
    /// Tasks may still come in.
    pub fn close(&mut self) {
        self.list.watch();
    }

    /// Aborts every task of the list and drops here the futures of those that are idle.
    ///
    /// The others are queued or run somewhere: they end where they turn up, and the list is empty
    /// only after that. One read-modify-write a task, and a look at a word for each that there was at a time.
    pub fn cancel_all(&mut self) {
        self.cancel_all_and(|_| ());
    }

    /// As [`cancel_all`](Self::cancel_all), and `ended` hears of each task whose future was dropped here. By then another task may have its id.
    pub fn cancel_all_and(&mut self, mut ended: impl FnMut(Id)) {
        let mut next = self.list.first();
        while let Some(task) = next {
            // SAFETY: a listed task is live.
            next = unsafe { self.list.after(task) };
            // SAFETY: as above.
            if let Duty::Submit = unsafe { header(task) }.state.abort() {
                // SAFETY: this thread holds the one `Notified`, of a task in this list.
                unsafe { run::cancel(task, self.keep()) };
                ended(cell::id(task));
            }
        }
    }
}

impl<S: Schedule> Owned<S> {
    /// This list, for as long as it is borrowed.
    pub(crate) fn keep(&mut self) -> Keep {
        Keep::In(NonNull::from(&mut self.list))
    }

    /// Runs a task once, in this list. See [`Notified::run`].
    #[inline]
    pub fn run(&mut self, task: Notified<S>) -> Ran<S> {
        task.run_in(|| Some(self))
    }

    /// Drops the future of a queued task in place of running it.
    pub fn cancel(&mut self, task: Notified<S>) {
        // SAFETY: a `Notified` is the one of its task, and is consumed.
        unsafe { run::cancel(task.into_task(), self.keep()) };
    }
}

impl<S> Drop for Owned<S> {
    fn drop(&mut self) {
        drain(&mut self.list);
    }
}

/// Lets go of the complete tasks on the stack: there are no others, since no task of such a list is bound to its thread.
fn drain(list: &mut List) {
    let mut next = list.take();
    while let Some(task) = next {
        // SAFETY: taken above.
        next = unsafe { next_taken(task) };
        // SAFETY: only complete tasks of this list are pushed (rule 3).
        if let Duty::Dealloc = unsafe { list.release(task) } {
            // SAFETY: no reference is left.
            unsafe { dealloc(task) };
        }
    }
}

impl<S> fmt::Debug for Owned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned")
            .field("len", &self.list.len())
            .finish_non_exhaustive()
    }
}
