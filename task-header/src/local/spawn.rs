//! The spawns of thread-local tasks.
use super::{Here, LocalNotified, LocalOwned, ScheduleLocal};
use crate::{
    cell::{Detached, Join, JoinWaker, TaskPtr},
    details::Details,
    join::JoinHandle,
    spawn::{Builder, allocate},
};
use core::future::Future;

impl<S: ScheduleLocal> LocalOwned<S> {
    /// Spawns a task: returns the task, to be run or queued, and the handle that waits for it.
    /// Costs one allocation, plus one for the list now and then, and no read-modify-write.
    #[inline]
    pub fn spawn<F>(&self, future: F, scheduler: S) -> (LocalNotified<S>, JoinHandle<F::Output>)
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        // SAFETY: the future and its output are `'static`.
        unsafe { self.spawn_unchecked(future, scheduler) }
    }

    /// Spawns a task without a join handle.
    #[inline]
    pub fn spawn_detached<F>(&self, future: F, scheduler: S) -> LocalNotified<S>
    where
        F: Future + 'static,
        F::Output: 'static,
    {
        // SAFETY: the future and its output are `'static`.
        unsafe { self.spawn_detached_unchecked(future, scheduler) }
    }

    /// Spawns a task as [`spawn`](Self::spawn) does, at the same cost; the future and its output
    /// need not be `'static`.
    ///
    /// A type that owns such a list is sound if it has an invariant lifetime and an `impl Drop`,
    /// which may be empty. Only for a type with an `impl Drop` does the compiler demand that the
    /// lifetime outlives the drop, and so the list's drop. If a value of such a type is forgotten,
    /// its tasks leak, and nothing can run or drop them.
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
    ///         // SAFETY: a user of the list has the executor, so `'a` has not ended.
    ///         let (task, join) = unsafe { self.list.spawn_unchecked(future, Home) };
    ///         task.send();
    ///         join
    ///     }
    ///
    ///     fn run(&self) {
    ///         while let Some(task) = self.list.receive() {
    ///             // In this example, a task that was woken in its poll is not polled again.
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
    /// Three actions of this list poll and drop the future: [`run`](Self::run),
    /// [`cancel`](Self::cancel) and the list's drop. They also drop the output, unless the join
    /// handle has it. The caller ensures that all values that the future and the output borrow are
    /// alive during each of these actions. Either the task ends before the borrowed values end, or
    /// the list is neither used nor dropped afterwards.
    #[inline]
    pub unsafe fn spawn_unchecked<F: Future>(
        &self,
        future: F,
        scheduler: S,
    ) -> (LocalNotified<S>, JoinHandle<F::Output>) {
        // SAFETY: the caller promises this.
        unsafe { Builder::new().spawn_local_unchecked(self, future, scheduler) }
    }

    /// Spawns a task as [`spawn_detached`](Self::spawn_detached) does; the future need not be
    /// `'static`.
    ///
    /// # Safety
    /// As for [`spawn_unchecked`](Self::spawn_unchecked).
    #[inline]
    pub unsafe fn spawn_detached_unchecked<F: Future>(
        &self,
        future: F,
        scheduler: S,
    ) -> LocalNotified<S> {
        // SAFETY: the caller promises this.
        unsafe { Builder::new().spawn_local_detached_unchecked(self, future, scheduler) }
    }

    /// Allocates a task that is in this list from the start (rule 1 of [`local`](super)).
    #[inline]
    fn adopt<F: Future, J: Join, D: Details>(
        &self,
        future: F,
        scheduler: S,
        details: D,
    ) -> TaskPtr {
        let task = allocate::<F, Here<S>, J, D>(future, scheduler, details);
        // SAFETY: the task is new, and in no list.
        self.with_list(|list| unsafe { list.insert(task) });
        task
    }
}

impl<D: Details> Builder<D> {
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
        let task = list.adopt::<F, JoinWaker, D>(future, scheduler, self.details);
        // SAFETY: a new task has one `Notified`.
        let notified = unsafe { LocalNotified::from_task(task) };
        // SAFETY: the task was made with a join handle, which is this one.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
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
        let task = list.adopt::<F, Detached, D>(future, scheduler, self.details);
        // SAFETY: a new task has one `Notified`.
        unsafe { LocalNotified::from_task(task) }
    }
}
