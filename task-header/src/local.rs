//! Tasks of one thread: their futures need not be `Send`, and are polled and dropped where they were spawned.
//!
//! 1. A task is put into its owner's list when it is spawned, `LISTED` from the start, and stays in it until it is complete. So
//!    it never becomes an orphan, and its owner's stack, which outlives what is in the list, is there for every `LocalNotified`.
//! 2. A `LocalNotified` may be in any thread's hands, since any thread may wake. All that it can do there is to be queued, and to be sent
//!    to its owner over the stack. Its drop aborts the task and sends it: the owner's run of it drops the future.
//! 3. Only [`LocalOwned`] runs a task, after comparing the task's owner with itself. It can't leave its thread, so that a future is
//!    touched by one thread alone.
//! 4. The list is borrowed for a step at a time, in which no code of users runs but the allocator's; so a task may spawn, run others and cancel, from within its poll.
use crate::{
    allocate::allocate,
    cell::{self, Detached, Join, JoinWaker, Kind, Outcome, TaskPtr, WakeKind, header},
    complete::dealloc,
    details::Details,
    join::JoinHandle,
    list::{self, Keep, List},
    releases::{Releases, next_taken, unlink},
    run::{self, RunEnd},
    state::{Duty, State},
    task_ref::TaskRef,
};
use core::{
    any::Any,
    cell::{Cell, UnsafeCell},
    fmt,
    future::Future,
    marker::PhantomData,
    mem::ManuallyDrop,
    num::NonZeroUsize,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::Waker,
};

/// Where the tasks of one thread go when they are to run.
///
/// As [`Schedule`](crate::Schedule), for tasks whose futures stay on their thread.
pub trait ScheduleLocal: Send + Sync + Sized + 'static {
    /// Queues a task. Runs wherever the task is woken, as a rule on another thread than the task's:
    /// then the task has to get back, and [`LocalNotified::send`] is one way.
    fn schedule(task: LocalNotified<Self>, why: WakeKind);

    /// Hears of each panic of a task's code, as [`Schedule::panicked`](crate::Schedule::panicked): as a rule on the task's thread, but a join handle may be anywhere.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        let _ = (task, payload);
    }

    /// Called once for each task when its future is gone, as
    /// [`Schedule::ended`](crate::Schedule::ended).
    fn ended(task: TaskRef<'_, Self>, outcome: Outcome) {
        let _ = (task, outcome);
    }
}

/// A task of one thread that was spawned or woken and waits for its run. One word.
///
/// It may be queued anywhere, but only its list can run it, on that list's thread. Dropping it cancels the task: there, too, when the owner
/// next looks at what it was sent.
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

// SAFETY: it reaches the state word, the scheduler, which is `Send + Sync`, and the owner's stack; never the future.
unsafe impl<S: ScheduleLocal> Send for LocalNotified<S> {}

// SAFETY: a shared one reaches only the scheduler, which is `Sync`, and the details, which are too.
unsafe impl<S: ScheduleLocal> Sync for LocalNotified<S> {}

// As a `Notified`.
impl<S: ScheduleLocal> UnwindSafe for LocalNotified<S> {}
impl<S: ScheduleLocal> RefUnwindSafe for LocalNotified<S> {}

impl<S: ScheduleLocal> LocalNotified<S> {
    /// # Safety
    /// The caller holds the one `Notified` of a task of one thread with this scheduler.
    pub(crate) unsafe fn from_task(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    fn into_task(self) -> TaskPtr {
        ManuallyDrop::new(self).task
    }

    /// The list that the task belongs to. No read-modify-write.
    pub fn owner_id(&self) -> OwnerId {
        OwnerId(self.owner().addr())
    }

    fn owner(&self) -> NonNull<Releases> {
        // SAFETY: a `Notified` is a reference, and the task is listed from the spawn on (rule 1).
        unsafe { list::releases(self.task) }
    }

    /// The scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: a `Notified` is a reference, and `S` its task's scheduler.
        unsafe { cell::scheduler(self.task) }
    }

    cell::accessors!(|this| this.task);

    /// A waker of the task, as [`Notified::waker`](crate::Notified::waker). One read-modify-write.
    pub fn waker(&self) -> Waker {
        // SAFETY: a `Notified` is a reference.
        unsafe { cell::waker(self.task) }
    }

    /// Turns this into a pointer, as [`Notified::into_raw`](crate::Notified::into_raw). No
    /// read-modify-write.
    #[must_use = "the task leaks"]
    pub fn into_raw(self) -> NonNull<()> {
        self.into_task().cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. No read-modify-write.
    ///
    /// # Safety
    /// `raw` came from `into_raw` of a `LocalNotified` of this very `S`, and was not turned back
    /// since.
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: passed on: the one `Notified` became this pointer.
        unsafe { Self::from_task(raw.cast()) }
    }

    /// Sends the task to its list, whose owner is woken and finds it with [`LocalOwned::receive`]. One
    /// read-modify-write, and the wake if it is the first since the owner looked.
    pub fn send(self) {
        let owner = self.owner();
        // SAFETY: in that owner's list (rule 1), and this was the one `Notified`.
        unsafe { Releases::push(owner, self.into_task()) };
    }
}

impl<S: ScheduleLocal> Drop for LocalNotified<S> {
    fn drop(&mut self) {
        // SAFETY: a `Notified` is a reference.
        let duty = unsafe { header(self.task) }.state.abort();
        debug_assert_eq!(duty, Duty::Nothing, "it is notified already, or runs on");
        // SAFETY: in that owner's list (rule 1), and this is the one `Notified`, which goes.
        unsafe { Releases::push(self.owner(), self.task) };
    }
}

impl<S: ScheduleLocal> fmt::Debug for LocalNotified<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LocalNotified").field(&self.id()).finish()
    }
}

/// Identifies a [`LocalOwned`], for schedulers that have several on a thread. One word, compared
/// only; unique among the lists that exist, and those that were dropped with tasks in them.
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

/// How a run on the task's thread ended.
#[must_use = "a notified task that is dropped is cancelled"]
#[derive(Debug)]
pub enum LocalRan<S: ScheduleLocal> {
    /// The future is done, by completion, panic or abort.
    Complete,
    /// The future waits for a wake.
    Pending,
    /// The future was woken during its poll: queue it again.
    Notified(LocalNotified<S>),
    /// Nothing was done: the task is another list's.
    NotOwned(LocalNotified<S>),
}

/// The live tasks of one thread. It can't leave its thread, and all its tasks were spawned through it.
///
/// ```compile_fail,E0277
/// fn send<T: Send>(_: T) {}
/// fn list<S: task_header::ScheduleLocal>(list: task_header::LocalOwned<S>) {
///     send(list);
/// }
/// ```
///
/// Its drop cancels the tasks that are idle or on their way to it. One that is still queued elsewhere is never dropped, nor its cell freed:
/// drop the queues before the list. It takes memory as an [`Owned`](crate::Owned) does, and the global allocator
/// must not use the list that asks it for some.
pub struct LocalOwned<S> {
    list: UnsafeCell<List>,
    /// What was taken from the stack and not given out yet, the oldest first.
    received: Cell<Option<TaskPtr>>,
    /// Invariant: `spawn` takes an `S` in and `receive` gives one out, both by `&self`.
    scheduler: PhantomData<fn(S) -> S>,
    stays: PhantomData<*const ()>,
}

impl<S: ScheduleLocal> LocalOwned<S> {
    /// An empty list. `owner` is woken when a task comes over the stack.
    pub fn new(owner: Waker) -> Self {
        Self {
            list: UnsafeCell::new(List::new(owner, true)),
            received: Cell::new(None),
            scheduler: PhantomData,
            stays: PhantomData,
        }
    }

    /// A new task, to be run or queued, and the handle to wait for it. One allocation, and one for the list now and then; no read-modify-write.
    #[inline]
    pub fn spawn<F>(&self, future: F, scheduler: S) -> (LocalNotified<S>, JoinHandle<F::Output>)
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        // SAFETY: future and output live for ever.
        unsafe { self.spawn_unchecked(future, scheduler) }
    }

    /// A new task that nobody waits for.
    #[inline]
    pub fn spawn_detached<F>(&self, future: F, scheduler: S) -> LocalNotified<S>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        // SAFETY: future and output live for ever.
        unsafe { self.spawn_detached_unchecked(future, scheduler) }
    }

    /// As [`spawn`](Self::spawn), of a future that need not live for ever, and nor need its output.
    /// Costs as that does.
    ///
    /// A type that owns such a list is sound if it has an invariant lifetime and an `impl Drop`, be
    /// that empty: only for a type with one does the compiler demand that the lifetime outlives the
    /// drop, and so the list's. Where it is forgotten its tasks leak, and nobody else can run or
    /// drop them.
    ///
    /// ```
    /// use std::{future::Future, marker::PhantomData, task::Waker};
    /// use task_header::{JoinHandle, LocalNotified, LocalOwned, ScheduleLocal, WakeKind};
    ///
    /// struct Home;
    ///
    /// impl ScheduleLocal for Home {
    ///     fn schedule(task: LocalNotified<Self>, _: WakeKind) {
    ///         task.send();
    ///     }
    /// }
    ///
    /// struct LocalExecutor<'a> {
    ///     list: LocalOwned<Home>,
    ///     lifetime: PhantomData<fn(&'a ()) -> &'a ()>,
    /// }
    ///
    /// impl<'a> LocalExecutor<'a> {
    ///     fn spawn<T: 'a>(&self, future: impl Future<Output = T> + 'a) -> JoinHandle<T> {
    ///         // SAFETY: whoever uses the list has the executor, and so `'a` has not ended.
    ///         let (task, join) = unsafe { self.list.spawn_unchecked(future, Home) };
    ///         task.send();
    ///         join
    ///     }
    ///
    ///     fn run(&self) {
    ///         while let Some(task) = self.list.receive() {
    ///             // What was woken in its poll is not polled again, in this example.
    ///             drop(self.list.run(task));
    ///         }
    ///     }
    /// }
    ///
    /// impl Drop for LocalExecutor<'_> {
    ///     fn drop(&mut self) {}
    /// }
    ///
    /// let mut sum = 0;
    /// let list = LocalOwned::new(Waker::noop().clone());
    /// let executor = LocalExecutor { list, lifetime: PhantomData };
    /// drop(executor.spawn(async { sum += 1 }));
    /// executor.run();
    /// drop(executor);
    /// assert_eq!(sum, 1);
    /// ```
    ///
    /// # Safety
    /// The future is polled and dropped by this list's [`run`](Self::run), [`cancel`](Self::cancel)
    /// and drop alone, and so is its output, unless the handle has it. What they borrow is there
    /// whenever one of these gets the task: the task ends before what it borrows does, or the list
    /// is not used, and never dropped, after that.
    #[inline]
    pub unsafe fn spawn_unchecked<F: Future>(
        &self,
        future: F,
        scheduler: S,
    ) -> (LocalNotified<S>, JoinHandle<F::Output>) {
        // SAFETY: passed on.
        unsafe { self.spawn_with(future, scheduler, ()) }
    }

    /// As [`spawn_detached`](Self::spawn_detached), of a future that need not live for ever.
    ///
    /// # Safety
    /// As for [`spawn_unchecked`](Self::spawn_unchecked).
    #[inline]
    pub unsafe fn spawn_detached_unchecked<F: Future>(
        &self,
        future: F,
        scheduler: S,
    ) -> LocalNotified<S> {
        // SAFETY: passed on.
        unsafe { self.spawn_detached_with(future, scheduler, ()) }
    }

    /// As [`spawn_unchecked`](Self::spawn_unchecked), with what a builder was told.
    ///
    /// # Safety
    /// As for that.
    #[inline(always)]
    pub(crate) unsafe fn spawn_with<F: Future, D: Details>(
        &self,
        future: F,
        scheduler: S,
        details: D,
    ) -> (LocalNotified<S>, JoinHandle<F::Output>) {
        let task = self.adopt::<F, JoinWaker, D>(future, scheduler, details);
        // SAFETY: a new task has one `Notified`.
        let notified = unsafe { LocalNotified::from_task(task) };
        // SAFETY: made with a join handle, which is this.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
    }

    /// As [`spawn_detached_unchecked`](Self::spawn_detached_unchecked), with what a builder was told.
    ///
    /// # Safety
    /// As for that.
    #[inline(always)]
    pub(crate) unsafe fn spawn_detached_with<F: Future, D: Details>(
        &self,
        future: F,
        scheduler: S,
        details: D,
    ) -> LocalNotified<S> {
        let task = self.adopt::<F, Detached, D>(future, scheduler, details);
        // SAFETY: a new task has one `Notified`.
        unsafe { LocalNotified::from_task(task) }
    }

    #[inline]
    fn adopt<F: Future, J: Join, D: Details>(
        &self,
        future: F,
        scheduler: S,
        details: D,
    ) -> TaskPtr {
        let state = State::new_listed(J::IS_JOINED);
        let task = allocate::<F, Here<S>, J, D>(future, scheduler, details, state);
        // SAFETY: new, and in no list.
        self.with_list(|list| unsafe { list.insert(task) });
        task
    }

    /// Runs a task of this list once. Costs as [`Notified::run`](crate::Notified::run) does.
    pub fn run(&self, task: LocalNotified<S>) -> LocalRan<S> {
        if !self.owns(&task) {
            return LocalRan::NotOwned(task);
        }
        let task = task.into_task();
        // SAFETY: this was the one `Notified`, of a task of this list and so of this thread.
        match unsafe { run::run(task, || self.after()) } {
            RunEnd::Complete => LocalRan::Complete,
            RunEnd::Pending => LocalRan::Pending,
            // SAFETY: the run gave the one `Notified` back.
            RunEnd::Notified => LocalRan::Notified(unsafe { LocalNotified::from_task(task) }),
        }
    }

    /// Drops the future of a queued task of this list in place of running it.
    ///
    /// # Errors
    /// Gives the task back if it is another list's.
    pub fn cancel(&self, task: LocalNotified<S>) -> Result<(), LocalNotified<S>> {
        if !self.owns(&task) {
            return Err(task);
        }
        // SAFETY: this was the one `Notified`, of a task of this list and so of this thread; rule 4.
        unsafe { run::cancel(task.into_task(), self.keep()) };
        Ok(())
    }

    /// Whether the task is this list's.
    pub fn owns(&self, task: &LocalNotified<S>) -> bool {
        self.address() == task.owner()
    }

    /// The next task that was sent to this list, the oldest first; also those whose `LocalNotified` was dropped, which
    /// end when they are run. A load if there is none, else one read-modify-write for all that are there.
    pub fn receive(&self) -> Option<LocalNotified<S>> {
        let task = self.receive_raw()?;
        // SAFETY: it was sent in place of the one `Notified`.
        Some(unsafe { LocalNotified::from_task(task) })
    }
}

impl<S> LocalOwned<S> {
    /// Rule 4: `f` is a step that runs no code of users.
    fn with_list<R>(&self, f: impl FnOnce(&mut List) -> R) -> R {
        // SAFETY: this thread's alone, and no step runs within another.
        f(unsafe { &mut *self.list.get() })
    }

    /// This list, which is live while `self` is borrowed, and borrowed a step at a time (rule 4).
    fn keep(&self) -> Keep {
        // SAFETY: the cell's place is not at null.
        Keep::In(unsafe { NonNull::new_unchecked(self.list.get()) })
    }

    fn after(&self) -> run::After {
        run::After {
            keep: self.keep(),
            again: false,
        }
    }

    /// What its tasks name as their [owner](LocalNotified::owner_id).
    pub fn owner_id(&self) -> OwnerId {
        OwnerId(self.address().addr())
    }

    fn address(&self) -> NonNull<Releases> {
        self.with_list(|list| list.releases)
    }

    fn receive_raw(&self) -> Option<TaskPtr> {
        loop {
            while let Some(task) = self.received.take() {
                // SAFETY: received, so its link is this list's; `put_first` wrote it.
                self.received.set(unsafe { unlink(task) });
                // SAFETY: LISTED keeps it alive.
                if !unsafe { header(task) }.state.is_complete() {
                    return Some(task);
                }
                // Without `std` a panic ends a run without its list.
                // SAFETY: complete, in this list, and off the stack.
                let duty = self.with_list(|list| unsafe { list.release(task) });
                if let Duty::Dealloc = duty {
                    // SAFETY: no reference is left.
                    unsafe { dealloc(task) };
                }
            }
            let mut newest = self.with_list(List::take)?;
            // SAFETY: just taken.
            while let Some(older) = unsafe { next_taken(newest) } {
                self.put_first(newest);
                newest = older;
            }
            self.put_first(newest);
        }
    }

    fn put_first(&self, task: TaskPtr) {
        let first = self.received.replace(Some(task));
        // SAFETY: LISTED keeps it alive.
        let header = unsafe { header(task) };
        // SAFETY: off the stack, or the caller has its `Notified`: the link is this list's.
        header.queue_next.with_mut(|link| unsafe { *link = first });
    }

    /// Aborts every task of the list. The idle ones are received at once; the others end where they turn up.
    /// One read-modify-write a task, and a look at a word for each that there was at a time.
    pub fn abort_all(&self) {
        let mut next = self.with_list(|list| list.first());
        while let Some(task) = next {
            // No code of users runs in this loop, so that the list stays as it is.
            // SAFETY: in this list, which is this thread's.
            next = self.with_list(|list| unsafe { list.after(task) });
            // SAFETY: LISTED keeps it alive.
            if let Duty::Submit = unsafe { header(task) }.state.abort() {
                self.put_first(task);
            }
        }
    }

    /// Tasks in the list: all that were spawned and are not done.
    pub fn len(&self) -> usize {
        self.with_list(|list| list.len())
    }

    /// Whether no task is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether [`receive`](Self::receive) would find something. A hint, of one load.
    pub fn has_received(&self) -> bool {
        let first = self.received.get();
        first.is_some() || self.with_list(|list| list.has_releases())
    }
}

impl<S> Drop for LocalOwned<S> {
    fn drop(&mut self) {
        self.abort_all();
        // Without `std` a panic of a future's drop goes on, past the inner one: the outer one cancels the rest.
        let _rest = CancelsReceived(self);
        drop(CancelsReceived(self));
    }
}

struct CancelsReceived<'a, S>(&'a LocalOwned<S>);

impl<S> Drop for CancelsReceived<'_, S> {
    fn drop(&mut self) {
        while let Some(task) = self.0.receive_raw() {
            // SAFETY: received in place of its `Notified`; a task of this list and so of this thread; rule 4.
            unsafe { run::cancel(task, self.0.keep()) };
        }
    }
}

impl<S> fmt::Debug for LocalOwned<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalOwned").finish_non_exhaustive()
    }
}

/// Tasks of one thread.
pub(crate) struct Here<S>(PhantomData<S>);

impl<S: ScheduleLocal> Kind for Here<S> {
    type Scheduler = S;

    unsafe fn schedule(task: TaskPtr, why: WakeKind) {
        // SAFETY: passed on; tasks of this kind have this scheduler.
        let notified = unsafe { LocalNotified::from_task(task) };
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

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;

#[cfg(all(test, feature = "std"))]
mod models;
