//! A wake: from a task's waker to a queue.
//!
//! 1. A wake on a worker of the task's runtime goes to that worker's own queue: to the LIFO slot,
//!    or behind the other tasks ([`Core::schedule`](crate::worker::core::Core::schedule)).
//! 2. A wake on any other thread goes to the injector. The thread announces itself first, because
//!    the task may complete, and its runtime may end, as soon as the task is pushed (rule 2 of
//!    [`shared`](crate::worker::shared)). After the push the thread notifies a sleeping worker, or
//!    nudges a busy one.
//! 3. A wake that comes in after a driven worker was dropped may find no worker: then the waking
//!    thread ends the queued tasks.
//! 4. Where workers do not steal, a wake goes to the task's home instead, if the task has one: to
//!    the home's own queue on the home's thread, and to its inbox from any other thread (see the
//!    module `inbox` of the groups). Then the thread unparks the home, or nudges it, and notifies
//!    no other worker.
use crate::{
    observe::trace,
    worker::{
        context::{self, with_core},
        core::Core,
        scheduler::{Scheduler, Task},
        shared::{Attached, Shared},
    },
};
use blocking_threads::OnPanic;
use queue_global::List;
use std::{any::Any, ptr::NonNull};
use sync_shim::atomic::{Ordering::SeqCst, fence};
use task_header::{Node, Schedule, TaskRef, WakeKind};
use worker_idle::{Woken, announce::Registry};
use worker_queue::{QueueHooks, RunQueue};

impl Schedule for Scheduler {
    /// A task leaves its group when its future is gone.
    #[inline(always)]
    fn ended(task: TaskRef<'_, Self>, _: task_header::Outcome) {
        // SAFETY: `ended` is called once for a task.
        unsafe { task.scheduler().leave() };
    }

    /// Reports a panic through the task's metadata: the runtime may be gone when the task's handle
    /// is dropped.
    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        let attached = task.metadata::<Attached>();
        match attached.and_then(|attached| attached.reporter.as_ref()) {
            Some(by) => by.panicked(payload),
            None => trace::note_panic_here(),
        }
    }

    fn schedule(task: Task, why: WakeKind) {
        let scheduler = *task.scheduler();
        if let Some(task) = schedule_here(scheduler, task, why) {
            // SAFETY: this thread holds the `Notified`.
            let shared = Shared::at(unsafe { scheduler.runtime() });
            // SAFETY: as above, so the runtime exists (rule 1 of `shared`).
            let registry = NonNull::from(unsafe { &(*shared.as_ptr()).announcements });
            let why = trace::reason(why);
            let push = move || {
                // SAFETY: the `Notified` keeps the runtime, and after the push the announcement
                // does (rule 2 of `shared`).
                let shared = unsafe { shared.as_ref() };
                trace::wake_from_outside(shared, &task, why);
                shared.requeue_from_outside(task);
                if shared.is_abandoned() {
                    shared.end_queued();
                }
            };
            // SAFETY: as above.
            unsafe { Registry::announce(registry, push) };
        }
    }
}

impl Core {
    /// Queues a task that this thread woke, or sends the task to its home.
    #[cold]
    #[inline(never)]
    pub(crate) fn schedule(&self, task: Task, why: WakeKind) {
        self.shared.trace.wake(self.index, task.id(), why);
        self.counters().local_wakes.add(1);
        let home = self.shared.groups.home_of(&task);
        if let Some(home) = home.filter(|&home| home != self.index) {
            return self.shared.send_home(home, task);
        }
        if let WakeKind::Wake = why {
            RunQueue::push_next(&self.queue, task, self);
        } else {
            RunQueue::push_back(&self.queue, task, self);
        }
    }

    /// Queues a task that this thread woke, and that [is plain](Self::is_plain_for).
    #[inline]
    pub(crate) fn schedule_plain(&self, task: Task, why: WakeKind) {
        self.shared.trace.wake(self.index, task.id(), why);
        self.counters().local_wakes.add(1);
        if let WakeKind::Wake = why {
            self.plain().push_next(task, self);
        } else {
            self.plain().push_back(task, self);
        }
    }
}

impl QueueHooks<Node<Scheduler>> for Core {
    fn overflow(&self, tasks: List<Node<Scheduler>>) {
        self.shared.trace.overflow(self.index);
        self.counters().overflows.add(1);
        self.spill(tasks);
    }

    #[inline]
    fn notify(&self) {
        self.shared.notify();
    }

    #[inline]
    fn slot_filled(&self) {
        self.shared.call_watcher();
    }
}

/// Queues a task on this thread's worker. Returns the task if this thread is not a worker of the
/// task's runtime.
#[inline]
fn schedule_here(scheduler: Scheduler, task: Task, why: WakeKind) -> Option<Task> {
    let mut task = Some(task);
    with_core(|core| {
        if core.is_plain_for(scheduler) {
            if let Some(task) = task.take() {
                core.schedule_plain(task, why);
            }
        } else if core.is_grouped_for(scheduler) {
            if let Some(task) = task.take() {
                core.schedule(task, why);
            }
        }
    });
    task
}

impl Shared {
    /// Called after a push into a queue that other workers can see. If no worker searches, wakes a
    /// sleeper, or starts its thread. If the thread cannot be started, tries the next worker.
    /// Another notifier may have relied on the refused worker as a searcher. The next worker finds
    /// that notifier's task, or a busy worker does when it checks all queues before it parks.
    pub(crate) fn notify(&self) {
        let next = self.idle.notify();
        if next.is_some() {
            self.call(next);
        }
    }

    /// Sends a task to its home (rule 4): pushes the task into the home's inbox, and unparks the
    /// home if it sleeps.
    pub(crate) fn send_home(&self, home: usize, task: Task) {
        self.groups.send_to(home, task);
        // Ordering: SeqCst pairs with the fence in `Idle::sleep`: this thread sees that the home
        // sleeps, or the home sees the task.
        fence(SeqCst);
        if self.idle.was_notified(home) {
            // It is awake. As in `notify_from_outside`, correctness does not depend on the nudge.
            if cfg!(not(selvedge_loom)) && self.slices.of(home).nudge() {
                self.note_nudge(home);
            }
            return;
        }
        // The thread that clears the bit unparks the home, so that a burst costs one unpark.
        if self.idle.wake_self(home) == Woken::ByNotifier {
            return;
        }
        context::hold_core(|| {
            trace::notify(self, home);
            let waker = self.remotes[home].unparker.waker();
            self.hooks.contain(|| waker.wake_by_ref());
        });
    }

    /// Unparks a worker, or starts its thread ([`unpark`](crate::worker::unpark)). The call may be
    /// in the middle of an operation of this thread's worker. An unparker, and the drop of a
    /// refused worker's driver, are user code. A panic of that code is contained, so that the
    /// caller of a waker goes on.
    #[cold]
    fn call(&self, mut next: Option<usize>) {
        context::hold_core(|| {
            while let Some(worker) = next {
                trace::notify(self, worker);
                let remote = &self.remotes[worker];
                let mut has_thread = true;
                self.hooks.contain(|| has_thread = remote.unparker.unpark());
                if has_thread {
                    return;
                }
                // This thread had the refused worker's core, so no other thread writes the counter.
                remote.counters.thread_refusals.add(1);
                // The last searcher need not look for work here. The next notification decides by
                // the counts that this change leaves, as after a reservation that is returned (rule
                // 4 of `worker_idle`).
                self.idle.stop_searching();
                next = self.idle.notify();
            }
        });
    }

    /// Notifies after a push into the injector by a thread that is not a worker. If all workers are
    /// busy and the pushed task was not taken at once, one worker is nudged. The next operation of
    /// the task that this worker polls is refused. This usually ends the poll. After the poll the
    /// worker looks at the injector. A worker that was just nudged ignores the nudge, and the
    /// pushed task waits for that worker's next look. If the pushed task was taken meanwhile, the
    /// nudge only costs a yield.
    pub(crate) fn notify_from_outside(&self) {
        self.notify();
        // Correctness does not depend on the nudge, so the loom models leave it out. coop-budget
        // and `look` have models of it.
        let nudges = cfg!(not(selvedge_loom));
        if nudges && self.idle.counts() == (0, 0) && self.has_injected() {
            self.nudge();
        }
    }
}
