//! The state that all workers of a runtime share, and how a task reaches a queue.
//!
//! A task names its runtime by a plain pointer, so neither a spawn nor a completion writes to a
//! count that all workers share. Why the pointer is good when it is used:
//!
//! 1. *A task's runtime is there while a `Notified` of it is.* A task that is not complete and has
//!    been pending is in some worker's list. A task that has never been pending is queued or runs.
//!    A worker leaves only when its list and the queues are empty, and its thread has a counted
//!    `Shared` until then.
//! 2. *A notifier's runtime is there until it has notified.* After its push the task may complete
//!    at once, and the runtime end. A worker of this runtime has its own counted `Shared`. Any
//!    other thread has announced itself in its [`announce`](worker_idle::announce) record, which
//!    the workers await before they leave. A worker that leaves within an announcement of its own
//!    thread (a wake drops a task that owns a driven worker) leaves its counted `Shared` to that
//!    announcement, which awaits the others in its place.
//! 3. *A thread that has lent its core has a counted `Shared` until its poll is over.* It queues
//!    the task that the poll leaves. If the workers have left by then, it ends the queued tasks.
use crate::{
    blocking::{self, Pool},
    context,
    core::Core,
    events::Events,
    extensions::Extensions,
    hooks::{Hooks, TaskMeta},
    identity::Id,
    metrics::Counters,
    monitor::{self, Monitor},
    queue::Stealer,
    scope::{self, In},
    trace::{self, Trace},
    unhandled::Unhandled,
    wake::Scheduler,
};
use blocking_threads::Lent;
use coop_budget::{Budget, Slices};
use queue_global::Injector;
use std::{task::Waker, time::Instant};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Relaxed, Release},
        Retire,
    },
    count,
    sync::Arc,
};
use task_header::{Node, Notified};
use worker_idle::{Backoff, Idle, announce::Registry};

/// A queued task of this executor.
pub(crate) type Task = Notified<Scheduler>;

/// The builder's settings for the workers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Ticks between looks at the injector while there is other work.
    pub(crate) global_interval: u32,
    /// Whether that number shrinks while ticks are long, by the clock.
    pub(crate) adapts: bool,
    /// Whether there is a LIFO slot.
    pub(crate) lifo: bool,
    pub(crate) budget: Budget,
    pub(crate) seed: u64,
    /// Whether a hook observes spawns, or panics.
    pub(crate) special_spawns: bool,
    /// Whether a hook or a clock observes polls.
    pub(crate) observed: bool,
    pub(crate) poll_times: bool,
    /// Whether workers wait in drivers of the builder's.
    pub(crate) has_drivers: bool,
    pub(crate) busy_time: bool,
    /// A thread's first backoff.
    pub(crate) backoff: Backoff,
    /// The first part of the threads' names.
    pub(crate) thread_name: String,
    /// The runtime's name.
    pub(crate) name: Option<String>,
    /// Whether the thread in `block_on` is the only worker.
    pub(crate) current_thread: bool,
}

/// The state that all workers share.
pub(crate) struct Shared {
    pub(crate) injector: Injector<Node<Scheduler>>,
    pub(crate) idle: Idle,
    pub(crate) remotes: Box<[Arc<Remote>]>,
    /// The workers' time slices. A push into the injector nudges one of them while all are busy.
    pub(crate) slices: Slices,
    pub(crate) blocking: Pool,
    pub(crate) monitor: Monitor,
    pub(crate) foreign: Arc<Registry>,
    /// The time that stamps count from.
    pub(crate) begun: Instant,
    pub(crate) settings: CachePadded<Settings>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) extensions: Extensions,
    pub(crate) events: Events,
    pub(crate) unhandled: Unhandled,
    #[allow(dead_code, reason = "nothing reads it without the feature `trace`")]
    pub(crate) trace: Trace,
    pub(crate) spawned_outside: CachePadded<AtomicU64>,
    pub(crate) ended_outside: AtomicU64,
    pub(crate) id: Id,
    /// Id of the process that owns the threads (checked after `fork`).
    pub(crate) process: u32,
    closing: CachePadded<AtomicBool>,
    /// The scheduler of main's tasks.
    #[cfg(feature = "groups")]
    pub(crate) main: Scheduler,
    /// After the queues: tasks that are dropped with these leave their groups.
    #[cfg(feature = "groups")]
    pub(crate) groups: std::sync::Arc<crate::groups::Groups>,
    /// Whether a driven worker was dropped before its end: then no worker may come for queued
    /// tasks.
    abandoned: AtomicBool,
}

/// The part of a worker that the others see.
pub(crate) struct Remote {
    pub(crate) stealer: Stealer,
    /// Unparks the worker.
    pub(crate) unpark: Waker,
    /// The core of a worker whose thread is not started yet.
    pub(crate) unstarted: Lent<Core>,
    /// The core while it is lent and no thread has accepted it.
    pub(crate) lent: Lent<Core>,
    /// The core while the polled task is in an annotated call.
    #[cfg(feature = "monitor")]
    pub(crate) call: sched_monitor::Handoff<Core>,
    /// The system's id of the thread that has the core, or 0.
    #[cfg(feature = "monitor")]
    pub(crate) thread: sync_shim::atomic::AtomicU32,
    /// When a push last nudged the worker, in nanoseconds since the runtime began. 0 for a nudge
    /// that the worker has noted.
    pub(crate) nudged_at: AtomicU64,
    /// Counters that the worker alone writes.
    pub(crate) counters: CachePadded<Counters>,
}

impl Shared {
    #[allow(
        clippy::too_many_arguments,
        reason = "its fields; some features bring one more"
    )]
    pub(crate) fn new(
        remotes: Vec<Arc<Remote>>,
        blocking: Pool,
        monitor: monitor::Settings,
        settings: Settings,
        hooks: Arc<Hooks>,
        extensions: Extensions,
        events: Events,
        #[cfg(feature = "groups")] groups: std::sync::Arc<crate::groups::Groups>,
    ) -> Self {
        let trace = Trace::new(remotes.len());
        Self {
            #[cfg(feature = "groups")]
            main: Scheduler::in_group(&groups.main),
            #[cfg(feature = "groups")]
            groups,
            injector: Injector::new(),
            idle: Idle::new(remotes.len()),
            slices: Slices::new(remotes.len()),
            monitor: Monitor::new(monitor, remotes.len()),
            remotes: remotes.into(),
            blocking,
            foreign: Arc::new(Registry::new()),
            begun: Instant::now(),
            settings: CachePadded::new(settings),
            hooks,
            extensions,
            events,
            unhandled: Unhandled::new(),
            trace,
            spawned_outside: CachePadded::new(count::shared(AtomicU64::new(0))),
            ended_outside: count::shared(AtomicU64::new(0)),
            id: Id::next(),
            process: std::process::id(),
            closing: CachePadded::new(AtomicBool::new(false)),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Wakes one worker after a push into a queue that others can see, if none searches, or starts
    /// that worker's thread. If the thread cannot be started, the next worker is tried. A notifier
    /// that has relied on the failed one as a searcher is served by the next one, or by a busy
    /// worker, which checks all queues before it parks.
    pub(crate) fn notify(&self) {
        let next = self.idle.notify();
        if next.is_some() {
            self.call(next);
        }
    }

    /// Unparks a worker, or starts its thread. This may be in the middle of an operation of this
    /// thread's worker, and an unparker or the drop of a refused worker's driver is user code.
    #[cold]
    fn call(&self, mut next: Option<usize>) {
        context::hold_core(|| {
            while let Some(worker) = next {
                trace::notify(self, worker);
                let remote = &self.remotes[worker];
                let Some(core) = remote.unstarted.take() else {
                    return self.unpark(worker);
                };
                // A copy that `fork` made has no threads, and starts none.
                if self.process != std::process::id() || blocking::start(core).is_ok() {
                    return;
                }
                // This thread had the core, so it is the counter's only writer.
                remote.counters.refused.add(1);
                self.idle.stop_searching();
                next = self.idle.notify();
            }
        });
    }

    /// Notifies after a push into the injector by a thread that is no worker. If all workers are
    /// busy and the push was not taken at once, one worker is nudged: the next operation of the
    /// task that it polls is refused, which usually ends the poll, and the worker looks at the
    /// injector after the poll. A worker that was just nudged ignores the nudge, and the task waits
    /// for that worker's next look. If the task was taken meanwhile, the nudge costs a yield.
    pub(crate) fn notify_from_outside(&self) {
        self.notify();
        // Correctness does not depend on it, so the models leave it out. coop-budget models it.
        let nudges = cfg!(not(selvedge_loom));
        if nudges && self.idle.counts() == (0, 0) && self.has_injected() {
            self.nudge();
        }
    }

    /// Unparks a worker. A panic of a user's unparker is contained, so that a waker's caller goes
    /// on.
    fn unpark(&self, worker: usize) {
        self.hooks
            .contain(|| self.remotes[worker].unpark.wake_by_ref());
    }

    /// Returns whether slots are watched: there are slots, and another worker to watch them.
    pub(crate) fn watches_slots(&self) -> bool {
        self.settings.lifo && self.remotes.len() > 1
    }

    /// Asks for a watcher after a worker has filled its empty slot. A load if there is a watcher,
    /// three if no worker sleeps that could become one. It may start a thread: see
    /// [`watch`](crate::watch).
    pub(crate) fn call_watcher(&self) {
        if !self.idle.is_watched() && self.watches_slots() {
            self.idle.want_watcher();
            if self.idle.counts().1 > 0 {
                self.notify();
            }
        }
    }

    /// The queue for a task from outside: the injector, or that of the groups.
    #[inline]
    fn injector_of(&self, task: &Task) -> &Injector<Node<Scheduler>> {
        #[cfg(feature = "groups")]
        if *task.scheduler() != Scheduler::of(self) {
            return &self.groups.injector;
        }
        let _ = task;
        &self.injector
    }

    /// Queues a task that was accepted before, by a thread that is no worker. The caller notifies.
    #[inline]
    pub(crate) fn requeue(&self, task: Task) {
        self.injector_of(&task).requeue(task);
    }

    /// Whether tasks from outside are queued.
    #[inline]
    pub(crate) fn has_injected(&self) -> bool {
        #[cfg(feature = "groups")]
        if self.groups.has_injected() {
            return true;
        }
        !self.injector.is_empty()
    }

    /// Takes a task from outside, of any group: for shutdown.
    pub(crate) fn pop_injected(&self) -> Option<Task> {
        #[cfg(feature = "groups")]
        if self.groups.is_used()
            && let Some(task) = self.groups.injector.pop()
        {
            return Some(task);
        }
        self.injector.pop()
    }

    /// Queues a task that a thread spawned that is no worker of this runtime.
    pub(crate) fn inject(&self, task: Task) {
        // A refused task is dropped here, which cancels it.
        if self.injector_of(&task).push(task).is_ok() {
            // Ordering: Relaxed, a count.
            self.spawned_outside.fetch_add(1, Relaxed);
            self.notify_from_outside();
        }
    }

    /// Queues a task whose poll has lent the core to another thread.
    ///
    /// Once the runtime is closing, the workers may have left: then this thread ends the queued
    /// tasks.
    pub(crate) fn take_in(&self, task: Task) {
        self.requeue(task);
        // Its fence, between the push and the check for the close, pairs with the one in
        // `Core::end`: either a worker that has seen the close sees the task, or this thread sees
        // the close.
        self.notify_from_outside();
        if self.is_closing() {
            self.end_queued();
        }
    }

    /// Cancels the queued tasks on this thread. If the thread is in this loop already, the drop of
    /// a future has queued a task, which the outer loop finds. Panics of the drops and of the hook
    /// are contained, so the loop goes on.
    #[cold]
    pub(crate) fn end_queued(&self) {
        if scope::is_ending(self) {
            return;
        }
        scope::within(In::Ending(self), || {
            while let Some(task) = self.pop_injected() {
                let meta = TaskMeta::of(&task);
                drop(task);
                // Ordering: Relaxed, a count.
                self.ended_outside.fetch_add(1, Relaxed);
                self.hooks.call_with(&self.hooks.on_end, meta);
            }
        });
    }

    /// Closes the runtime because a driven worker is dropped before its end, which it tries next.
    pub(crate) fn abandon(&self) {
        // Ordering: Relaxed, the fence in `Core::end` pairs with that of the notification in
        // `schedule`: a wake that comes in after the end's last check sees this.
        self.abandoned.store(true, Relaxed);
        self.close();
    }

    /// Returns whether a driven worker was dropped before its end.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Ordering: Relaxed, pairs with `abandon` by the fence of the notification before it.
        self.abandoned.load(Relaxed)
    }

    /// Refuses spawns from now on, and unparks the workers so that they end.
    pub(crate) fn close(&self) {
        self.injector.close();
        #[cfg(feature = "groups")]
        self.groups.injector.close();
        // Ordering: Release pairs with the fence of `Core::end`, after a load of it: a worker that
        // ends finds the injector closed, and so every task that was pushed before. Tasks that come
        // in later are found by that fence and the one of `Idle::notify`, in `take_in`.
        self.closing.store(true, Release);
        // Before the workers, which look at the pool when they end.
        self.blocking.finish();
        for (worker, remote) in self.remotes.iter().enumerate() {
            if remote.unstarted.take().is_some() {
                // The worker counts as searching now. A notifier that relied on that is served by
                // the others, which are unparked below.
                self.idle.wake_self(worker);
                self.idle.stop_searching();
            }
        }
        for worker in 0..self.remotes.len() {
            self.unpark(worker);
        }
    }

    /// Returns whether the runtime is closing. A load of a line that is written once.
    pub(crate) fn is_closing(&self) -> bool {
        // Ordering: Relaxed, a thread that acts on it fences (see `close`).
        self.closing.load(Relaxed)
    }

    /// Returns whether a thief would find a task: the check after a sleep was announced.
    pub(crate) fn has_work(&self) -> bool {
        self.has_injected() || self.remotes.iter().any(|remote| !remote.stealer.is_empty())
    }

    /// Returns whether a worker has a task in its slot.
    pub(crate) fn has_filled_slot(&self) -> bool {
        let mut stealers = self.remotes.iter().map(|remote| &remote.stealer);
        stealers.any(|stealer| !stealer.slot_is_empty())
    }
}

impl Drop for Shared {
    /// Drops the extensions, and marks the atomics as freed, so that a model fails if a late
    /// notifier touches them.
    fn drop(&mut self) {
        #[cfg(feature = "groups")]
        self.groups.drop_values(|drop| self.hooks.contain(drop));
        for extension in self.extensions.take() {
            self.hooks.contain(|| drop(extension));
        }
        self.spawned_outside.retire();
        self.ended_outside.retire();
    }
}

#[cfg(all(test, not(selvedge_shuttle)))]
mod conformance;
#[cfg(test)]
mod models;
