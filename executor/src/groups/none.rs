//! Stands for scheduling groups in builds without them: every task is main's, a worker's queue is
//! always [plain](crate::worker::queue), and no worker has an inbox. Each item has the name of one
//! in `groups.rs`, and its code leaves no instruction.
use crate::worker::{
    core::Core,
    identity::{Address, RuntimePtr},
    queue::Plain,
    scheduler::{Scheduler, Task},
    shared::{Remote, Shared},
};
use queue_global::{Injector, List};
use sched_monitor::{Monitor, Workers};
use sync_shim::sync::Arc;
use task_header::Node;

/// A worker's queue.
pub(crate) type Queue = Plain;

/// The part of a worker's queue that the other workers see.
pub(crate) type Stealer = worker_queue::Stealer<Node<Scheduler>>;

/// The place to which a task's pointer points: the runtime.
pub(crate) type Target = Address;

/// The builder's settings for groups.
#[derive(Clone, Default)]
pub(crate) struct GroupSettings(());

/// The groups of a runtime.
pub(crate) struct RuntimeGroups(());

impl RuntimeGroups {
    pub(crate) fn new(_: usize, _: GroupSettings) -> Self {
        Self(())
    }

    pub(crate) fn bind(&self, _: RuntimePtr) {}

    pub(crate) fn queue(&self, own: Plain, _: usize) -> Queue {
        own
    }

    #[inline(always)]
    pub(crate) fn injector_of(&self, _: &Task) -> Option<&Injector<Node<Scheduler>>> {
        None
    }

    #[inline(always)]
    pub(crate) fn goes_to_mains_injector(&self, _: &Task) -> bool {
        true
    }

    pub(crate) fn home_of(&self, _: &Task) -> Option<usize> {
        None
    }

    pub(crate) fn send_to(&self, _: usize, _: Task) {
        unreachable!("no task has a home");
    }

    #[inline(always)]
    pub(crate) fn has_injected(&self) -> bool {
        false
    }

    pub(crate) fn injected_len(&self) -> usize {
        0
    }

    pub(crate) fn count_injected(&self) -> usize {
        0
    }

    #[inline(always)]
    pub(crate) fn pop_injected(&self) -> Option<Task> {
        None
    }

    #[inline(always)]
    pub(crate) fn has_mail(&self) -> bool {
        false
    }

    pub(crate) fn close(&self) {}

    pub(crate) fn name_of_turn(&self, _: usize) -> Option<String> {
        None
    }

    pub(crate) fn drop_values(&self, _: impl Fn(Box<dyn FnOnce() + '_>)) {}
}

/// A counted reference to a task's group.
pub(crate) struct GroupRef(());

impl GroupRef {
    pub(crate) fn name(&self) -> Option<String> {
        None
    }

    /// A group without a runtime.
    #[cfg(all(test, not(selvedge_shuttle)))]
    pub(crate) fn of_nobody() -> Self {
        Self(())
    }
}

impl Scheduler {
    pub(crate) fn of(shared: &Shared) -> Self {
        Self(shared.address().0)
    }

    /// The scheduler of the task that runs the futures of `at_exit`.
    pub(crate) fn at_exit(shared: &Shared) -> Self {
        Self::of(shared)
    }

    /// The scheduler of a task that this thread spawns.
    pub(crate) fn inherited(shared: &Shared) -> Self {
        Self::of(shared)
    }

    /// The scheduler of a task that is spawned by the task that this worker runs.
    pub(crate) fn inherited_on(core: &Core) -> Self {
        Self::of(&core.shared)
    }

    /// The runtime.
    ///
    /// # Safety
    /// The caller has a `Notified` with this scheduler.
    pub(crate) unsafe fn runtime(self) -> RuntimePtr {
        RuntimePtr(self.0)
    }

    /// Does nothing: there is no group to leave.
    ///
    /// # Safety
    /// None here.
    #[inline(always)]
    pub(crate) unsafe fn leave(self) {}

    /// # Safety
    /// None here.
    pub(crate) unsafe fn group_ref(self) -> GroupRef {
        GroupRef(())
    }

    /// A scheduler without a runtime.
    #[cfg(all(test, not(selvedge_shuttle)))]
    pub(crate) fn of_nobody() -> Self {
        Self(std::ptr::NonNull::dangling())
    }
}

/// The group that the tasks spawned by this thread inherit.
pub(crate) struct Inherited(());

impl Inherited {
    #[inline(always)]
    pub(crate) fn of_turn(_: &Core) -> Self {
        Self(())
    }

    #[inline(always)]
    pub(crate) fn of_thread() -> Self {
        Self(())
    }

    pub(crate) fn keep(&mut self) {}

    #[inline(always)]
    pub(crate) fn clear() {}
}

/// Returns the closure itself: its spawns have no group to inherit.
pub(crate) fn within<R, F: FnOnce() -> R>(_: &Shared, f: F) -> F {
    f
}

/// Adds no duty.
pub(crate) fn watch<W: Workers>(monitor: Monitor<W>, _: &Arc<Shared>) -> Monitor<W> {
    monitor
}

impl Remote {
    /// Whether the worker has tasks.
    pub(crate) fn has_tasks(&self) -> bool {
        !self.stealer.is_empty() || !self.stealer.slot_is_empty()
    }

    /// The number of tasks in the worker's queue, with that in its slot.
    pub(crate) fn waiting(&self) -> usize {
        self.stealer.len() + usize::from(!self.stealer.slot_is_empty())
    }
}

impl Core {
    /// Whether the worker shares its time among groups.
    #[inline(always)]
    pub(crate) fn is_sharing(&self) -> bool {
        false
    }

    /// The queue, which is plain.
    #[inline(always)]
    pub(crate) fn plain(&self) -> &Plain {
        &self.queue
    }

    /// The scheduler of the tasks that the polled task spawns.
    #[inline(always)]
    pub(crate) fn plain_scheduler(&self) -> Option<Scheduler> {
        Some(Scheduler::of(&self.shared))
    }

    /// Whether tasks with this scheduler go to this worker's queue.
    #[inline(always)]
    pub(crate) fn is_plain_for(&self, scheduler: Scheduler) -> bool {
        scheduler == Scheduler::of(&self.shared)
    }

    /// Whether tasks of this runtime go to another queue than the plain one: none do.
    #[inline(always)]
    pub(crate) fn is_grouped_for(&self, _: Scheduler) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn is_sharded(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn has_mail(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn count_taken(&self) {}

    /// Queues the tasks for which this worker's ring has no room.
    pub(crate) fn spill(&self, tasks: List<Node<Scheduler>>) {
        self.shared.injector.requeue_of(self.index, tasks);
    }

    #[inline(always)]
    pub(crate) fn outside_of_turns<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    #[inline(always)]
    pub(crate) fn publish_requeued_if(&self, _: impl FnOnce() -> bool) {}
}
