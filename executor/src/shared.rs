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
//!    itself in its [`announce`](worker_idle::announce) record, which the workers await before they leave.
//!    A worker that leaves within an announcement of its own thread (a wake drops a task that owns a
//!    driven one) leaves its counted `Shared` to that announcement, which awaits the others in its stead.
//! 3. A thread whose core went to another in the middle of a poll has a counted `Shared` until that poll is over. What the
//!    poll leaves it queues itself, and if the workers have left by then, it ends what is queued.
use crate::{
    blocking::{self, Pool},
    core::Core,
    extensions::Extensions,
    hooks::Hooks,
    metrics::Counters,
    scope::{self, In},
    unhandled::Unhandled,
    wake::Scheduler,
};
use blocking_threads::Lent;
use coop_budget::{Budget, Slices};
use queue_global::Injector;
use std::task::Waker;
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
use worker_queue::Stealer;

/// A task of this executor, queued.
pub(crate) type Task = Notified<Scheduler>;

/// What a builder has settled for the workers.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Ticks between looks at the injector while there is other work.
    pub(crate) global_interval: u32,
    /// Whether there is a LIFO slot.
    pub(crate) lifo: bool,
    pub(crate) budget: Budget,
    pub(crate) seed: u64,
    /// Whether anything looks at spawns, or at panics.
    pub(crate) special_spawns: bool,
    /// Whether anything looks at polls: hooks, or a clock.
    pub(crate) observed: bool,
    pub(crate) poll_times: bool,
    /// Whether workers wait in drivers of the builder's.
    pub(crate) has_drivers: bool,
    pub(crate) busy_time: bool,
    /// With which a thread begins.
    pub(crate) backoff: Backoff,
    /// What the threads' names begin with.
    pub(crate) thread_name: String,
}

/// What all workers share.
pub(crate) struct Shared {
    pub(crate) injector: Injector<Node<Scheduler>>,
    pub(crate) idle: Idle,
    pub(crate) remotes: Box<[Arc<Remote>]>,
    /// By which who pushes into the injector while all are busy nudges one of them to look at it.
    pub(crate) slices: Slices,
    pub(crate) blocking: Pool,
    pub(crate) foreign: Arc<Registry>,
    pub(crate) settings: CachePadded<Settings>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) extensions: Extensions,
    pub(crate) unhandled: Unhandled,
    pub(crate) spawned_outside: CachePadded<AtomicU64>,
    pub(crate) ended_outside: AtomicU64,
    /// That has the threads.
    pub(crate) process: u32,
    closing: CachePadded<AtomicBool>,
    /// A driven worker was dropped before its end: what is queued may find nobody.
    abandoned: AtomicBool,
}

/// What the others see of a worker.
pub(crate) struct Remote {
    pub(crate) stealer: Stealer<Node<Scheduler>>,
    /// Unparks it.
    pub(crate) unpark: Waker,
    /// Its core until its thread is started.
    pub(crate) unstarted: Lent<Core>,
    /// Where its core is while nobody runs it.
    pub(crate) lent: Lent<Core>,
    /// What the worker alone writes.
    pub(crate) counters: CachePadded<Counters>,
}

impl Shared {
    pub(crate) fn new(
        remotes: Vec<Arc<Remote>>,
        blocking: Pool,
        settings: Settings,
        hooks: Arc<Hooks>,
        extensions: Extensions,
    ) -> Self {
        Self {
            injector: Injector::new(),
            idle: Idle::new(remotes.len()),
            slices: Slices::new(remotes.len()),
            remotes: remotes.into(),
            blocking,
            foreign: Arc::new(Registry::new()),
            settings: CachePadded::new(settings),
            hooks,
            extensions,
            unhandled: Unhandled::new(),
            spawned_outside: CachePadded::new(count::shared(AtomicU64::new(0))),
            ended_outside: count::shared(AtomicU64::new(0)),
            process: std::process::id(),
            closing: CachePadded::new(AtomicBool::new(false)),
            abandoned: AtomicBool::new(false),
        }
    }

    /// After a push into a queue that others can see: wakes one worker if that is called for, or starts its thread. If that can't be started the others do without.
    /// (Who relied on it as a searcher is answered by the next one, or by a busy worker, who looks before it sleeps.)
    pub(crate) fn notify(&self) {
        let next = self.idle.notify();
        if next.is_some() {
            self.call(next);
        }
    }

    #[cold]
    fn call(&self, mut next: Option<usize>) {
        while let Some(worker) = next {
            let remote = &self.remotes[worker];
            let Some(core) = remote.unstarted.take() else {
                return self.unpark(worker);
            };
            // A fork's copy has no threads, and starts none.
            if self.process != std::process::id() || blocking::start(core).is_ok() {
                return;
            }
            remote.counters.refused.add(1); // By who had its core, the last.
            self.idle.stop_searching();
            next = self.idle.notify();
        }
    }

    /// After a push into the injector by who is no worker. If all are busy, and what is there was not taken at once, one is nudged: the next operation of the task that it polls is refused, which
    /// as a rule ends the poll. One that has just been nudged may not hear it: then what was pushed waits for its next look. And what was taken in that moment costs a turn for nothing.
    pub(crate) fn notify_from_outside(&self) {
        self.notify();
        // Nothing rests on it, so that a model leaves it out: the budget's part has models of it.
        let nudges = cfg!(not(selvedge_loom));
        if nudges && self.idle.counts() == (0, 0) && !self.injector.is_empty() {
            self.slices.nudge_one();
        }
    }

    /// A user's unparker may panic: that is no reason for the waker's caller to fail.
    fn unpark(&self, worker: usize) {
        self.hooks
            .contain(|| self.remotes[worker].unpark.wake_by_ref());
    }

    /// Whether slots are watched at all: there is somebody to rob and somebody to do it.
    pub(crate) fn watches_slots(&self) -> bool {
        self.settings.lifo && self.remotes.len() > 1
    }

    /// After a worker has filled its empty slot. A load while there is a watcher; three if nobody sleeps who could be one.
    /// It may start a thread: see [`watch`](crate::watch).
    pub(crate) fn call_watcher(&self) {
        if !self.idle.is_watched() && self.watches_slots() {
            self.idle.want_watcher();
            if self.idle.counts().1 > 0 {
                self.notify();
            }
        }
    }

    /// Queues a task that was spawned by a thread that is no worker of this runtime.
    pub(crate) fn inject(&self, task: Task) {
        // A refused task is dropped here, which cancels it.
        if self.injector.push(task).is_ok() {
            // Ordering: Relaxed, a count.
            self.spawned_outside.fetch_add(1, Relaxed);
            self.notify_from_outside();
        }
    }

    /// Queues a task that its poll has left without a worker: the core went to another thread.
    ///
    /// Once the runtime closes, the workers may have gone: then what is queued ends here.
    pub(crate) fn take_in(&self, task: Task) {
        self.injector.requeue(task);
        // Its fence, between the push and the look at the close, pairs with the one in `Core::end`: a worker that has seen the close sees the
        // task, or this thread the close.
        self.notify_from_outside();
        if self.is_closing() {
            self.end_queued();
        }
    }

    /// Cancels what is queued, on this thread, unless it does so further out: the drop of a future has queued something then, which
    /// the loop around that drop finds. Panics of the drops and of the hook are contained, so that the loop goes on.
    #[cold]
    pub(crate) fn end_queued(&self) {
        if scope::is_ending(self) {
            return;
        }
        scope::within(In::Ending(self), || {
            while let Some(task) = self.injector.pop() {
                let id = task.id();
                drop(task);
                // Ordering: Relaxed, a count.
                self.ended_outside.fetch_add(1, Relaxed);
                self.hooks.call_with(&self.hooks.on_end, id);
            }
        });
    }

    /// A worker goes before its end, which it tries after this.
    pub(crate) fn abandon(&self) {
        // Ordering: Relaxed, the fence in `Core::end` pairs with that of the notification in `schedule`: a wake that comes in after
        // the end's last look sees this.
        self.abandoned.store(true, Relaxed);
        self.close();
    }

    /// Whether a driven worker was dropped before its end.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Ordering: Relaxed, pairs with `abandon` by the fence of the notification before it.
        self.abandoned.load(Relaxed)
    }

    /// Refuses spawns from now on and calls the workers to end.
    pub(crate) fn close(&self) {
        self.injector.close();
        // Ordering: Release pairs with the fence of `Core::end`, after a look at it: who ends finds the queue closed, and with that all that was pushed
        // before. What comes in later is found by that fence and the one of `Idle::notify`, in `take_in`.
        self.closing.store(true, Release);
        // Before the workers, who look at it in their end.
        self.blocking.finish();
        for (worker, remote) in self.remotes.iter().enumerate() {
            if remote.unstarted.take().is_some() {
                // It searches now, for a notifier or by this; who has relied on that finds the others unparked after it.
                self.idle.wake_self(worker);
                self.idle.stop_searching();
            }
        }
        for worker in 0..self.remotes.len() {
            self.unpark(worker);
        }
    }

    /// Whether the workers are to end. A load of a line that is written once.
    pub(crate) fn is_closing(&self) -> bool {
        // Ordering: Relaxed, who acts on it fences (see `close`).
        self.closing.load(Relaxed)
    }

    /// Whether a thief would find anything. For the look after announcing sleep.
    pub(crate) fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.remotes.iter().any(|remote| !remote.stealer.is_empty())
    }

    /// Whether a worker has a task in its slot.
    pub(crate) fn has_filled_slot(&self) -> bool {
        let mut stealers = self.remotes.iter().map(|remote| &remote.stealer);
        stealers.any(|stealer| !stealer.slot_is_empty())
    }
}

impl Drop for Shared {
    /// Frees what a late notifier would touch: the model sees one that is not ordered before.
    fn drop(&mut self) {
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
