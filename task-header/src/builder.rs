//! The builder of tasks that carry more than a future.
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

/// Spawns tasks that have a name, know where they were spawned, or carry user data.
///
/// The builder's values are in the task's allocation, and only the builder's own type names their
/// types. So a task takes no bytes for values that it does not have. Its handles have the same type
/// as those of every other task of its scheduler. The holder of the task or of a handle can read
/// the values.
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
    /// Makes a builder of plain tasks.
    pub const fn new() -> Self {
        Self { details: () }
    }
}

impl<D: Details> Builder<D> {
    /// Gives the task a name. This adds 24 bytes to the task.
    pub fn name(self, name: impl Into<Cow<'static, str>>) -> Builder<Named<D>> {
        Builder {
            details: Named {
                name: name.into(),
                rest: self.details,
            },
        }
    }

    /// Records in the task the caller's place in the source. This adds 8 bytes to the task.
    #[track_caller]
    pub fn here(self) -> Builder<Located<D>> {
        self.location(Location::caller())
    }

    /// Records `location` in the task, where [`here`](Self::here) would record the caller's place.
    pub fn location(self, location: &'static Location<'static>) -> Builder<Located<D>> {
        Builder {
            details: Located {
                location,
                rest: self.details,
            },
        }
    }

    /// Gives the task user data. The data is dropped when the task is freed, on the thread that
    /// frees the task. The data of a second call hides that of the first. A panic in the drop of
    /// the data is contained. If the data of two calls panics in both drops, the process ends.
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

    /// Spawns a task as [`new`](crate::new) does.
    #[inline]
    pub fn spawn<F, S>(self, future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        S: Schedule,
    {
        // SAFETY: the future and its output are `Send` and `'static`, so any thread may touch them
        // at any time.
        unsafe { self.spawn_unchecked(future, scheduler) }
    }

    /// Spawns a task as [`spawn`](Self::spawn) does, at the same cost; the future need not be
    /// `Send`, and neither the future nor its output need be `'static`.
    ///
    /// `scope` of the crate `task-set` needs no `unsafe`. This method is for executors that borrow,
    /// such as an `Executor<'a>`: the repository's `tests/executor.rs` is one.
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
    /// // SAFETY: the task runs to its end below, on this thread, while `count` exists.
    /// let (task, join) = unsafe { Builder::new().spawn_unchecked(future, Nowhere) };
    /// assert!(matches!(task.run(), Ran::Complete));
    /// drop(join);
    /// assert_eq!(count, 1);
    /// ```
    ///
    /// # Safety
    /// The future is polled and dropped only by runs of the task's [`Notified`], by the drop of
    /// that `Notified`, and by [`Owned::cancel`](crate::Owned::cancel),
    /// [`Owned::cancel_all`](crate::Owned::cancel_all) and
    /// [`Owned::cancel_all_and`](crate::Owned::cancel_all_and). These actions also drop the output,
    /// unless the join handle has it. The caller ensures that each of these actions
    /// - is on this thread, unless the future and its output are `Send`;
    /// - happens before the borrows of the future and the output end. A `Notified` that is left by
    ///   then must be leaked.
    ///
    /// Wakers and abort handles touch neither the future nor the output: they may be anywhere,
    /// forever. But a wake, an abort and the drop of the last waker or handle may give the
    /// `Notified` to the scheduler at any time. So [`Schedule::schedule`] of `S` must neither run
    /// nor drop the `Notified`. It must not panic either, since a panic would drop the `Notified`.
    /// A join handle needs no such care, because its type prevents misuse: the handle is `Send`
    /// only if the output is, and does not outlive the output's borrows.
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
        // SAFETY: the task was made with a join handle, which is this one.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
    }

    /// Spawns a task as [`new_detached`](crate::new_detached) does.
    #[inline]
    pub fn spawn_detached<F, S>(self, future: F, scheduler: S) -> Notified<S>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        S: Schedule,
    {
        // SAFETY: the future and its output are `Send` and `'static`, so any thread may touch them
        // at any time.
        unsafe { self.spawn_detached_unchecked(future, scheduler) }
    }

    /// Spawns a task as [`spawn_detached`](Self::spawn_detached) does; the future need be neither
    /// `Send` nor `'static`.
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

    /// Spawns a task as [`spawn`](crate::spawn) does.
    #[inline]
    pub fn spawn_with<F, C>(self, future: F, schedule: C) -> (Runnable, JoinHandle<F::Output>)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
        C: Fn(Runnable) + Send + Sync + 'static,
    {
        // SAFETY: future, output and closure are `Send` and `'static`, and the closure is `Sync`,
        // so any thread may touch them at any time.
        unsafe { self.spawn_with_unchecked(future, schedule) }
    }

    /// Spawns a task as [`spawn_with`](Self::spawn_with) does; the future and the closure need be
    /// neither `Send` nor `'static`. See [`spawn_unchecked`](crate::spawn_unchecked).
    ///
    /// # Safety
    /// As for [`spawn_unchecked`](Self::spawn_unchecked). In addition, each [`Runnable`], waker and
    /// handle of the task may call the closure. The last of them drops the closure, or an
    /// [`Owned`](crate::Owned) list does that has the task: in the run that ends the task, in
    /// [`Owned::drain`](crate::Owned::drain), or in its own drop. The caller ensures that all of
    /// them
    /// - stay on this thread, unless the closure is `Send` and `Sync`;
    /// - are gone, or leaked, when the closure's borrows end. A list may remain that has released
    ///   the task.
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
        // SAFETY: the task was made with a join handle, which is this one.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
    }

    /// Spawns a task as [`LocalOwned::spawn`] does.
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
        // SAFETY: the future and its output are `'static`.
        unsafe { self.spawn_local_unchecked(list, future, scheduler) }
    }

    /// Spawns a task as [`LocalOwned::spawn_unchecked`] does.
    ///
    /// # Safety
    /// As for [`LocalOwned::spawn_unchecked`].
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
        // SAFETY: the caller promises this.
        unsafe { list.spawn_with(future, scheduler, self.details) }
    }

    /// Spawns a task as [`LocalOwned::spawn_detached`] does.
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
        // SAFETY: the future and its output are `'static`.
        unsafe { self.spawn_local_detached_unchecked(list, future, scheduler) }
    }

    /// Spawns a task as [`LocalOwned::spawn_detached_unchecked`] does.
    ///
    /// # Safety
    /// As for [`LocalOwned::spawn_detached_unchecked`].
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
        // SAFETY: the caller promises this.
        unsafe { list.spawn_detached_with(future, scheduler, self.details) }
    }
}
