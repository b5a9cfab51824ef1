//! A wake: from a task's waker to a queue.
//!
//! 1. A wake on a worker of the task's runtime goes to that worker's own queue: to the LIFO slot,
//!    or behind the others ([`Core::schedule`](crate::core::Core::schedule)).
//! 2. A wake on any other thread goes to the injector. The thread announces itself first, because
//!    the task may complete, and its runtime end, as soon as the task is pushed (rule 2 of
//!    [`shared`](crate::shared)). It then notifies a sleeping worker, or nudges a busy one.
//! 3. A wake that comes in after a driven worker was dropped may find no worker: then its thread
//!    ends what is queued.
use crate::{
    context,
    shared::{Shared, Task},
    trace,
    unhandled::PanicReporter,
};
use ::core::ptr::NonNull;
use blocking_threads::OnPanic;
use std::any::Any;
use task_header::{Schedule, TaskRef, WakeKind};
use worker_idle::announce::Registry;

/// A task's pointer to its runtime.
#[derive(Clone, Copy)]
pub(crate) struct Scheduler(pub(super) NonNull<Shared>);

// SAFETY: it is a shared borrow of a `Shared`, which is `Sync`. Rules 1 and 2 of `shared` say for
// how long it is good.
unsafe impl Send for Scheduler {}

// SAFETY: as above.
unsafe impl Sync for Scheduler {}

impl Scheduler {
    pub(crate) fn of(shared: &Shared) -> Self {
        Self(NonNull::from(shared))
    }

    pub(crate) fn is(self, shared: &Shared) -> bool {
        self.0 == NonNull::from(shared)
    }
}

impl Schedule for Scheduler {
    /// Reports a panic by the task's metadata: its runtime may be gone where its handle is dropped.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        if let Some(by) = task.metadata::<Option<PanicReporter>>() {
            by.panicked(payload);
        }
    }

    fn schedule(task: Task, why: WakeKind) {
        let scheduler = *task.scheduler();
        if let Some(task) = context::schedule(scheduler, task, why) {
            // SAFETY: this thread holds the `Notified`, so the runtime is there (rule 1 of
            // `shared`).
            let foreign = NonNull::from(unsafe { &(*scheduler.0.as_ptr()).foreign });
            let push = move || {
                // SAFETY: the `Notified` keeps the runtime, and after the push the announcement
                // does (rule 2 of `shared`).
                let shared = unsafe { scheduler.0.as_ref() };
                trace::wake_from_outside(shared, &task, why);
                shared.injector.requeue(task);
                shared.notify_from_outside();
                if shared.is_abandoned() {
                    shared.end_queued();
                }
            };
            // SAFETY: as above.
            unsafe { Registry::announce(foreign, push) };
        }
    }
}
