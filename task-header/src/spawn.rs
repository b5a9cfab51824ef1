//! A spawn, from the call to the task's one allocation.
//!
//! [`new`], [`spawn`] and the other functions spawn a plain task, through a [`Builder`] without
//! values. The builder picks the kind of the task and whether the task has a join handle.
//! [`allocate`] makes the cell, with a vtable for these types, and the builder makes the
//! [`Notified`] and the handle from the pointer to the cell. From then on only the vtable knows the
//! types.
use crate::{
    blocks::alloc,
    cell::{Cell, Detached, Header, Join, JoinWaker, Kind, Stage, TaskPtr, TaskVtable},
    closure::{ByClosure, Runnable},
    complete,
    details::{Details, Located, Named, With},
    join::JoinHandle,
    notified::{Anywhere, Notified, Schedule},
    run,
    state::State,
};
use ::alloc::borrow::Cow;
use core::{
    any::Any,
    future::Future,
    marker::PhantomData,
    mem::{ManuallyDrop, offset_of},
    panic::Location,
    ptr::NonNull,
};
use sync_shim::{alloc::Layout, cell::UnsafeCell};

/// Makes a task, to be run or queued, and the handle that waits for it. Costs one allocation, and
/// no read-modify-write.
///
/// If memory runs out, the process ends, as with any allocation that fails.
#[inline]
pub fn new<F, S>(future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    Builder::new().spawn(future, scheduler)
}

/// Makes a task without a join handle; its output is dropped where the task completes. Costs one
/// allocation, and no read-modify-write.
#[inline]
pub fn new_detached<F, S>(future: F, scheduler: S) -> Notified<S>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    Builder::new().spawn_detached(future, scheduler)
}

/// Makes a task as [`new`] does, at the same cost; the future need not be `Send`, and neither the
/// future nor its output need be `'static`.
///
/// # Safety
/// As for [`Builder::spawn_unchecked`].
#[inline]
pub unsafe fn new_unchecked<F, S>(future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
where
    F: Future,
    S: Schedule,
{
    // SAFETY: the caller promises this.
    unsafe { Builder::new().spawn_unchecked(future, scheduler) }
}

/// Makes a task as [`new_detached`] does, at the same cost; the future need be neither `Send` nor
/// `'static`.
///
/// # Safety
/// As for [`Builder::spawn_detached_unchecked`].
#[inline]
pub unsafe fn new_detached_unchecked<F, S>(future: F, scheduler: S) -> Notified<S>
where
    F: Future,
    S: Schedule,
{
    // SAFETY: the caller promises this.
    unsafe { Builder::new().spawn_detached_unchecked(future, scheduler) }
}

/// Makes a task as [`spawn`] does, at the same cost; the future and the closure need be neither
/// `Send` nor `'static`.
///
/// ```
/// use std::{cell::{Cell, RefCell}, rc::Rc};
///
/// let (queue, done) = (RefCell::new(Vec::new()), Rc::new(Cell::new(false)));
/// let future = async { done.set(true) };
/// // SAFETY: the task and its handle stay on this thread, and are gone before what they borrow.
/// let (task, join) =
///     unsafe { task_header::spawn_unchecked(future, |task| queue.borrow_mut().push(task)) };
/// task.schedule();
/// let task = queue.borrow_mut().pop().unwrap();
/// drop(task.run());
/// drop(join);
/// assert!(done.get());
/// ```
///
/// # Safety
/// As for [`Builder::spawn_with_unchecked`].
#[inline]
pub unsafe fn spawn_unchecked<F, C>(future: F, schedule: C) -> (Runnable, JoinHandle<F::Output>)
where
    F: Future,
    C: Fn(Runnable),
{
    // SAFETY: the caller promises this.
    unsafe { Builder::new().spawn_with_unchecked(future, schedule) }
}

/// Makes a task whose scheduler is a closure, and the handle that waits for it.
///
/// The closure gets the task each time the task is to run. During the call, a counted reference to
/// the task keeps the closure alive. That costs two read-modify-writes per wake, unless the closure
/// has no size and no drop. [`new`] with a type that implements [`Schedule`] costs none of these.
///
/// ```
/// use std::sync::mpsc;
/// use task_header::{Ran, Runnable};
///
/// let (queue, tasks) = mpsc::channel::<Runnable>();
/// let (task, join) = task_header::spawn(async { 1 + 1 }, move |task| queue.send(task).unwrap());
/// task.schedule();
/// assert!(matches!(tasks.recv().unwrap().run(), Ran::Complete));
/// assert!(join.is_finished());
/// ```
///
/// The future must be [`Send`], since any thread that has the task may run it:
///
/// ```compile_fail,E0277
/// let local = std::rc::Rc::new(());
/// task_header::spawn(async move { drop(local) }, drop);
/// ```
#[inline]
pub fn spawn<F, C>(future: F, schedule: C) -> (Runnable, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    C: Fn(Runnable) + Send + Sync + 'static,
{
    Builder::new().spawn_with(future, schedule)
}

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
    pub(crate) details: D,
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
        let task = allocate::<F, Anywhere<S>, JoinWaker, D>(future, scheduler, self.details);
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
        let task = allocate::<F, Anywhere<S>, Detached, D>(future, scheduler, self.details);
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
        let task = allocate::<F, ByClosure<C>, JoinWaker, D>(future, schedule, self.details);
        // SAFETY: a new task has one `Notified`.
        let notified = unsafe { Notified::from_task(task) };
        // SAFETY: the task was made with a join handle, which is this one.
        let join = unsafe { JoinHandle::from_task(task) };
        (notified, join)
    }
}

/// Allocates a task that is about to be scheduled.
///
/// Inlined into the caller that makes the future, so that the future is built in its place in the
/// cell, or moved there once.
#[inline(always)]
pub(crate) fn allocate<F: Future, K: Kind, J: Join, M: Details>(
    future: F,
    scheduler: K::Scheduler,
    details: M,
) -> TaskPtr {
    let layout = Layout::new::<Cell<F, K::Scheduler, J, M>>();
    // SAFETY: a cell contains a header, so its size is not zero.
    let block = unsafe { alloc(layout) }.cast::<Cell<F, K::Scheduler, J, M>>();
    let Some(cell) = NonNull::new(block) else {
        ::alloc::alloc::handle_alloc_error(layout)
    };
    let value = Cell {
        header: Header {
            vtable: Table::<F, K, J, M>::VTABLE,
            state: State::new(J::IS_JOINED, K::IS_LISTED),
            queue_next: UnsafeCell::new(None),
            place: UnsafeCell::new(None),
        },
        scheduler,
        stage: UnsafeCell::new(Stage {
            future: ManuallyDrop::new(future),
        }),
        join_waker: J::new(),
        details,
    };
    // SAFETY: the block is fresh and has the cell's layout.
    unsafe { cell.write(value) };
    sync_shim::sim::allocated(block.addr());
    cell.cast()
}

/// The vtable of tasks of these types.
struct Table<F, K, J, M>(PhantomData<(F, K, J, M)>);

impl<F: Future, K: Kind, J: Join, M: Details> Table<F, K, J, M> {
    const VTABLE: &'static TaskVtable = &TaskVtable {
        poll: run::poll_future::<F, K>,
        cancel: run::cancel_future::<F, K>,
        schedule: K::schedule,
        panicked: K::panicked,
        output: run::output::<F, K::Scheduler>,
        drop_output: run::drop_output::<F, K::Scheduler>,
        dealloc: complete::free::<F, K::Scheduler, J, M>,
        details: details_of::<F, K::Scheduler, J, M>,
        scheduler: offset_of!(Cell<F, K::Scheduler, J, M>, scheduler),
        join_waker: offset_of!(Cell<F, K::Scheduler, J, M>, join_waker),
    };
}

/// # Safety
/// The task is live and of these types.
unsafe fn details_of<F: Future, S, J, M: Details>(task: TaskPtr) -> NonNull<dyn Details> {
    let cell = task.cast::<Cell<F, S, J, M>>();
    // SAFETY: the cell is live, so the field's address is inside it.
    let details = unsafe { &raw mut (*cell.as_ptr()).details };
    // SAFETY: the address of a field of a live cell is not null.
    unsafe { NonNull::new_unchecked(details) }
}
