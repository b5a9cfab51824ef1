//! [`Notified`], the reference to a task that a queue holds; [`Schedule`], the trait of its
//! scheduler; and `Node`, by which the lists of `queue-global` link tasks.
//!
//! This file and [`owned`](crate::owned) use each other: a run may insert its task into a list,
//! and a list runs tasks.
use crate::{
    cell::{self, Kind, Outcome, TaskPtr, TaskRef, WakeKind},
    list::{self, Keep},
    owned::Owned,
    run::{self, RunEnd},
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

/// The queue that takes a scheduler's runnable tasks.
///
/// `schedule` takes the task, not a borrow of the scheduler inside the task. So a wake by value can
/// hand its reference over, and no thread uses a cell that may be freed meanwhile. Reach the
/// scheduler with [`Notified::scheduler`]. Copy from the scheduler what you need after the task is
/// queued, because by then the task may be freed.
pub trait Schedule: Send + Sync + Sized + 'static {
    /// Queues a task. This function runs on the thread that wakes the task, and possibly inside
    /// another task's poll. If it drops the task instead, the task is cancelled on that thread.
    fn schedule(task: Notified<Self>, why: WakeKind);

    /// Reports each panic of a task's code: of its future's polls and drop, of its output's drop,
    /// of the join waker's wake and drop. The thread that caught the panic calls this method. That
    /// thread runs the task, or uses or drops a handle of the task. After the call, the payload of
    /// the future's own panic goes to the join handle; other payloads are dropped. A panic of this
    /// method is caught and dropped.
    ///
    /// Panics in the drops of a scheduler and of metadata are contained, but not reported. Without
    /// `std` no panic is caught or reported.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        let _ = (task, payload);
    }

    /// Reports the end of each task once. The thread that ends the task calls this method when the
    /// future is gone, and before the join handle can find the output. A panic of this method is
    /// caught and dropped.
    ///
    /// The default does nothing, at no cost. Without `std` no panic is caught. Then this method is
    /// not called for a task that panicked, and a panic of this method unwinds further. In both
    /// cases the join handle finds a cancelled task.
    fn ended(task: TaskRef<'_, Self>, outcome: Outcome) {
        let _ = (task, outcome);
    }
}

/// A task that was spawned or woken and waits for its run. The value takes one word.
///
/// A task never has more than one `Notified`. Dropping it cancels the task: the drop of the
/// `Notified` drops the future, and the join handle gets a [`JoinError`](crate::JoinError).
pub struct Notified<S: Schedule> {
    task: TaskPtr,
    scheduler: PhantomData<S>,
}

// SAFETY: the future is `Send` (`spawn` requires it), and only the holder of the `Notified` reaches
// the future.
unsafe impl<S: Schedule> Send for Notified<S> {}

// SAFETY: a shared `Notified` reaches only the atomic state word, the scheduler and the details.
// The last two are `Sync`.
unsafe impl<S: Schedule> Sync for Notified<S> {}

// The operations of a `Notified` consume it or only read it.
impl<S: Schedule> UnwindSafe for Notified<S> {}
impl<S: Schedule> RefUnwindSafe for Notified<S> {}

/// How a poll ended.
#[must_use = "a notified task that is dropped is cancelled"]
#[derive(Debug)]
pub enum Ran<S: Schedule> {
    /// The future is gone: it completed, panicked or was aborted.
    Complete,
    /// The future waits for a wake.
    Pending,
    /// The future was woken during its poll, by itself or by others, or it has
    /// [yielded](crate::yield_now), or the runner lets its run [go on](AfterPoll::again): queue the
    /// task again.
    Notified(Notified<S>),
}

/// The runner's answer when a poll is over. See [`Notified::run_with`].
#[derive(Debug)]
pub struct AfterPoll<'a, S> {
    /// The list that keeps the task while it waits. `None` if the task's owner is gone: then a task
    /// in no list comes back as [`Ran::Notified`], and a listed task that completes is sent to its
    /// list's owner.
    pub owned: Option<&'a mut Owned<S>>,
    /// Whether a task whose poll was `Pending` is to be polled again, as if it had woken itself:
    /// the task comes back as [`Ran::Notified`].
    ///
    /// This costs no read-modify-write. The task's next start costs none either, unless the task is
    /// woken meanwhile. A wake from within the poll would cost one, and so would the start after
    /// it. So this is the cheap way to let every task of a kind go on. A
    /// future that yields calls [`yield_now`](crate::yield_now) instead.
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

    pub(crate) fn as_task(&self) -> TaskPtr {
        self.task
    }

    #[inline]
    pub(crate) fn into_task(self) -> TaskPtr {
        ManuallyDrop::new(self).task
    }

    /// Returns the scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: a `Notified` is a reference, and `S` is its task's scheduler type.
        unsafe { cell::scheduler(self.task) }
    }

    cell::accessors!(|this| this.task);

    /// Returns the [key](Owned::with_key) of the list that keeps the task, or `None` if the task is
    /// in no list. A task is put into a list after the first poll that returned `Pending`, and
    /// stays in that list until it ends, whoever runs it.
    ///
    /// With it, a scheduler gives a woken task back to the worker that has the task in its list.
    /// Costs a load of the state word, and three more for a task in a list.
    ///
    /// ```
    /// use std::{sync::mpsc, task::Waker};
    /// use task_header::{Owned, Ran};
    ///
    /// let (sender, tasks) = mpsc::channel();
    /// let schedule = move |task| sender.send(task).unwrap();
    /// let (task, _join) = task_header::spawn(std::future::pending::<()>(), schedule);
    /// assert_eq!(task.owner_key(), None);
    /// let waker = task.waker();
    /// let mut owned = Owned::with_key(Waker::noop().clone(), 7);
    /// assert!(matches!(owned.run(task), Ran::Pending));
    /// waker.wake();
    /// let task = tasks.recv().unwrap();
    /// assert_eq!(task.owner_key(), Some(7));
    /// owned.cancel(task);
    /// ```
    pub fn owner_key(&self) -> Option<usize> {
        // SAFETY: a `Notified` is a reference.
        let is_listed = unsafe { self.task.as_ref() }.state.is_listed();
        // SAFETY: the task is listed. The wake, or the run that goes on, from which this `Notified`
        // came has acquired the end of the run that listed the task (rule 3 of `state`). The task
        // stays listed during the call, as it is not complete while it has a `Notified`.
        is_listed.then(|| unsafe { list::key(self.task) })
    }

    /// Makes a waker of the task. Costs one read-modify-write. A wake before the next run does
    /// nothing, since the task is already notified.
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use task_header::Ran;
    ///
    /// let (queue, tasks) = mpsc::channel();
    /// let schedule = move |task| queue.send(task).unwrap();
    /// let (task, join) = task_header::spawn(std::future::pending::<()>(), schedule);
    /// let waker = task.waker();
    /// assert!(matches!(task.run(), Ran::Pending));
    /// waker.wake();
    /// assert_eq!(tasks.recv().unwrap().id(), join.id());
    /// ```
    pub fn waker(&self) -> Waker {
        // SAFETY: a `Notified` is a reference.
        unsafe { cell::waker(self.task) }
    }

    /// Turns this value into a pointer, for places that have room for a pointer only: a field of
    /// another library's struct, or an `AtomicPtr`. Costs no read-modify-write.
    ///
    /// The task stays notified: until [`from_raw`](Self::from_raw) it is neither run nor cancelled.
    /// The task leaks if `from_raw` is never called. The pointer has the alignment of a `usize`, so
    /// its lowest bits are free for tags. The pointer has the provenance of the whole task: keep
    /// that provenance, with `map_addr` and the like, or expose it.
    ///
    /// ```
    /// use std::{ptr::NonNull, sync::atomic::{AtomicPtr, Ordering}};
    /// use task_header::{Ran, Runnable};
    ///
    /// let (task, join) = task_header::spawn(async { 7 }, drop);
    /// let slot = AtomicPtr::new(task.into_raw().as_ptr());
    /// let raw = NonNull::new(slot.swap(std::ptr::null_mut(), Ordering::Acquire)).unwrap();
    /// // SAFETY: the pointer came from `into_raw` of such a task, and is used once.
    /// let task = unsafe { Runnable::from_raw(raw) };
    /// assert!(matches!(task.run(), Ran::Complete));
    /// assert!(join.is_finished());
    /// ```
    #[must_use = "the task leaks"]
    #[inline]
    pub fn into_raw(self) -> NonNull<()> {
        self.into_task().cast()
    }

    /// Turns a pointer of [`into_raw`](Self::into_raw) back. Costs no read-modify-write.
    ///
    /// # Safety
    /// `raw` came from `into_raw` of a `Notified` of the same `S`, and was not turned back since.
    #[inline]
    pub unsafe fn from_raw(raw: NonNull<()>) -> Self {
        // SAFETY: the caller promises that the one `Notified` became this pointer.
        unsafe { Self::from_task(raw.cast()) }
    }

    /// Gives the task to its scheduler, as a wake does.
    pub fn schedule(self) {
        S::schedule(self, WakeKind::Wake);
    }

    /// Polls the future once. A panic of the future is caught (with `std`) and goes to the join
    /// handle.
    ///
    /// The task is put into no list: once no waker and no join handle of it is left, it is
    /// scheduled a last time, as cancelled. Use [`Owned::run`] to keep such tasks and to find them
    /// at shutdown.
    ///
    /// The start costs one read-modify-write, or none if the task has yielded
    /// ([`yield_now`](crate::yield_now)) or the runner let it go on ([`AfterPoll::again`]) and
    /// nothing has woken it in or after that poll. The end costs one for `Pending`, or none if the
    /// task comes back. A completion costs none if no handle joins and no waker is left, one
    /// otherwise, two if it wakes a join waker.
    pub fn run(self) -> Ran<S> {
        self.run_and(|| run::Answer {
            keep: Keep::Nowhere,
            again: false,
        })
    }

    /// Polls the future once, as [`Owned::run`] does. After the poll, `owned` returns the list that
    /// keeps the task. This is for owners that may move to another thread during a poll.
    ///
    /// With `None`, a task that waits and is in no list comes back as [`Ran::Notified`], to be
    /// queued again. A listed task that completes is sent to its list's owner.
    ///
    /// # Panics
    /// If `owned` panics. The task is then cancelled, unless the poll has ended it.
    #[inline]
    pub fn run_in<'a>(self, owned: impl FnOnce() -> Option<&'a mut Owned<S>>) -> Ran<S> {
        self.run_with(|| AfterPoll {
            owned: owned(),
            again: false,
        })
    }

    /// Polls the future once, as [`run_in`](Self::run_in) does. After the poll, `after` decides
    /// what to do with the task.
    ///
    /// ```
    /// # use task_header::{Notified, Schedule, WakeKind};
    /// use std::{future::poll_fn, task::{Poll, Waker}};
    /// use task_header::{AfterPoll, Owned, Ran};
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
    /// loop {
    ///     let ran = task.run_with(|| AfterPoll { owned: Some(&mut owned), again: true });
    ///     let Ran::Notified(again) = ran else { break };
    ///     task = again;
    ///     turns += 1;
    /// }
    /// assert_eq!((turns, join.is_finished()), (2, true));
    /// ```
    ///
    /// # Panics
    /// If `after` panics. The task is then cancelled, unless the poll has ended it.
    #[inline]
    pub fn run_with<'a>(self, after: impl FnOnce() -> AfterPoll<'a, S>) -> Ran<S>
    where
        S: 'a,
    {
        self.run_and(|| {
            let AfterPoll { owned, again } = after();
            // The borrow outlives this call, and no other borrow exists.
            let keep = owned.map_or(Keep::Requeue, Owned::keep_here);
            run::Answer { keep, again }
        })
    }

    /// Polls the future once, as [`run_in`](Self::run_in) does, for the loop of a worker.
    ///
    /// Call this while no task is [current](crate::current()). A loop that may be called in the
    /// poll of another task runs in [`without_current`](crate::without_current). Otherwise that
    /// task loses its id, and a [yield](crate::yield_now) that it has made in this poll, so it may
    /// never be polled again. Debug builds check this. [`run_in`](Self::run_in) has no such rule,
    /// and costs two more accesses to a thread-local.
    ///
    /// # Panics
    /// If `owned` panics. The task is then cancelled, unless the poll has ended it. In debug builds
    /// also if a task is current: then the task is cancelled without a poll.
    #[inline]
    #[track_caller]
    pub fn run_in_loop<'a>(self, owned: impl FnOnce() -> Option<&'a mut Owned<S>>) -> Ran<S> {
        #[cfg(feature = "std")]
        debug_assert_eq!(crate::current(), None, "it would lose its yield");
        let task = self.into_task();
        let answer = || run::Answer {
            keep: owned().map_or(Keep::Requeue, Owned::keep_here),
            again: false,
        };
        // SAFETY: this was the one `Notified`, and is consumed.
        let end = unsafe { run::run_in_loop(task, answer) };
        // SAFETY: the run has just returned this.
        unsafe { Self::ran(task, end) }
    }

    #[inline]
    fn run_and(self, answer: impl FnOnce() -> run::Answer) -> Ran<S> {
        let task = self.into_task();
        // SAFETY: this was the one `Notified`, and is consumed.
        let end = unsafe { run::run(task, answer) };
        // SAFETY: the run has just returned this.
        unsafe { Self::ran(task, end) }
    }

    /// # Safety
    /// A run of this task has just returned `end`.
    #[inline(always)]
    unsafe fn ran(task: TaskPtr, end: RunEnd) -> Ran<S> {
        match end {
            RunEnd::Complete => Ran::Complete,
            RunEnd::Pending => Ran::Pending,
            // SAFETY: the run returned the one `Notified`, by the caller's promise.
            RunEnd::Notified => Ran::Notified(unsafe { Self::from_task(task) }),
        }
    }
}

impl<S: Schedule> Drop for Notified<S> {
    fn drop(&mut self) {
        // SAFETY: this is the one `Notified`, and it is not used afterwards.
        unsafe { run::cancel(self.task, Keep::Nowhere) };
    }
}

impl<S: Schedule> fmt::Debug for Notified<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notified").field(&self.id()).finish()
    }
}

/// The kind of tasks that any thread may run.
pub(crate) struct Anywhere<S>(PhantomData<S>);

impl<S: Schedule> Kind for Anywhere<S> {
    type Scheduler = S;

    unsafe fn schedule(task: TaskPtr, why: WakeKind) {
        // SAFETY: the caller promises this; tasks of this kind have this scheduler type.
        let notified = unsafe { Notified::from_task(task) };
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

/// The node type for lists and injectors of tasks with scheduler `S`: `List<Node<S>>`,
/// `Injector<Node<S>>`.
#[cfg(feature = "queue-global")]
#[repr(transparent)]
pub struct Node<S> {
    _header: crate::cell::Header,
    scheduler: PhantomData<S>,
}

// SAFETY: a handle is the one `Notified` of its task. So a pointer made from it is unique while the
// task is queued, and keeps the task alive. Only the holder of that pointer uses the link.
#[cfg(feature = "queue-global")]
unsafe impl<S: Schedule> queue_global::Linked for Node<S> {
    type Handle = Notified<S>;

    fn into_ptr(handle: Notified<S>) -> NonNull<Self> {
        ManuallyDrop::new(handle).task.cast()
    }

    unsafe fn from_ptr(node: NonNull<Self>) -> Notified<S> {
        // By the caller's promise `into_ptr` made this pointer of the one `Notified`.
        Notified {
            task: node.cast(),
            scheduler: PhantomData,
        }
    }

    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        let task: TaskPtr = node.cast();
        // SAFETY: a queued task is live.
        let header = unsafe { task.as_ref() };
        // SAFETY: the caller owns the queued node.
        let next = header.queue_next.with(|next| unsafe { *next });
        next.map(NonNull::cast)
    }

    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        let task: TaskPtr = node.cast();
        // SAFETY: a queued task is live.
        let header = unsafe { task.as_ref() };
        let next = next.map(NonNull::cast);
        // SAFETY: the caller owns the queued node.
        header.queue_next.with_mut(|link| unsafe { *link = next });
    }
}

#[cfg(all(test, feature = "queue-global", feature = "conformance"))]
mod models;
