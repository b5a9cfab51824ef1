//! The groups as the other modules of the executor see them. For builds without groups, `none.rs`
//! has the same names.
use super::{GroupSettings, Groups, group::Group, queue::GroupQueue};
use crate::worker::{
    queue::Plain,
    scheduler::{Scheduler, Task},
};
use queue_global::Injector;
use std::{ops::Deref, sync::Arc};
use task_header::Node;

/// A runtime's reference to its groups.
pub(crate) struct RuntimeGroups {
    /// The scheduler of the woken tasks that a thread from outside pushes into the runtime's
    /// injector: main's. `None` if the workers do not steal.
    injected: Option<Scheduler>,
    /// The scheduler of main's tasks.
    pub(super) main_scheduler: Scheduler,
    groups: Arc<Groups>,
}

impl Deref for RuntimeGroups {
    type Target = Groups;

    #[inline]
    fn deref(&self) -> &Groups {
        &self.groups
    }
}

impl RuntimeGroups {
    pub(crate) fn new(workers: usize, settings: GroupSettings) -> Self {
        let groups = Arc::new(Groups::new(workers, settings));
        Self {
            injected: (!groups.is_sharded()).then(|| Scheduler::in_group(&groups.main)),
            main_scheduler: Scheduler::in_group(&groups.main),
            groups,
        }
    }

    /// Makes a worker's queue over its queue of main's tasks.
    pub(crate) fn queue(&self, own: Plain, worker: usize) -> GroupQueue {
        GroupQueue::new(own, &self.groups, worker)
    }

    /// The groups' injector, if a task from outside goes there and not to main's.
    #[inline]
    pub(crate) fn injector_of(&self, task: &Task) -> Option<&Injector<Node<Scheduler>>> {
        (*task.scheduler() != self.main_scheduler).then_some(&self.injector)
    }

    /// Whether a woken task goes to main's injector: it is main's, and has no home.
    #[inline]
    pub(crate) fn goes_to_mains_injector(&self, task: &Task) -> bool {
        Some(*task.scheduler()) == self.injected
    }

    /// The number of tasks in the groups' injector, of which those that were pushed since a worker
    /// last looked may count as one.
    pub(crate) fn injected_len(&self) -> usize {
        self.injector.len()
    }

    /// The number of tasks in the groups' injector. Takes its lock.
    pub(crate) fn count_injected(&self) -> usize {
        self.injector.count()
    }

    /// Takes a task out of the groups' injector, or out of any inbox: for shutdown.
    pub(crate) fn pop_injected(&self) -> Option<Task> {
        if !self.is_used() {
            return None;
        }
        self.injector.pop().or_else(|| self.pop_mail())
    }

    /// Refuses spawns into other groups than main from now on.
    pub(crate) fn close(&self) {
        self.injector.close();
    }
}

/// A counted reference to a task's group.
pub(crate) struct GroupRef(Arc<Group>);

impl GroupRef {
    pub(crate) fn name(&self) -> Option<String> {
        Some(self.0.name())
    }

    /// A group without a runtime.
    #[cfg(all(test, not(selvedge_shuttle)))]
    pub(crate) fn of_nobody() -> Self {
        Self(Arc::new(Group::of_nobody()))
    }
}

impl Scheduler {
    /// A counted reference to the group.
    ///
    /// # Safety
    /// The group is in memory.
    pub(crate) unsafe fn group_ref(self) -> GroupRef {
        // SAFETY: guaranteed by the caller.
        GroupRef(unsafe { self.counted() })
    }

    /// Takes a task out of its group, when the task's future is gone. Main counts no tasks.
    ///
    /// # Safety
    /// A task with this scheduler has not left the group before.
    #[inline(always)]
    pub(crate) unsafe fn leave(self) {
        if !self.is_main() {
            // SAFETY: guaranteed by the caller.
            unsafe { Self::leave_group(self.group()) };
        }
    }

    /// A scheduler in a group that has no runtime. A dangling pointer would not do here: a task
    /// leaves its group when its future is dropped.
    #[cfg(all(test, not(selvedge_shuttle)))]
    pub(crate) fn of_nobody() -> Self {
        static GROUP: std::sync::OnceLock<Arc<Group>> = std::sync::OnceLock::new();
        Self::in_group(GROUP.get_or_init(|| Arc::new(Group::of_nobody())))
    }
}
