//! Functions that spawn plain tasks.
use crate::{
    builder::Builder,
    closure::Runnable,
    join::JoinHandle,
    notified::{Notified, Schedule},
};
use core::future::Future;

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
