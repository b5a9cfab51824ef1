//! A task that is to be run, and where it goes: the reference that queues hold.
//!
//! This file and [`owned`](crate::owned) name each other: a run may take a list, and a list runs tasks.
use crate::{
    cell::{self, Kind, Outcome, TaskPtr, WakeKind},
    list::Keep,
    owned::Owned,
    run::{self, RunEnd},
    task_ref::TaskRef,
};
use core::{
    any::Any,
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::Waker,
};

/// Where the tasks of a scheduler go when they are to run.
///
/// It takes the task, not a borrow of the scheduler inside it: a wake by value can then hand its
/// reference over, and nobody is left in a cell that may be freed meanwhile. Reach the scheduler
/// with [`Notified::scheduler`]; what is used after the task was queued must be copied out first.
pub trait Schedule: Send + Sync + Sized + 'static {
    /// Queues a task. Runs wherever the task is woken, also inside another task's poll. Dropping
    /// the task instead cancels it there.
    fn schedule(task: Notified<Self>, why: WakeKind);

    /// Hears of each panic of a task's code: of its future's polls and its drop, of its output's drop, of the join waker's wake and its drop. Called by the thread that has caught
    /// it, where the task runs or where its join handle is. What the future's own panic carries goes to the join handle after that; the others', nowhere else. A
    /// panic of this is dropped.
    ///
    /// The drops of a scheduler and of metadata are contained, but not heard of. Without `std` nothing is caught, and nothing heard.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        let _ = (task, payload);
    }

    /// Called once for each task, by the thread that ends it, when its future is gone: before its
    /// output is where the join handle finds it. A panic of this is dropped.
    ///
    /// By default it does nothing, at no cost. Without `std`, where no panic is caught, it is not
    /// called for a task that panicked.
    fn ended(task: TaskRef<'_, Self>, outcome: Outcome) {
        let _ = (task, outcome);
    }
}

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

// Whatever is done with it consumes it, or reads.
impl<S: Schedule> UnwindSafe for Notified<S> {}
impl<S: Schedule> RefUnwindSafe for Notified<S> {}

/// How a poll ended.
#[must_use = "a notified task that is dropped is cancelled"]
#[derive(Debug)]
pub enum Ran<S: Schedule> {
    /// The future is done, by completion, panic or abort.
    Complete,
    /// The future waits for a wake.
    Pending,
    /// The future was woken during its poll, by itself or by others, or [goes on](After::again) for another reason: queue it again.
    Notified(Notified<S>),
}

/// What a runner says of a task when its poll is over. See [`Notified::run_with`].
#[derive(Debug)]
pub struct After<'a, S> {
    /// The list that the task is to be in while it waits. `None` if its owner went away: then a task that is in no list yet comes back as [`Ran::Notified`],
    /// and if one completes that is in a list, that list's owner hears of it.
    pub owned: Option<&'a mut Owned<S>>,
    /// Whether a task that waits is to be polled again all the same, as if it had woken itself: it comes back as [`Ran::Notified`].
    ///
    /// That costs no read-modify-write, nor does its next start unless somebody wakes it meanwhile; a wake from within the poll costs one each. So it
    /// is how a future gives way to others, where it can tell its runner.
    pub again: bool,
}

impl<S: Schedule> Notified<S> {
    /// # Safety
    /// The caller holds the one `Notified` of a task with this scheduler.
    #[inline]
    pub(crate) unsafe fn from_task(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    #[inline]
    pub(crate) fn into_task(self) -> TaskPtr {
        ManuallyDrop::new(self).task
    }

    /// The scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: a `Notified` is a reference, and `S` its task's scheduler.
        unsafe { cell::scheduler(self.task) }
    }

    cell::accessors!(|this| this.task);

    /// A waker of the task. One read-modify-write. A wake before the next run does nothing, since
    /// the task is to run already.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use task_header::Ran;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), move |task| queue.send(task).unwrap());
    /// let waker = task.waker();
    /// assert!(matches!(task.run(), Ran::Pending));
    /// waker.wake();
    /// assert_eq!(tasks.recv().unwrap().id(), join.id());
    /// ```
    pub fn waker(&self) -> Waker {
        // SAFETY: a `Notified` is a reference.
        unsafe { cell::waker(self.task) }
    }

    /// Turns this into a pointer, for where a type does not fit: a thin pointer of somebody's, an
    /// `AtomicPtr`. No read-modify-write.
    ///
    /// The task stays to be run: until [`from_raw`](Self::from_raw) it is neither run nor
    /// cancelled, and leaks if that never comes. The pointer is aligned as a `usize` is, so that
    /// its lowest bits are free for tags. It has the provenance of the whole task: keep that, by
    /// `map_addr` and the like, or expose it.
    ///
    /// ```
    /// use std::{ptr::NonNull, sync::atomic::{AtomicPtr, Ordering}};
    /// use task_header::{Ran, Runnable};
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let slot = AtomicPtr::new(task.into_raw().as_ptr());
    /// let raw = NonNull::new(slot.swap(std::ptr::null_mut(), Ordering::Acquire)).unwrap();
    /// // SAFETY: it came from `into_raw` of such a task, and is used once.
    /// let task = unsafe { Runnable::from_raw(raw) };
    /// assert!(matches!(task.run(), Ran::Complete));
    /// assert!(join.is_finished());
    /// ```
    #[must_use = "the task leaks"]
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        self.into_task().cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. No read-modify-write.
    ///
    /// # Safety
    /// `raw` came from `into_raw` of a `Notified` of this very `S`, and was not turned back since.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: passed on: the one `Notified` became this pointer.
        unsafe { Self::from_task(raw.cast()) }
    }

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
    /// Costs one read-modify-write to start, none if the last poll gave the task back and nobody woke it since; then one for `Pending`, none if the task comes back; none for a completion that nobody
    /// joins and whose wakers are gone, one if somebody does, two if a join waker is to be woken.
    pub fn run(self) -> Ran<S> {
        self.run_and(|| run::After {
            keep: Keep::Nowhere,
            again: false,
        })
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
        self.run_with(|| After {
            owned: owned(),
            again: false,
        })
    }

    /// Polls the future once, as [`run_in`](Self::run_in) does, and asks when the poll is over what is to become of the task.
    ///
    /// ```
    /// # use task_header::{Notified, Schedule, WakeKind};
    /// use std::{future::poll_fn, task::{Poll, Waker}};
    /// use task_header::{After, Owned, Ran};
    /// # struct Nowhere;
    /// # impl Schedule for Nowhere {
    /// #     fn schedule(_: Notified<Self>, _: WakeKind) {}
    /// # }
    ///
    /// let mut polls = 0;
    /// let gives_way = poll_fn(move |_| {
    ///     polls += 1;
    ///     if polls < 3 { Poll::Pending } else { Poll::Ready(()) }
    /// });
    /// let mut owned = Owned::new(Waker::noop().clone());
    /// let (mut task, join) = task_header::new(gives_way, Nowhere);
    /// let mut turns = 0;
    /// while let Ran::Notified(again) = task.run_with(|| After { owned: Some(&mut owned), again: true }) {
    ///     task = again;
    ///     turns += 1;
    /// }
    /// assert_eq!((turns, join.is_finished()), (2, true));
    /// ```
    ///
    /// # Panics
    /// If `after` does. The task is cancelled then.
    #[inline]
    pub fn run_with<'a>(self, after: impl FnOnce() -> After<'a, S>) -> Ran<S>
    where
        S: 'a,
    {
        self.run_and(|| {
            let After { owned, again } = after();
            // The borrow outlives this call, and nobody else has one.
            let keep = owned.map_or(Keep::Requeue, Owned::keep);
            run::After { keep, again }
        })
    }

    #[inline]
    fn run_and(self, after: impl FnOnce() -> run::After) -> Ran<S> {
        let task = self.into_task();
        // SAFETY: this was the one `Notified`, and is consumed.
        match unsafe { run::run(task, after) } {
            RunEnd::Complete => Ran::Complete,
            RunEnd::Pending => Ran::Pending,
            // SAFETY: the run gave the one `Notified` back.
            RunEnd::Notified => Ran::Notified(unsafe { Self::from_task(task) }),
        }
    }
}

impl<S: Schedule> Drop for Notified<S> {
    fn drop(&mut self) {
        // SAFETY: this is the one `Notified`, and it goes.
        unsafe { run::cancel(self.task, Keep::Nowhere) };
    }
}

impl<S: Schedule> fmt::Debug for Notified<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notified").field(&self.id()).finish()
    }
}

/// Tasks that any thread may run.
pub(crate) struct Anywhere<S>(PhantomData<S>);

impl<S: Schedule> Kind for Anywhere<S> {
    type Scheduler = S;

    unsafe fn schedule(task: TaskPtr, why: WakeKind) {
        // SAFETY: passed on; tasks of this kind have this scheduler.
        let notified = unsafe { Notified::from_task(task) };
        S::schedule(notified, why);
    }

    unsafe fn panicked(task: TaskPtr, payload: &(dyn Any + Send)) {
        // SAFETY: passed on; tasks of this kind have this scheduler.
        S::panicked(unsafe { TaskRef::new(task) }, payload);
    }

    unsafe fn ended(task: TaskPtr, outcome: Outcome) {
        // SAFETY: passed on; tasks of this kind have this scheduler.
        S::ended(unsafe { TaskRef::new(task) }, outcome);
    }
}
