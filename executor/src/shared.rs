//! What all workers of a runtime share, and how a task reaches a queue.
//!
//! A task names its runtime by a plain pointer, so that neither spawn nor completion counts on a
//! line that all share. Why the pointer holds:
//!
//! 1. A task that is not complete and has been pending is in some worker's list; one that has
//!    never been pending is in a queue or runs. A worker leaves only when its list and the queues are
//!    empty, and its thread has a counted `Shared` until then. So whoever holds a `Notified` may use the pointer.
//! 2. After the push, the task may complete at once, and the runtime with it. A worker of this
//!    runtime goes on all the same with its own counted `Shared`; any other thread has announced
//!    itself in its [`foreign`](crate::foreign) record, which the workers await before they leave.
use crate::{
    blocking::Pool,
    context,
    foreign::Registry,
    idle::Idle,
    metrics::Counters,
    park::{ThreadUnpark, Unpark},
};
use coop_budget::Budget;
use core::ptr::NonNull;
use queue_global::Injector;
use queue_spmc::ring::Stealer;
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    sync::Arc,
};
use task_header::{Node, Notified, Schedule, WakeKind};

/// A task of this executor, queued.
pub(crate) type Task = Notified<Scheduler>;

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) injector: Injector<Node<Scheduler>>,
    pub(crate) idle: Idle,
    pub(crate) remotes: Box<[CachePadded<Remote>]>,
    pub(crate) blocking: Arc<Pool>,
    pub(crate) foreign: Arc<Registry>,
    pub(crate) budget: Budget,
    pub(crate) spawned_outside: CachePadded<AtomicU64>,
    closing: CachePadded<AtomicBool>,
}

/// What the others see of a worker.
pub(crate) struct Remote {
    pub(crate) stealer: Stealer<Task>,
    pub(crate) unpark: ThreadUnpark,
    pub(crate) counters: Counters,
}

impl Shared {
    pub(crate) fn new(remotes: Vec<Remote>, blocking: Arc<Pool>, budget: Budget) -> Self {
        Self {
            injector: Injector::new(),
            idle: Idle::new(remotes.len()),
            remotes: remotes.into_iter().map(CachePadded::new).collect(),
            blocking,
            foreign: Arc::new(Registry::new()),
            budget,
            spawned_outside: CachePadded::new(AtomicU64::new(0)),
            closing: CachePadded::new(AtomicBool::new(false)),
        }
    }

    /// After a push into a queue that others can see: wakes one worker if that is called for.
    pub(crate) fn notify(&self) {
        if let Some(worker) = self.idle.notify() {
            self.remotes[worker].unpark.unpark();
        }
    }

    /// Queues a task that was spawned by a thread that is no worker of this runtime.
    pub(crate) fn inject(&self, task: Task) {
        // Ordering: Relaxed, a count.
        self.spawned_outside.fetch_add(1, Relaxed);
        // A refused task is dropped here, which cancels it.
        if self.injector.push(task).is_ok() {
            self.notify();
        }
    }

    /// Refuses spawns from now on and calls the workers to end.
    pub(crate) fn close(&self) {
        self.injector.close();
        // Ordering: Release pairs with `is_closing`: who sees it finds the injector closed.
        self.closing.store(true, Release);
        for remote in &self.remotes {
            remote.unpark.unpark();
        }
    }

    /// Whether the workers are to end. A load of a line that is written once.
    pub(crate) fn is_closing(&self) -> bool {
        // Ordering: Acquire pairs with `close`.
        self.closing.load(Acquire)
    }

    /// Whether a thief would find anything. For the look after announcing sleep.
    pub(crate) fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.remotes.iter().any(|remote| !remote.stealer.is_empty())
    }
}

impl Drop for Shared {
    /// Frees what a late notifier would touch: the model sees one that is not ordered before.
    fn drop(&mut self) {
        self.idle.retire();
        self.spawned_outside.retire();
    }
}

/// A task's way to its runtime.
#[derive(Clone, Copy)]
pub(crate) struct Scheduler(NonNull<Shared>);

// SAFETY: it is a shared borrow of a `Shared`, which is `Sync`; rules 1 and 2 are its lifetime.
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
    fn schedule(task: Task, why: WakeKind) {
        let scheduler = *task.scheduler();
        if let Some(task) = context::schedule(scheduler, task, why) {
            // SAFETY: the task in hand keeps its runtime up (rule 1).
            let foreign = NonNull::from(unsafe { &(*scheduler.0.as_ptr()).foreign });
            let push = move || {
                // SAFETY: the task keeps the runtime up, and from its push on the announcement (rule 2).
                let shared = unsafe { scheduler.0.as_ref() };
                shared.injector.requeue(task);
                shared.notify();
            };
            // SAFETY: as above.
            unsafe { Registry::announce(foreign, push) };
        }
    }
}
