//! The state that all workers of a runtime share, and how a task reaches a queue.
//!
//! A task names its runtime by a plain pointer, so neither a spawn nor a completion writes to a
//! count that all workers share. These rules say why the pointer is valid when it is used:
//!
//! 1. *A task's runtime exists while a `Notified` of the task exists.* A task that is not complete
//!    and has been pending is in some worker's list. A task that has never been pending is queued
//!    or runs. A worker leaves only when its list and the queues are empty, and its thread has a
//!    counted `Shared` until then.
//! 2. *A runtime exists until its notifiers have notified.* After a notifier's push the task may
//!    complete at once, and the runtime may end. A worker of this runtime has its own counted
//!    `Shared`. Any other thread has announced itself in its [`announce`](worker_idle::announce)
//!    record. Before the workers leave, they wait for the end of these announcements. A worker may
//!    leave within an announcement of its own thread, if a wake drops a task that owns a driven
//!    worker. Then the worker leaves its counted `Shared` to that announcement, which awaits the
//!    other announcements in the worker's place.
//! 3. *A thread that has lent its core has a counted `Shared` until its poll is over.* The thread
//!    queues the task that the poll leaves. If the workers have left by then, the thread ends the
//!    queued tasks.
use crate::{
    events::{ClockHold, Events},
    fork::Process,
    groups::RuntimeGroups,
    monitor::Monitor,
    observe::{
        metrics::Counters,
        task_list::{Listed, TaskList},
        trace::{RecorderSettings, Trace},
    },
    settings::{exits::Exits, hooks::Hooks, unhandled::Unhandled},
    worker::{
        core::Core,
        identity::{RuntimeId, RuntimePtr},
        injectors::Injectors,
        queue::Stealer,
        scheduler::{Scheduler, Task},
        unpark::Unparker,
    },
};
use blocking_threads::{Closure, Lent, Pool};
use coop_budget::{Budget, Slices};
use queue_global::{Injector, List};
use std::{ptr::NonNull, time::Instant};
use sync_shim::{
    CachePadded,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Retire},
    count,
    sync::Arc,
};
use task_header::Node;
use worker_idle::{Backoff, Idle, announce::Registry};

/// Job of a thread of the pool. [`blocking`](crate::blocking) runs it.
pub(crate) enum Job {
    /// A closure, with a hold that keeps a test's clock from jumping meanwhile.
    Closure(Closure<Option<PanicReporter>>, ClockHold),
    /// Run a worker from its start on. The hold keeps a test's clock from jumping until then.
    Worker(Box<Core>, ClockHold),
    /// Accept the core of the worker with this index, if it is still on offer, and run it.
    Core(Arc<Shared>, usize),
}

/// Runtime to which a task or a closure reports its panics
/// ([`unhandled`](crate::settings::unhandled)).
///
/// A `PanicReporter` holds the runtime's memory beyond the runtime's end, because an output may be
/// dropped later, and its drop may panic.
pub(crate) struct PanicReporter(pub(crate) Arc<Shared>);

/// The metadata of a task that takes the slow path of a spawn.
pub(crate) struct Attached {
    /// None if panics are not reported.
    pub(crate) reporter: Option<PanicReporter>,
    /// None if the task is not listed.
    pub(crate) listed: Option<Listed>,
}

impl Attached {
    /// Returns the place of a task that is in the list of tasks.
    pub(crate) fn listed(task: &Task) -> Option<&Listed> {
        task.metadata::<Self>()?.listed.as_ref()
    }
}

/// The builder's settings for the workers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Ticks between looks at the injector while there is other work.
    pub(crate) global_interval: u32,
    /// Whether a worker reads the clock, and looks at the injector after fewer ticks while its
    /// ticks are long.
    pub(crate) adapts: bool,
    /// Whether there is a LIFO slot.
    pub(crate) lifo: bool,
    pub(crate) budget: Budget,
    pub(crate) seed: u64,
    /// Whether spawns take the slow path: a hook observes spawns, polls or panics, the policy for
    /// unhandled panics needs them reported, or all tasks are listed.
    pub(crate) special_spawns: bool,
    /// Whether polls take the slow path: for a hook, to be measured, or for the list of tasks.
    pub(crate) observed: bool,
    /// Whether all tasks are listed, for `Handle::tasks`.
    pub(crate) lists_tasks: bool,
    pub(crate) poll_times: bool,
    /// Whether workers wait in drivers that the builder's user makes.
    pub(crate) has_drivers: bool,
    pub(crate) busy_time: bool,
    /// The backoff with which a thread begins.
    pub(crate) backoff: Backoff,
    /// The first part of the threads' names.
    pub(crate) thread_name: String,
    /// The runtime's name.
    pub(crate) name: Option<String>,
    /// Whether the thread in `block_on` is the only worker.
    pub(crate) current_thread: bool,
    /// The shards of the injector, if tests say so and not the number of workers.
    pub(crate) injector_shards: Option<usize>,
    /// The most events that a worker with tasks to run takes from its parker at once.
    pub(crate) max_busy_events: usize,
}

/// The state that all workers share.
pub(crate) struct Shared {
    pub(crate) injector: Injectors,
    pub(crate) idle: Idle,
    pub(crate) remotes: Box<[Arc<Remote>]>,
    /// The workers' time slices. A push from outside nudges one worker while all are busy.
    pub(crate) slices: Slices,
    pub(crate) blocking: Pool<Job>,
    pub(crate) monitor: Monitor,
    pub(crate) announcements: Arc<Registry>,
    /// The time from which [`Remote::nudged_at`] counts.
    pub(crate) begun: Instant,
    pub(crate) settings: CachePadded<Settings>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) events: Events,
    pub(crate) unhandled: Unhandled,
    pub(crate) tasks: Arc<TaskList>,
    #[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
    pub(crate) dump_signals: crate::observe::dump::signals::DumpSignals,
    pub(crate) trace: Trace,
    pub(crate) ended_outside: CachePadded<AtomicU64>,
    pub(crate) id: RuntimeId,
    /// The process that owns the threads (checked after `fork`).
    pub(crate) process: Process,
    pub(crate) closing: CachePadded<AtomicBool>,
    /// Whether spawns are refused: while the runtime is exiting, and from its close on.
    pub(crate) refuses_spawns: AtomicBool,
    pub(crate) exits: Exits,
    /// Dropped after the queues: the tasks that are dropped with the queues leave their groups.
    pub(crate) groups: RuntimeGroups,
    /// Whether a driven worker was dropped before its end: then perhaps no worker comes for queued
    /// tasks.
    pub(crate) abandoned: AtomicBool,
}

/// The part of a worker that other threads see.
pub(crate) struct Remote {
    pub(crate) stealer: Stealer,
    pub(crate) unparker: Unparker<Core>,
    /// The core while it is lent and no thread has accepted it.
    pub(crate) lent: Lent<Core>,
    /// The core while the polled task is in a `syscall`.
    pub(crate) call: sched_monitor::Handoff<Core>,
    /// The system's id of the thread that has the core, or 0.
    pub(crate) thread: sync_shim::atomic::AtomicU32,
    /// The time of the last nudge of the worker, in nanoseconds since [`Shared::begun`]. 0 if the
    /// worker has taken note of that nudge.
    pub(crate) nudged_at: AtomicU64,
    /// Counters that the worker alone writes.
    pub(crate) counters: CachePadded<Counters>,
}

impl Shared {
    #[allow(clippy::too_many_arguments, reason = "it takes a value for each field")]
    pub(crate) fn new(
        remotes: Vec<Arc<Remote>>,
        blocking: Pool<Job>,
        monitor: Monitor,
        settings: Settings,
        hooks: Arc<Hooks>,
        events: Events,
        groups: RuntimeGroups,
        recorder: RecorderSettings,
    ) -> Self {
        let workers = remotes.len();
        let trace = Trace::new(workers, recorder);
        Self {
            groups,
            injector: Injectors::new(workers, settings.injector_shards),
            idle: Idle::new(workers),
            slices: Slices::new(workers),
            monitor,
            remotes: remotes.into(),
            blocking,
            announcements: Arc::new(Registry::new()),
            begun: sync_shim::time::now(),
            settings: CachePadded::new(settings),
            hooks,
            events,
            unhandled: Unhandled::new(),
            tasks: Arc::new(TaskList::new(workers)),
            #[cfg(all(unix, feature = "signal", not(any(selvedge_loom, selvedge_shuttle))))]
            dump_signals: Default::default(),
            trace,
            ended_outside: CachePadded::new(count::shared(AtomicU64::new(0))),
            id: RuntimeId::next(),
            process: Process::this(),
            closing: CachePadded::new(AtomicBool::new(false)),
            refuses_spawns: AtomicBool::new(false),
            exits: Exits::new(),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Whether `fork` has made this process. The runtime is a copy then: its threads are those of
    /// the parent process.
    pub(crate) fn is_in_forked_child(&self) -> bool {
        self.process.is_gone()
    }

    /// Panics in a child made by `fork`, where `call` would wait for the threads of the parent.
    ///
    /// # Panics
    /// If `fork` has made this process since the runtime was built.
    #[inline]
    #[track_caller]
    pub(crate) fn assert_is_not_in_forked_child(&self, call: &str) {
        if self.is_in_forked_child() {
            self.refuse_in_copy(call);
        }
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn refuse_in_copy(&self, call: &str) -> ! {
        panic!(
            "{call} was called in a child made by fork, on {} of the parent, whose threads and \
             sockets the child has not: build a runtime after the fork, or call exec first",
            self.title(),
        )
    }

    /// Returns the words by which a message names this runtime.
    pub(crate) fn title(&self) -> String {
        match &self.settings.name {
            Some(name) => format!("runtime {} ({name:?})", self.id),
            None => format!("runtime {}", self.id),
        }
    }

    /// The address of this runtime, which tasks and groups keep.
    pub(crate) fn address(&self) -> RuntimePtr {
        RuntimePtr(NonNull::from(self).cast())
    }

    /// Returns a pointer to the runtime at this address. The caller proves that the runtime exists.
    #[inline]
    pub(crate) fn at(address: RuntimePtr) -> NonNull<Self> {
        address.0.cast()
    }

    /// Returns whether slots are watched: there are slots, and more than one worker.
    pub(crate) fn watches_slots(&self) -> bool {
        self.settings.lifo && self.remotes.len() > 1
    }

    /// The queue for a task from outside: the injector, or that of the groups.
    #[inline]
    pub(crate) fn injector_of(&self, task: &Task) -> &Injector<Node<Scheduler>> {
        let own = || self.injector.mine();
        self.groups.injector_of(task).unwrap_or_else(own)
    }

    /// Pushes a task that was accepted before into its [injector](Self::injector_of). The caller
    /// notifies.
    #[inline]
    pub(crate) fn requeue(&self, task: Task) {
        self.injector_of(&task).requeue(task);
    }

    /// Pushes a task that was accepted before, on a thread that is not a worker, and notifies.
    #[inline]
    pub(crate) fn requeue_from_outside(&self, task: Task) {
        if !self.groups.goes_to_mains_injector(&task) {
            return self.requeue_to_group_or_home(task);
        }
        self.injector.mine().requeue(task);
        self.notify_from_outside();
    }

    /// The same for a task that does not go to main's injector, or that may have a home.
    fn requeue_to_group_or_home(&self, task: Task) {
        if let Some(home) = self.groups.home_of(&task) {
            return self.send_home(home, task);
        }
        self.requeue(task);
        self.notify_from_outside();
    }

    /// Whether tasks from outside are queued.
    #[inline]
    pub(crate) fn has_injected(&self) -> bool {
        self.groups.has_injected() || !self.injector.is_empty()
    }

    /// The number of tasks from outside that are queued, of all groups. The tasks that were pushed
    /// since a worker last looked may count as one task.
    pub(crate) fn injected_depth(&self) -> usize {
        self.injector.len() + self.groups.injected_len()
    }

    /// Counts the tasks from outside that are queued, of all groups, under the injector's lock. For
    /// metrics and reports.
    pub(crate) fn count_injected(&self) -> usize {
        self.injector.count() + self.groups.count_injected()
    }

    /// Takes a task from outside, of any group, or out of any inbox: for shutdown.
    pub(crate) fn pop_injected(&self) -> Option<Task> {
        (self.groups.pop_injected()).or_else(|| self.injector.pop())
    }

    /// Whether [`pop_injected`](Self::pop_injected) would find a task: for shutdown.
    pub(crate) fn has_injected_or_mail(&self) -> bool {
        self.groups.has_mail() || self.has_injected()
    }

    /// Queues a task that was spawned by a thread that is not a worker of this runtime.
    ///
    /// # Panics
    /// In a child made by `fork`.
    #[track_caller]
    pub(crate) fn inject(&self, task: Task) {
        self.assert_is_not_in_forked_child("spawn");
        // A refused task is dropped here, which cancels it.
        if self.injector_of(&task).push(task).is_ok() {
            self.injector.count_spawned(1);
            self.notify_from_outside();
        }
    }

    /// As [`inject`](Self::inject), for tasks that all go to the injector `to`.
    pub(crate) fn inject_batch(
        &self,
        to: &Injector<Node<Scheduler>>,
        tasks: List<Node<Scheduler>>,
    ) {
        let spawned = tasks.len() as u64;
        if to.push_batch(tasks).is_ok() {
            self.injector.count_spawned(spawned);
            self.notify_from_outside();
        }
    }

    /// Queues a task whose poll has lent the core to another thread.
    ///
    /// Once the runtime is closing, the workers may have left: then this thread ends the queued
    /// tasks.
    pub(crate) fn take_in(&self, task: Task) {
        // The fence of the notification is between the push and the check for the close. It pairs
        // with the fence in `Core::end`: either a worker that has seen the close sees the task, or
        // this thread sees the close.
        self.requeue_from_outside(task);
        if self.is_closing() {
            self.end_queued();
        }
    }

    /// Returns whether spawns are refused. Costs a load.
    pub(crate) fn refuses_spawns(&self) -> bool {
        // Ordering: Relaxed. If a worker still accepts a task, the task is ended like one that was
        // accepted before the close: the worker checks its queue after the fence of `Core::end`.
        self.refuses_spawns.load(Relaxed)
    }

    /// Returns whether the runtime is closing. Costs a load of a cache line that is written once.
    pub(crate) fn is_closing(&self) -> bool {
        // Ordering: Relaxed, as a thread that acts on the close makes a fence (see `close`).
        self.closing.load(Relaxed)
    }

    /// Returns whether a thief would find a task. A worker that has announced its sleep checks
    /// this before it parks.
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
    /// Drops the values of groups, and marks the atomics as freed, so that a model fails if a late
    /// notifier touches them.
    fn drop(&mut self) {
        self.groups.drop_values(|drop| self.hooks.contain(drop));
        self.ended_outside.retire();
    }
}

#[cfg(all(test, not(any(selvedge_shuttle, selvedge_count))))]
mod conformance;
#[cfg(all(test, not(selvedge_count)))]
mod models;
