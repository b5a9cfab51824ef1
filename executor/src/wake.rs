//! A wake: from a task's waker to a queue.
//!
//! 1. A wake on a worker of the task's runtime goes to that worker's own queue: to the LIFO slot,
//!    or behind the others ([`Core::schedule`](crate::core::Core::schedule)).
//! 2. A wake on any other thread goes to the injector. The thread announces itself first, because
//!    the task may complete, and its runtime end, as soon as the task is pushed (rule 2 of
//!    [`shared`](crate::shared)). It then notifies a sleeping worker, or nudges a busy one.
//! 3. A wake that comes in after a driven worker was dropped may find no worker: then its thread
//!    ends what is queued.
use crate::{context, shared::Task, trace, unhandled::PanicReporter};
#[cfg(not(feature = "groups"))]
use crate::{core::Core, shared::Shared};
use ::core::ptr::NonNull;
use blocking_threads::OnPanic;
use std::any::Any;
use task_header::{Schedule, TaskRef, WakeKind};
use worker_idle::announce::Registry;

/// A task's pointer to its runtime, or with groups to its group, which knows the runtime.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scheduler(pub(super) NonNull<Target>);

#[cfg(not(feature = "groups"))]
type Target = Shared;
#[cfg(feature = "groups")]
type Target = crate::groups::Group;

// SAFETY: it is a shared borrow of a `Shared`, or of a group, which are `Sync`. Rules 1 and 2 of
// `shared`, and rule 5 of `groups`, say for how long it is good.
unsafe impl Send for Scheduler {}

// SAFETY: as above.
unsafe impl Sync for Scheduler {}

#[cfg(not(feature = "groups"))]
impl Scheduler {
    pub(crate) fn of(shared: &Shared) -> Self {
        Self(NonNull::from(shared))
    }

    /// The scheduler of a task that this thread spawns.
    pub(crate) fn inherited(shared: &Shared) -> Self {
        Self::of(shared)
    }

    /// The scheduler of a task that the task spawns which this worker runs.
    pub(crate) fn inherited_on(core: &Core) -> Self {
        Self::of(&core.shared)
    }

    pub(crate) fn is(self, shared: &Shared) -> bool {
        self.0 == NonNull::from(shared)
    }

    /// The runtime.
    ///
    /// # Safety
    /// The caller has a `Notified` with this scheduler.
    unsafe fn runtime(self) -> NonNull<Shared> {
        self.0
    }
}

impl Schedule for Scheduler {
    /// A task leaves its group when its future is gone.
    #[cfg(feature = "groups")]
    #[inline]
    fn ended(task: TaskRef<'_, Self>, _: task_header::Outcome) {
        // SAFETY: the task is in its group until now (rule 5 of `groups`).
        unsafe { task.scheduler().0.as_ref() }.leave();
    }

    /// Reports a panic by the task's metadata: its runtime may be gone where its handle is dropped.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        if let Some(by) = task.metadata::<Option<PanicReporter>>() {
            by.panicked(payload);
        }
    }

    fn schedule(task: Task, why: WakeKind) {
        let scheduler = *task.scheduler();
        if let Some(task) = context::schedule(scheduler, task, why) {
            // SAFETY: this thread holds the `Notified`.
            let shared = unsafe { scheduler.runtime() };
            // SAFETY: as above, so the runtime is there (rule 1 of `shared`).
            let registry = NonNull::from(unsafe { &(*shared.as_ptr()).announcements });
            let why = trace::reason(why);
            let push = move || {
                // SAFETY: the `Notified` keeps the runtime, and after the push the announcement
                // does (rule 2 of `shared`).
                let shared = unsafe { shared.as_ref() };
                trace::wake_from_outside(shared, &task, why);
                shared.requeue(task);
                shared.notify_from_outside();
                if shared.is_abandoned() {
                    shared.end_queued();
                }
            };
            // SAFETY: as above.
            unsafe { Registry::announce(registry, push) };
        }
    }
}
