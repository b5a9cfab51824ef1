//! The fast path of a worker that runs main's tasks alone: its queue is main's, as without groups.
use crate::worker::{core::Core, queue::Plain, scheduler::Scheduler, shared::Remote};
use queue_global::List;
use task_header::Node;

impl Core {
    /// Whether the worker shares its time among groups: then its queue is not plain.
    #[inline(always)]
    pub(crate) fn is_sharing(&self) -> bool {
        self.queue.sharing.get()
    }

    /// Main's queue. While the worker's queue is plain, it has no other part.
    #[inline(always)]
    pub(crate) fn plain(&self) -> &Plain {
        &self.queue.own
    }

    /// The scheduler of the tasks that the polled task spawns, if the queue is plain.
    #[inline(always)]
    pub(crate) fn plain_scheduler(&self) -> Option<Scheduler> {
        self.queue.plain.get()
    }

    /// Whether the queue is plain, and tasks with this scheduler go to it.
    #[inline(always)]
    pub(crate) fn is_plain_for(&self, scheduler: Scheduler) -> bool {
        self.queue.plain.get() == Some(scheduler)
    }

    /// Whether tasks with this scheduler, for which the queue [is not plain](Self::is_plain_for),
    /// are of this worker's runtime: then their group says which queue they go to. The caller has
    /// such a task.
    #[inline]
    pub(crate) fn is_grouped_for(&self, scheduler: Scheduler) -> bool {
        scheduler.is(&self.shared)
    }

    /// Whether the workers do not steal: tasks that other threads wake then come to this worker
    /// through its inbox.
    #[inline(always)]
    pub(crate) fn is_sharded(&self) -> bool {
        self.queue.inbox.is_some()
    }

    /// Whether tasks wait in this worker's inbox.
    #[inline]
    pub(crate) fn has_mail(&self) -> bool {
        self.queue.has_mail()
    }

    /// Counts the tasks that this worker's queue has taken from outside when it chose a task.
    #[inline]
    pub(crate) fn count_taken(&self) {
        match self.queue.take_noted() {
            0 => {}
            tasks => self.count_injected(tasks),
        }
    }

    /// Queues the tasks for which this worker's ring has no room.
    pub(crate) fn spill(&self, tasks: List<Node<Scheduler>>) {
        match &self.queue.inbox {
            Some(inbox) => inbox.overflow(tasks),
            None => self.shared.injector.requeue_of(self.index, tasks),
        }
    }

    /// Runs wakers, hooks for sleeps and other user code between two polls.
    pub(crate) fn outside_of_turns<R>(&self, f: impl FnOnce() -> R) -> R {
        self.queue.outside_of_turns(f)
    }

    /// Publishes the requeued task of a group, if `is_due`: before the worker looks elsewhere than
    /// in its queue.
    #[inline(always)]
    pub(crate) fn publish_requeued_if(&self, is_due: impl FnOnce() -> bool) {
        if self.is_sharing() && is_due() {
            self.queue.publish_requeued(self);
        }
    }
}

impl Remote {
    /// Whether the worker has tasks, even if no other worker may steal them.
    pub(crate) fn has_tasks(&self) -> bool {
        self.stealer.has_tasks()
    }

    /// The number of tasks in the worker's queue, with that in its slot.
    pub(crate) fn waiting(&self) -> usize {
        self.stealer.waiting()
    }
}
