//! The fast path of a worker that runs main's tasks alone: its queue is main's, as without groups.
use crate::{core::Core, queue::Plain, scheduler::Scheduler};

impl Core {
    /// Whether the worker shares its time among groups: then its queue is not plain.
    #[inline(always)]
    pub(crate) fn is_sharing(&self) -> bool {
        self.queue.sharing.get()
    }

    /// Main's queue, which is the whole one while it is plain.
    #[inline(always)]
    pub(crate) fn plain(&self) -> &Plain {
        &self.queue.own
    }

    /// The scheduler of the tasks that the polled task spawns, if the queue is plain.
    #[inline(always)]
    pub(crate) fn plain_scheduler(&self) -> Option<Scheduler> {
        self.queue.plain.get()
    }

    /// Whether tasks with this scheduler go to the queue, and it is plain.
    #[inline(always)]
    pub(crate) fn is_plain_for(&self, scheduler: Scheduler) -> bool {
        self.queue.plain.get() == Some(scheduler)
    }
}
