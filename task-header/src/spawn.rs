//! How a task comes to be, and how it reaches its queue.
use crate::{
    AbortHandle, JoinHandle, Notified, TaskRef,
    builder::Builder,
    cell::{self, Kind, TaskPtr, vtable},
};
use core::{
    any::Any, fmt, future::Future, marker::PhantomData, mem::needs_drop, num::NonZeroUsize,
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
}

/// Why a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeKind {
    /// A waker was woken.
    Wake,
    /// The task was aborted: its run drops the future.
    Abort,
    /// Nobody is left who could wake it: its run drops the future.
    Orphan,
}

/// A task's name while it lives: its address, so no counter is shared to make one. It is unique
/// among tasks that are not freed yet.
///
/// ```
/// use std::{future::{Future, poll_fn}, pin::Pin, task::{Context, Poll, Waker}};
/// use task_header::{Builder, Id};
///
/// // A task that gives its own waker.
/// let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone()));
/// let (task, mut join) = Builder::new().spawn_with(waker, drop);
/// let id: Id = task.id();
/// task.run();
/// let mut cx = Context::from_waker(Waker::noop());
/// let Poll::Ready(Ok(waker)) = Pin::new(&mut join).poll(&mut cx) else { panic!() };
/// assert!(id.is_woken_by(&waker));
/// assert!(!id.is_woken_by(Waker::noop()));
/// println!("task {id}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroUsize);

impl Id {
    pub(crate) fn of(task: TaskPtr) -> Self {
        Self(task.addr())
    }

    pub(crate) fn at(address: NonZeroUsize) -> Self {
        Self(address)
    }

    pub(crate) fn address(self) -> NonZeroUsize {
        self.0
    }

    /// Whether `waker` wakes this task, which is not freed: so that a poll can tell its own waker from that of a part of its future, which other parts
    /// poll with a waker of theirs. Compares two addresses.
    #[inline]
    pub fn is_woken_by(self, waker: &Waker) -> bool {
        // A task's header is its waker's target, and nobody else's target is in its place.
        waker_vtable::target_header(waker).is_some_and(|target| target.addr() == self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// A new task, to be run or queued, and the handle to wait for it. One allocation, no
/// read-modify-write.
///
/// Aborts as the global allocator does when memory is out.
#[inline]
pub fn new<F, S>(future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    Builder::new().spawn(future, scheduler)
}

/// A new task that nobody waits for; its output is dropped where it completes. One allocation, no
/// read-modify-write.
#[inline]
pub fn new_detached<F, S>(future: F, scheduler: S) -> Notified<S>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    Builder::new().spawn_detached(future, scheduler)
}

/// As [`new`], of a future that need not be `Send`, nor live for ever, and nor need its output.
/// Costs as that does.
///
/// # Safety
/// As for [`Builder::spawn_unchecked`].
#[inline]
pub unsafe fn new_unchecked<F, S>(future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
where
    F: Future,
    S: Schedule,
{
    // SAFETY: passed on.
    unsafe { Builder::new().spawn_unchecked(future, scheduler) }
}

/// As [`new_detached`], of a future that need not be `Send`, nor live for ever. Costs as that does.
///
/// # Safety
/// As for [`Builder::spawn_detached_unchecked`].
#[inline]
pub unsafe fn new_detached_unchecked<F, S>(future: F, scheduler: S) -> Notified<S>
where
    F: Future,
    S: Schedule,
{
    // SAFETY: passed on.
    unsafe { Builder::new().spawn_detached_unchecked(future, scheduler) }
}

/// As [`spawn`], of a future and a closure that need not be `Send`, nor live for ever. Costs as
/// that does.
///
/// ```
/// use std::{cell::{Cell, RefCell}, rc::Rc};
///
/// let (queue, done) = (RefCell::new(Vec::new()), Rc::new(Cell::new(false)));
/// let future = async { done.set(true) };
/// // SAFETY: the task and its handle stay on this thread, and are gone before what they borrow.
/// let (task, join) = unsafe { task_header::spawn_unchecked(future, |task| queue.borrow_mut().push(task)) };
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
    // SAFETY: passed on.
    unsafe { Builder::new().spawn_with_unchecked(future, schedule) }
}

/// A new task whose scheduler is a closure, and the handle to wait for it.
///
/// The closure gets the task each time it is to run. While it runs it is kept alive by a counted reference to the task, two
/// read-modify-writes a wake, unless it captures nothing that has a size or a drop. A type that is [`Schedule`] and [`new`] need none.
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
/// The future must be [`Send`], since whoever has the task may run it:
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

/// A task whose scheduler is a closure, whichever that is.
pub type Runnable = Notified<Closure>;

/// The scheduler type of all [`Runnable`]s. It says nothing of the closure's type, which would have to contain itself.
#[derive(Debug)]
pub struct Closure(());

impl Schedule for Closure {
    fn schedule(task: Notified<Self>, why: WakeKind) {
        let task = task.into_task();
        // SAFETY: this was the one `Notified`, which keeps the task alive.
        let vtable = unsafe { vtable(task) };
        // SAFETY: as above; the vtable's knows the closure's type.
        unsafe { (vtable.schedule)(task, why) };
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
}

/// Tasks with a closure in the scheduler's place.
pub(crate) struct ByClosure<C>(PhantomData<C>);

impl<C: Fn(Runnable)> Kind for ByClosure<C> {
    type Scheduler = C;

    unsafe fn schedule(task: TaskPtr, _: WakeKind) {
        // Once the closure has the task, another thread may run it to its end and free it, closure and all.
        // One without a size is anywhere, but its captures may go with the cell.
        let _keeps = (size_of::<C>() != 0 || needs_drop::<C>()).then(|| {
            // SAFETY: the `Notified` keeps the task alive.
            unsafe { AbortHandle::of(task) }
        });
        // SAFETY: live for as long as this runs, and `C` is what `allocate` put there. One without a size or a drop is anywhere.
        let schedule = unsafe { cell::scheduler::<C>(task) };
        // SAFETY: passed on. The scheduler type is a stand-in without a size.
        let notified = unsafe { Notified::from_task(task) };
        schedule(notified);
    }
}
