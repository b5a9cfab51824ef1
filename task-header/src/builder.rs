//! Tasks with more to them than a future.
use crate::{
    allocate::allocate,
    cell::{Detached, Join, JoinWaker, Kind, TaskPtr},
    closure::{ByClosure, Runnable},
    details::{Details, Located, Named, With},
    join::JoinHandle,
    local::{LocalNotified, LocalOwned, ScheduleLocal},
    notified::{Anywhere, Notified, Schedule},
    state::State,
};
use alloc::borrow::Cow;
use core::{any::Any, future::Future, panic::Location};

/// Spawns tasks that have a name, that know where they were spawned, or that carry data of the user's.
///
/// What a builder is told is in the task's allocation, and in its type until then: a task takes the bytes that were asked
/// for and no more, and is of the same type as every other of its scheduler. Whoever holds the task or a handle can ask.
///
/// ```
/// use task_header::Builder;
///
/// struct Group(u32);
///
/// let (task, join) = Builder::new()
///     .name("reader")
///     .metadata(Group(7))
///     .here()
///     .spawn_with(async {}, |task| drop(task.run()));
/// assert_eq!(task.name(), Some("reader"));
/// assert_eq!(join.metadata::<Group>().unwrap().0, 7);
/// assert_eq!(join.location().unwrap().file(), file!());
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a builder does nothing until it spawns"]
pub struct Builder<D = ()> {
    details: D,
}

impl Builder {
    /// A builder of plain tasks.
    pub const fn new() -> Self {
        Self { details: () }
    }
}

impl<D: Details> Builder<D> {
    /// Gives the task a name: 24 bytes.
    pub fn name(self, name: impl Into<Cow<'static, str>>) -> Builder<Named<D>> {
        Builder {
            details: Named {
                name: name.into(),
                rest: self.details,
            },
        }
    }

    /// Lets the task know the caller's place in the source: 8 bytes.
    #[track_caller]
    pub fn here(self) -> Builder<Located<D>> {
        self.location(Location::caller())
    }

    /// As [`here`](Self::here), for a place further up.
    pub fn location(self, location: &'static Location<'static>) -> Builder<Located<D>> {
        Builder {
            details: Located {
                location,
                rest: self.details,
            },
        }
    }

    /// Gives the task data of the user's, dropped where the task is freed: by any thread. A second call hides the first.
    /// A panic of its drop is contained; two at once, of two calls' data, end the process.
    pub fn metadata<M: Any + Send + Sync>(self, metadata: M) -> Builder<With<M, D>> {
        Builder {
            details: With {
                metadata,
                rest: self.details,
            },
        }
    }

    #[inline]
    fn allocate<F: Future, K: Kind, J: Join>(self, future: F, scheduler: K::Scheduler) -> TaskPtr {
        let state = State::new(J::IS_JOINED);
        allocate::<F, K, J, D>(future, scheduler, self.details, state)
    }

    /// As [`new`](crate::new).
    #[inline]
    pub fn spawn<F, S>(self, future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        S: Schedule,
    {
        // SAFETY: future and output may be touched on any thread, at any time.
        unsafe { self.spawn_unchecked(future, scheduler) }
    }

    /// As [`spawn`](Self::spawn), of a future that need not be `Send`, nor live for ever, and nor
    /// need its output. Costs as that does.
    ///
    /// `scope` of the crate `task-set` needs no `unsafe`. This is for executors that borrow, as
    /// `Executor<'a>`: the repository's `tests/executor.rs` is one.
    ///
    /// ```
    /// use task_header::{Builder, Ran};
    ///
    /// let mut count = 0;
    /// let future = async { count += 1 };
    /// # struct Nowhere;
    /// # impl task_header::Schedule for Nowhere {
    /// #     fn schedule(_: task_header::Notified<Self>, _: task_header::WakeKind) {}
    /// # }
    /// // SAFETY: run to its end below, on this thread, while `count` is there.
    /// let (task, join) = unsafe { Builder::new().spawn_unchecked(future, Nowhere) };
    /// assert!(matches!(task.run(), Ran::Complete));
    /// drop(join);
    /// assert_eq!(count, 1);
    /// ```
    ///
    /// # Safety
    /// The future is polled and dropped by runs of the task's [`Notified`] alone, by the drop of
    /// that, and by [`Owned::cancel`](crate::Owned::cancel) and
    /// [`Owned::cancel_all`](crate::Owned::cancel_all). Its output is dropped there, too, unless
    /// the handle has it. The caller sees to it that each of these
    /// - is on this thread, unless the future and its output are `Send`;
    /// - comes before what the future or its output borrows ends. A `Notified` that is left then is
    ///   leaked.
    ///
    /// Wakers and abort handles touch neither: they may be anywhere, for ever. But a wake, an abort
    /// and the drop of the last waker or handle give the `Notified` to the scheduler at any time,
    /// so that its [`Schedule::schedule`] must neither run nor drop it there, and nor must a panic
    /// in it. A join handle stays within its type: it is `Send` only if the output is, and does not
    /// outlive it.
    #[inline(always)]
    pub unsafe fn spawn_unchecked<F, S>(
        self,
        future: F,
        scheduler: S,
    ) -> (Notified<S>, JoinHandle<F::Output>)
    where
        F: Future,
        S: Schedule,
    {
        let task = self.allocate::<F, Anywhere<S>, JoinWaker>(future, scheduler);
        // SAFETY: a new task has one `Notified`.
        let notified = unsafe { Notified::from_task(task) };
        // SAFETY: made with a join handle, which is this.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
    }

    /// As [`new_detached`](crate::new_detached).
    #[inline]
    pub fn spawn_detached<F, S>(self, future: F, scheduler: S) -> Notified<S>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        S: Schedule,
    {
        // SAFETY: future and output may be touched on any thread, at any time.
        unsafe { self.spawn_detached_unchecked(future, scheduler) }
    }

    /// As [`spawn_detached`](Self::spawn_detached), of a future that need not be `Send`, nor live
    /// for ever.
    ///
    /// # Safety
    /// As for [`spawn_unchecked`](Self::spawn_unchecked). The output is always dropped where the
    /// task completes.
    #[inline(always)]
    pub unsafe fn spawn_detached_unchecked<F, S>(self, future: F, scheduler: S) -> Notified<S>
    where
        F: Future,
        S: Schedule,
    {
        let task = self.allocate::<F, Anywhere<S>, Detached>(future, scheduler);
        // SAFETY: a new task has one `Notified`.
        unsafe { Notified::from_task(task) }
    }

    /// As [`spawn`](crate::spawn).
    #[inline]
    pub fn spawn_with<F, C>(self, future: F, schedule: C) -> (Runnable, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        C: Fn(Runnable) + Send + Sync + 'static,
    {
        // SAFETY: future, output and closure may be touched on any thread, at any time.
        unsafe { self.spawn_with_unchecked(future, schedule) }
    }

    /// As [`spawn_with`](Self::spawn_with), of a future and a closure that need not be `Send`, nor
    /// live for ever. See [`spawn_unchecked`](crate::spawn_unchecked).
    ///
    /// # Safety
    /// As for [`spawn_unchecked`](Self::spawn_unchecked). And each [`Runnable`], waker and handle
    /// of the task may call the closure, and drop it with the last of them: they all
    /// - stay on this thread, unless the closure is `Send` and `Sync`;
    /// - are gone, or leaked, when what the closure borrows ends.
    #[inline(always)]
    pub unsafe fn spawn_with_unchecked<F, C>(
        self,
        future: F,
        schedule: C,
    ) -> (Runnable, JoinHandle<F::Output>)
    where
        F: Future,
        C: Fn(Runnable),
    {
        let task = self.allocate::<F, ByClosure<C>, JoinWaker>(future, schedule);
        // SAFETY: a new task has one `Notified`.
        let notified = unsafe { Notified::from_task(task) };
        // SAFETY: made with a join handle, which is this.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
    }

    /// As [`LocalOwned::spawn`].
    #[inline]
    pub fn spawn_local<F, S>(
        self,
        list: &LocalOwned<S>,
        future: F,
        scheduler: S,
    ) -> (LocalNotified<S>, JoinHandle<F::Output>)
    where
        F: Future + 'static,
        F::Output: 'static,
        S: ScheduleLocal,
    {
        // SAFETY: future and output live for ever.
        unsafe { self.spawn_local_unchecked(list, future, scheduler) }
    }

    /// As [`LocalOwned::spawn_unchecked`].
    ///
    /// # Safety
    /// As for that.
    #[inline(always)]
    pub unsafe fn spawn_local_unchecked<F, S>(
        self,
        list: &LocalOwned<S>,
        future: F,
        scheduler: S,
    ) -> (LocalNotified<S>, JoinHandle<F::Output>)
    where
        F: Future,
        S: ScheduleLocal,
    {
        // SAFETY: passed on.
        unsafe { list.spawn_with(future, scheduler, self.details) }
    }

    /// As [`LocalOwned::spawn_detached`].
    #[inline]
    pub fn spawn_local_detached<F, S>(
        self,
        list: &LocalOwned<S>,
        future: F,
        scheduler: S,
    ) -> LocalNotified<S>
    where
        F: Future + 'static,
        F::Output: 'static,
        S: ScheduleLocal,
    {
        // SAFETY: future and output live for ever.
        unsafe { self.spawn_local_detached_unchecked(list, future, scheduler) }
    }

    /// As [`LocalOwned::spawn_detached_unchecked`].
    ///
    /// # Safety
    /// As for that.
    #[inline(always)]
    pub unsafe fn spawn_local_detached_unchecked<F, S>(
        self,
        list: &LocalOwned<S>,
        future: F,
        scheduler: S,
    ) -> LocalNotified<S>
    where
        F: Future,
        S: ScheduleLocal,
    {
        // SAFETY: passed on.
        unsafe { list.spawn_detached_with(future, scheduler, self.details) }
    }
}
