//! The queues of a runtime: the types that a core and the shared state name.
//!
//! A core uses its queue through the trait [`RunQueue`](worker_queue::RunQueue). These aliases
//! choose the type of the queue, so each build is compiled for one type. Without the feature
//! `groups` a worker has one [`WorkerQueue`](worker_queue::WorkerQueue), whose shared end is a
//! [`Stealer`](worker_queue::Stealer). With `groups` the queue is a `GroupQueue`.
//!
//! A queue is *plain* while it is one `WorkerQueue` and no more. Without `groups` it always is.
//! With `groups` it is plain while the worker runs only tasks of the default group, *main*. The hot
//! paths of a core use the plain queue directly. So a build with groups checks whether the queue is
//! plain once for each decision about a task, and not in each operation.
use crate::worker::scheduler::Scheduler;
#[cfg(not(feature = "groups"))]
use crate::worker::{core::Core, shared::Shared};
#[cfg(not(feature = "groups"))]
use queue_global::List;
use task_header::Node;

/// A queue that is plain.
pub(crate) type Plain = worker_queue::WorkerQueue<Node<Scheduler>>;

/// A worker's queue.
#[cfg(not(feature = "groups"))]
pub(crate) type Queue = Plain;

/// The part of a worker's queue that the other workers see.
#[cfg(not(feature = "groups"))]
pub(crate) type Stealer = worker_queue::Stealer<Node<Scheduler>>;

/// The decisions about plain queues. Without groups the queue is always plain.
#[cfg(not(feature = "groups"))]
impl Core {
    /// Whether the worker shares its time among groups: then its queue is not plain.
    #[inline(always)]
    pub(crate) fn is_sharing(&self) -> bool {
        false
    }

    /// The queue, which is plain.
    #[inline(always)]
    pub(crate) fn plain(&self) -> &Plain {
        &self.queue
    }

    /// The scheduler of the tasks that the polled task spawns, if the queue is plain.
    #[inline(always)]
    pub(crate) fn plain_scheduler(&self) -> Option<Scheduler> {
        Some(Scheduler::of(&self.shared))
    }

    /// Whether the workers do not steal. Without groups they always do.
    #[inline(always)]
    pub(crate) fn is_sharded(&self) -> bool {
        false
    }

    /// Whether tasks wait in this worker's inbox: only a worker that does not steal has one.
    #[inline(always)]
    pub(crate) fn has_mail(&self) -> bool {
        false
    }

    /// Does nothing: only a queue with groups takes tasks from outside when it chooses a task.
    #[inline(always)]
    pub(crate) fn count_taken(&self) {}

    /// Queues the tasks for which this worker's ring has no room.
    pub(crate) fn spill(&self, tasks: List<Node<Scheduler>>) {
        self.shared.injector.requeue_batch(tasks);
    }

    /// Runs `f`. With groups, the code of `f` is in main's group.
    #[inline(always)]
    pub(crate) fn outside_of_turns<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Does nothing: with groups this publishes the requeued task of a group.
    #[inline(always)]
    pub(crate) fn publish_requeued_if(&self, _: impl FnOnce() -> bool) {}

    /// Whether the queue is plain, and tasks with this scheduler go to it.
    #[inline(always)]
    pub(crate) fn is_plain_for(&self, scheduler: Scheduler) -> bool {
        let shared: &Shared = &self.shared;
        scheduler.is(shared)
    }
}

#[cfg(feature = "groups")]
pub(crate) use crate::groups::{GroupQueue as Queue, GroupStealer as Stealer};
