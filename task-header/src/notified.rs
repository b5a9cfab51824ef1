//! A task that is to be run: the reference that queues hold.
use crate::{
    Owned, Schedule, WakeKind,
    cell::{self, TaskPtr},
    raw::{self, Keep, RunEnd},
};
use core::{fmt, marker::PhantomData, mem::ManuallyDrop};

/// A task that was spawned or woken and waits for its run. One word.
///
/// There is never more than one of a task. Dropping it cancels the task: the future is dropped
/// here and now, and the join handle gets a [`JoinError`](crate::JoinError).
pub struct Notified<S: Schedule> {
    task: TaskPtr,
    scheduler: PhantomData<S>,
}

// SAFETY: the future is `Send` (asked for by `spawn`), and the holder of a `Notified` has it alone.
unsafe impl<S: Schedule> Send for Notified<S> {}

// SAFETY: a shared `Notified` reaches only the scheduler and the details, which are `Sync`.
unsafe impl<S: Schedule> Sync for Notified<S> {}

/// How a run ended.
#[must_use = "a notified task that is dropped is cancelled"]
#[derive(Debug)]
pub enum Ran<S: Schedule> {
    /// The future is done, by completion, panic or abort.
    Complete,
    /// The future waits for a wake.
    Pending,
    /// The future was woken during its poll, by itself or by others: queue it again.
    Notified(Notified<S>),
}

impl<S: Schedule> Notified<S> {
    /// # Safety
    /// The caller holds the one `Notified` of a task with this scheduler.
    #[inline]
    pub(crate) unsafe fn from_raw(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn into_raw(self) -> TaskPtr {
        ManuallyDrop::new(self).task
    }

    /// The scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: a `Notified` is a reference, and `S` its task's scheduler.
        unsafe { cell::scheduler(self.task) }
    }

    crate::details::accessors!(|this| this.task);

    /// Gives the task to its scheduler, as a wake does.
    pub fn schedule(self) {
        S::schedule(self, WakeKind::Wake);
    }

    /// Polls the future once. A panic of the future is caught (with `std`) and goes to the join
    /// handle.
    ///
    /// The task stays in no list: once nobody holds a waker or a join handle of it, it is
    /// scheduled a last time, cancelled. Use [`Owned::run`] to keep such tasks
    /// and to find them again at shutdown.
    ///
    /// Costs one read-modify-write to start; then one for `Pending`; none for a completion that nobody
    /// joins and whose wakers are gone, one if somebody does, two if a join waker is to be woken.
    pub fn run(self) -> Ran<S> {
        self.run_and(|| Keep::Nowhere)
    }

    /// Polls the future once, as [`Owned::run`] does, in the list that `owned` gives when the poll is over. For owners that may be
    /// moved to another thread while a poll lasts.
    ///
    /// With `None` the task is queued again if it waits and is in no list yet: it comes back as [`Ran::Notified`]. If it
    /// completes and is in a list, that list's owner hears of it.
    ///
    /// # Panics
    /// If `owned` does. The task is cancelled then.
    #[inline]
    pub fn run_in<'a>(self, owned: impl FnOnce() -> Option<&'a mut Owned<S>>) -> Ran<S> {
        // The borrow outlives this call, and nobody else has one.
        self.run_and(|| owned().map_or(Keep::Requeue, Owned::keep))
    }

    #[inline]
    fn run_and(self, keep: impl FnOnce() -> Keep) -> Ran<S> {
        let task = self.into_raw();
        // SAFETY: this was the one `Notified`, and is consumed.
        match unsafe { raw::run(task, keep) } {
            RunEnd::Complete => Ran::Complete,
            RunEnd::Pending => Ran::Pending,
            // SAFETY: the run gave the one `Notified` back.
            RunEnd::Notified => Ran::Notified(unsafe { Self::from_raw(task) }),
        }
    }
}

impl<S: Schedule> Drop for Notified<S> {
    fn drop(&mut self) {
        // SAFETY: this is the one `Notified`, and it goes.
        unsafe { raw::cancel(self.task, Keep::Nowhere) };
    }
}

impl<S: Schedule> fmt::Debug for Notified<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notified").field(&self.id()).finish()
    }
}
