//! Thread-local tasks: their futures need not be `Send`, and are polled and dropped on the thread
//! that spawned them.
//!
//! # Actors
//!
//! The *owner* is the thread with the [`LocalOwned`]; it spawns, runs and drops the tasks. A
//! *waker* may be on any thread, and so may the *holder* of the `LocalNotified` that a wake made.
//!
//! # Rules
//!
//! 1. A task is put into its owner's list when it is spawned, `LISTED` from the start, and stays
//!    there until it is complete. So it never becomes an orphan, a task without a reference. The
//!    owner's stack, which outlives the tasks in the list, exists as long as any `LocalNotified`
//!    does.
//! 2. A `LocalNotified` may be on any thread, since any thread may wake. A thread other than the
//!    owner can only queue it, or send it to the owner over the stack. The drop of a
//!    `LocalNotified` aborts the task and sends it to the owner. The owner then runs the task,
//!    which drops the future.
//! 3. Only [`LocalOwned`] runs a task, and only after it has checked that it owns the task. The
//!    `LocalOwned` can't leave its thread, so only that thread touches the future.
//! 4. The list is borrowed for one *step* at a time: a call in which the only user code that runs
//!    is the allocator. So a task may spawn, run and cancel other tasks from within its poll.
use crate::{
    cell::{self, Kind, Outcome, TaskPtr, TaskRef, WakeKind},
    complete::dealloc,
    list::{self, Keep, List},
    releases::{Releases, next_taken, unlink},
    run::{self, RunEnd},
    state::Duty,
};
use core::{
    any::Any,
    cell::{Cell, UnsafeCell},
    fmt,
    marker::PhantomData,
    mem::ManuallyDrop,
    num::NonZeroUsize,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::Waker,
};

/// The queue of a scheduler for thread-local tasks.
///
/// As [`Schedule`](crate::Schedule), for tasks whose futures stay on their thread.
pub trait ScheduleLocal: Send + Sync + Sized + 'static {
    /// Queues a task. This function runs on the thread that wakes the task. If that is not the
    /// task's own thread, return the task to its owner, for example by [`LocalNotified::send`].
    fn schedule(task: LocalNotified<Self>, why: WakeKind);

    /// Reports each panic of a task's code, as [`Schedule::panicked`](crate::Schedule::panicked)
    /// does. This function usually runs on the task's thread. It may run on another thread if a
    /// join handle is dropped or used there.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        let _ = (task, payload);
    }

    /// Reports the end of each task once, when its future is gone, as
    /// [`Schedule::ended`](crate::Schedule::ended) does.
    fn ended(task: TaskRef<'_, Self>, outcome: Outcome) {
        let _ = (task, outcome);
    }
}

/// A thread-local task that was spawned or woken and waits for its run. The value takes one word.
///
/// Any queue may hold the value, but only the task's list can run the task, on that list's thread.
/// Dropping the value cancels the task: the owner then [receives](LocalOwned::receive) the task,
/// and its run drops the future.
///
/// ```compile_fail,E0599
/// fn run<S: task_header::ScheduleLocal>(task: task_header::LocalNotified<S>) {
///     let _ = task.run();
/// }
/// ```
pub struct LocalNotified<S: ScheduleLocal> {
    task: TaskPtr,
    scheduler: PhantomData<S>,
}

// SAFETY: on another thread, the handle reaches the state word, the scheduler, which is `Send` and
// `Sync`, and the owner's stack; never the future.
unsafe impl<S: ScheduleLocal> Send for LocalNotified<S> {}

// SAFETY: a shared `LocalNotified` reaches only the state word, the task's constant place, the
// scheduler and the details. The last two are `Sync`.
unsafe impl<S: ScheduleLocal> Sync for LocalNotified<S> {}

// As for a `Notified`.
impl<S: ScheduleLocal> UnwindSafe for LocalNotified<S> {}
impl<S: ScheduleLocal> RefUnwindSafe for LocalNotified<S> {}

impl<S: ScheduleLocal> LocalNotified<S> {
    /// # Safety
    /// The caller holds the one `Notified` of a thread-local task with this scheduler.
    pub(crate) unsafe fn from_task(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    fn into_task(self) -> TaskPtr {
        ManuallyDrop::new(self).task
    }

    /// Returns the id of the list that the task belongs to. Costs no read-modify-write.
    pub fn owner_id(&self) -> OwnerId {
        OwnerId(self.owner().addr())
    }

    fn owner(&self) -> NonNull<Releases> {
        // SAFETY: a `Notified` is a reference, and the task is listed from its spawn on (rule 1).
        unsafe { list::releases(self.task) }
    }

    /// Returns the scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: a `Notified` is a reference, and `S` is its task's scheduler type.
        unsafe { cell::scheduler(self.task) }
    }

    cell::accessors!(|this| this.task);

    /// Makes a waker of the task, as [`Notified::waker`](crate::Notified::waker) does. Costs one
    /// read-modify-write.
    pub fn waker(&self) -> Waker {
        // SAFETY: a `Notified` is a reference.
        unsafe { cell::waker(self.task) }
    }

    /// Turns this value into a pointer, as [`Notified::into_raw`](crate::Notified::into_raw) does.
    /// Costs no read-modify-write.
    #[must_use = "the task leaks"]
    pub fn into_raw(self) -> NonNull<()> {
        self.into_task().cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. Costs no read-modify-write.
    ///
    /// # Safety
    /// `raw` came from `into_raw` of a `LocalNotified` of the same `S`, and was not turned back
    /// since.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: the caller promises that the one `Notified` became this pointer.
        unsafe { Self::from_task(raw.cast()) }
    }

    /// Sends the task to its list, where the owner finds it with [`LocalOwned::receive`]. Wakes the
    /// owner if this is the first task since the owner last took all tasks. Costs one
    /// read-modify-write, besides that wake.
    pub fn send(self) {
        let owner = self.owner();
        // SAFETY: the task is in that owner's list (rule 1), and this was its one `Notified`.
        unsafe { Releases::push(owner, self.into_task()) };
    }
}

impl<S: ScheduleLocal> Drop for LocalNotified<S> {
    fn drop(&mut self) {
        // SAFETY: a `Notified` is a reference.
        let duty = unsafe { self.task.as_ref() }.state.abort();
        debug_assert_eq!(duty, Duty::Nothing, "it is notified already, or runs on");
        // SAFETY: the task is in that owner's list (rule 1), and this is its one `Notified`, which
        // is not used afterwards.
        unsafe { Releases::push(self.owner(), self.task) };
    }
}

impl<S: ScheduleLocal> fmt::Debug for LocalNotified<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalNotified").field(&self.id()).finish()
    }
}

/// Identifies a [`LocalOwned`], for schedulers that have several on a thread. It takes one word,
/// and is for comparison only. An id is unique among the lists that exist and those that were
/// dropped with tasks in them.
///
/// ```
/// use std::task::Waker;
/// use task_header::{LocalNotified, LocalOwned, ScheduleLocal, WakeKind};
///
/// struct Sends;
///
/// impl ScheduleLocal for Sends {
///     fn schedule(task: LocalNotified<Self>, _: WakeKind) {
///         task.send();
///     }
/// }
///
/// let lists = [(); 2].map(|()| LocalOwned::new(Waker::noop().clone()));
/// let task = lists[1].spawn_detached(async {}, Sends);
/// assert_eq!(task.owner_id(), lists[1].owner_id());
/// assert_ne!(task.owner_id(), lists[0].owner_id());
/// # drop(task);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnerId(NonZeroUsize);

/// How a run on the owner's thread ended.
#[must_use = "a notified task that is dropped is cancelled"]
#[derive(Debug)]
pub enum LocalRan<S: ScheduleLocal> {
    /// The future is gone: it completed, panicked or was aborted.
    Complete,
    /// The future waits for a wake.
    Pending,
    /// The future was woken during its poll, or it has [yielded](crate::yield_now): queue the task
    /// again.
    Notified(LocalNotified<S>),
    /// Nothing was done: the task belongs to another list.
    NotOwned(LocalNotified<S>),
}

/// The live tasks of one thread. The list can't leave its thread, and spawns all its tasks itself.
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// fn list<S: task_header::ScheduleLocal>(list: task_header::LocalOwned<S>) {
///     send(list);
/// }
/// ```
///
/// The drop of the list cancels the idle tasks and those that were sent to the list. A task that is
/// still queued elsewhere leaks, future and cell: drop the queues before the list. The list takes
/// memory as an [`Owned`](crate::Owned) does. While the list allocates, the global allocator must
/// not use the list.
pub struct LocalOwned<S> {
    list: UnsafeCell<List>,
    /// Tasks that were taken from the stack and not yet returned by `receive`, the oldest first.
    received: Cell<Option<TaskPtr>>,
    /// Invariant in `S`: `spawn` takes an `S` and `receive` returns one, both by `&self`.
    scheduler: PhantomData<fn(S) -> S>,
    stays: PhantomData<*const ()>,
}

impl<S: ScheduleLocal> LocalOwned<S> {
    /// Makes an empty list. `owner` is woken when a task is sent to the list.
    pub fn new(owner: Waker) -> Self {
        Self {
            list: UnsafeCell::new(List::new(owner, 0, true)),
            received: Cell::new(None),
            scheduler: PhantomData,
            stays: PhantomData,
        }
    }

    /// Runs a task of this list once. Costs the same as [`Notified::run`](crate::Notified::run).
    pub fn run(&self, task: LocalNotified<S>) -> LocalRan<S> {
        if !self.owns(&task) {
            return LocalRan::NotOwned(task);
        }
        let task = task.into_task();
        // SAFETY: this was the one `Notified` of a task of this list, and so of this thread.
        match unsafe { run::run(task, || self.answer()) } {
            RunEnd::Complete => LocalRan::Complete,
            RunEnd::Pending => LocalRan::Pending,
            // SAFETY: the run returned the one `Notified`.
            RunEnd::Notified => LocalRan::Notified(unsafe { LocalNotified::from_task(task) }),
        }
    }

    /// Drops the future of a queued task of this list instead of running it.
    ///
    /// # Errors
    /// Returns the task if it belongs to another list.
    pub fn cancel(&self, task: LocalNotified<S>) -> Result<(), LocalNotified<S>> {
        if !self.owns(&task) {
            return Err(task);
        }
        // SAFETY: this was the one `Notified` of a task of this list, and so of this thread; the
        // list is borrowed by rule 4.
        unsafe { run::cancel(task.into_task(), self.keep_here()) };
        Ok(())
    }

    /// Returns whether the task belongs to this list.
    pub fn owns(&self, task: &LocalNotified<S>) -> bool {
        self.address() == task.owner()
    }

    /// Takes the oldest task that was sent to this list. A task whose `LocalNotified` was dropped
    /// was sent, too; it ends when it is run. Costs a load if there is no task, otherwise one
    /// read-modify-write for all tasks that are there.
    pub fn receive(&self) -> Option<LocalNotified<S>> {
        let task = self.receive_raw()?;
        // SAFETY: the sent task stands for its one `Notified`.
        Some(unsafe { LocalNotified::from_task(task) })
    }
}

impl<S> LocalOwned<S> {
    /// Borrows the list for the step `f`, which runs no user code (rule 4).
    fn with_list<R>(&self, f: impl FnOnce(&mut List) -> R) -> R {
        // SAFETY: the list belongs to this thread alone, and no step runs within another.
        f(unsafe { &mut *self.list.get() })
    }

    /// Returns a pointer to this list, where a task that waits is kept. The list is live while
    /// `self` is borrowed, and is borrowed one step at a time (rule 4).
    fn keep_here(&self) -> Keep {
        // SAFETY: the address of an `UnsafeCell` is not null.
        Keep::In(unsafe { NonNull::new_unchecked(self.list.get()) })
    }

    fn answer(&self) -> run::Answer {
        run::Answer {
            keep: self.keep_here(),
            again: false,
        }
    }

    /// Returns the id that the tasks of this list return as their [owner](LocalNotified::owner_id).
    pub fn owner_id(&self) -> OwnerId {
        OwnerId(self.address().addr())
    }

    fn address(&self) -> NonNull<Releases> {
        self.with_list(|list| list.releases)
    }

    fn receive_raw(&self) -> Option<TaskPtr> {
        loop {
            while let Some(task) = self.received.take() {
                // SAFETY: the task was received, so its link is this list's; `put_first` wrote it.
                self.received.set(unsafe { unlink(task) });
                // SAFETY: LISTED keeps the task alive.
                if !unsafe { task.as_ref() }.state.is_complete() {
                    return Some(task);
                }
                // The run that completed this task did not use the list. Either the task was
                // aborted at the end of the run (rule 9 of `state`), or it panicked in a build
                // without `std`.
                // SAFETY: the task is complete, in this list, and off the stack.
                let duty = self.with_list(|list| unsafe { list.release(task) });
                if let Duty::Dealloc = duty {
                    // SAFETY: no reference is left.
                    unsafe { dealloc(task) };
                }
            }
            let mut newest = self.with_list(List::take)?;
            // SAFETY: the task was just taken.
            while let Some(older) = unsafe { next_taken(newest) } {
                self.put_first(newest);
                newest = older;
            }
            self.put_first(newest);
        }
    }

    fn put_first(&self, task: TaskPtr) {
        let first = self.received.replace(Some(task));
        // SAFETY: LISTED keeps the task alive.
        let header = unsafe { task.as_ref() };
        // SAFETY: the task is off the stack, or the caller has its `Notified`; either way the link
        // is this list's.
        header.queue_next.with_mut(|link| unsafe { *link = first });
    }

    /// Aborts every task of the list. Idle tasks can be received at once; the others end where they
    /// are run next. Costs one read-modify-write per task, and one look at each word that the list
    /// has in use.
    pub fn abort_all(&self) {
        let mut next = self.with_list(|list| list.first());
        while let Some(task) = next {
            // No user code runs in this loop, so the list stays as it is.
            // SAFETY: the task is in this list, which is this thread's.
            next = self.with_list(|list| unsafe { list.after(task) });
            // SAFETY: LISTED keeps the task alive.
            if let Duty::Submit = unsafe { task.as_ref() }.state.abort() {
                self.put_first(task);
            }
        }
    }

    /// Returns the number of tasks in the list: all that were spawned and are not complete. A task
    /// that was aborted as its poll ended may be complete, and counts until the next
    /// [`receive`](Self::receive).
    pub fn len(&self) -> usize {
        self.with_list(|list| list.len())
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether [`receive`](Self::receive) would find a task. This is a hint. Costs one
    /// load.
    pub fn has_received(&self) -> bool {
        let first = self.received.get();
        first.is_some() || self.with_list(|list| list.has_releases())
    }
}

impl<S> Drop for LocalOwned<S> {
    fn drop(&mut self) {
        self.abort_all();
        // Without `std`, a panic in a future's drop unwinds through the inner guard; the outer
        // guard then cancels the rest.
        let _rest = CancelsReceived(self);
        drop(CancelsReceived(self));
    }
}

struct CancelsReceived<'a, S>(&'a LocalOwned<S>);

impl<S> Drop for CancelsReceived<'_, S> {
    fn drop(&mut self) {
        while let Some(task) = self.0.receive_raw() {
            // SAFETY: the task was received in place of its `Notified`, and is of this list and so
            // of this thread; the list is borrowed by rule 4.
            unsafe { run::cancel(task, self.0.keep_here()) };
        }
    }
}

impl<S> fmt::Debug for LocalOwned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalOwned").finish_non_exhaustive()
    }
}

/// The kind of thread-local tasks.
pub(crate) struct Here<S>(PhantomData<S>);

impl<S: ScheduleLocal> Kind for Here<S> {
    type Scheduler = S;
    const IS_LISTED: bool = true;

    unsafe fn schedule(task: TaskPtr, why: WakeKind) {
        // SAFETY: the caller promises this; tasks of this kind have this scheduler type.
        let notified = unsafe { LocalNotified::from_task(task) };
        S::schedule(notified, why);
    }

    unsafe fn panicked(task: TaskPtr, payload: &(dyn Any + Send)) {
        // SAFETY: the caller promises this; tasks of this kind have this scheduler type.
        S::panicked(unsafe { TaskRef::new(task) }, payload);
    }

    unsafe fn ended(task: TaskPtr, outcome: Outcome) {
        // SAFETY: the caller promises this; tasks of this kind have this scheduler type.
        S::ended(unsafe { TaskRef::new(task) }, outcome);
    }
}

mod spawn;

#[cfg(all(
    test,
    feature = "std",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count))
))]
mod tests;

#[cfg(all(test, feature = "std", not(selvedge_count)))]
mod models;
