//! How a task comes to be, and how it reaches its queue.
use crate::{
    JoinHandle, Notified,
    cell::{self, TaskPtr},
};
use core::{fmt, future::Future, num::NonZeroUsize};

/// Where the tasks of a scheduler go when they are to run.
///
/// It takes the task, not a borrow of the scheduler inside it: a wake by value can then hand its
/// reference over, and nobody is left in a cell that may be freed meanwhile. Reach the scheduler
/// with [`Notified::scheduler`]; what is used after the task was queued must be copied out first.
pub trait Schedule: Send + Sync + Sized + 'static {
    /// Queues a task. Runs wherever the task is woken, also inside another task's poll. Dropping
    /// the task instead cancels it there.
    fn schedule(task: Notified<Self>, why: WakeKind);
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(NonZeroUsize);

impl Id {
    pub(crate) fn of(task: TaskPtr) -> Self {
        Self(task.addr())
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
pub fn new<F, S>(future: F, scheduler: S) -> (Notified<S>, JoinHandle<F::Output>)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    let task = cell::allocate(future, scheduler, true);
    // SAFETY: a new task has one `Notified`.
    let notified = unsafe { Notified::from_raw(task) };
    // SAFETY: made with a join handle, which is this.
    let join = unsafe { JoinHandle::from_raw(task) };
    (notified, join)
}

/// A new task that nobody waits for; its output is dropped where it completes. One allocation, no
/// read-modify-write.
pub fn new_detached<F, S>(future: F, scheduler: S) -> Notified<S>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
    S: Schedule,
{
    let task = cell::allocate(future, scheduler, false);
    // SAFETY: a new task has one `Notified`.
    unsafe { Notified::from_raw(task) }
}
