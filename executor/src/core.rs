//! A worker's core: its queues, its list of live tasks, and how it finds work.
//!
//! Work is found in this order: every so many ticks (61, unless the builder says otherwise), and after a poll that an exhausted budget ended, a fair share of the
//! injector; the LIFO slot; the ring; a fair share of the injector; half of another's ring, from a random start; the injector again.
//!
//! A worker that has polled nothing but tasks that gave way, 4,096 times, yields its processor at the interval: see [`Spin`]. What they wait for may be a thread that waits for it.
//!
//! The slot, the ring and the task kept at hand are a [`WorkerQueue`]; who is told of what goes into it is that part's business. What it asks for is here: the injector takes what
//! overflows, and to tell a sleeper is to notify.
//!
//! A core belongs to one thread at a time, which is the only one to touch it: that of its worker, or the one that took it over when a task of
//! that worker blocked (see [`Lent`](blocking_threads::Lent)). Since a task in its poll may give it away, nothing borrows the core across a call of user code in a poll.
use crate::{
    context,
    driver::Parker,
    metrics::Counters,
    shared::{Remote, Shared, Task},
    wake::Scheduler,
    watch::Seen,
};
use coop_budget::{Budget, Exhausted, Preempt};
use queue_global::List;
use std::{cell::Cell, task::Waker, time::Instant};
use sync_shim::{
    atomic::{Ordering::SeqCst, fence},
    cell::UnsafeCell,
    sync::Arc,
};
use task_header::{Id, Node, Owned, WakeKind};
use worker_idle::{Backoff, Spin, WatchState};
use worker_queue::{QueueHooks, WorkerQueue};

/// What makes a thread a worker. On lines of its own: what is in it changes with every poll.
/// In this order: the list is at its address, so that `after_poll` gives one for the other.
#[repr(C, align(128))]
pub(crate) struct Core {
    owned: UnsafeCell<Owned<Scheduler>>,
    pub(crate) queue: WorkerQueue<Node<Scheduler>>,
    pub(crate) shared: Arc<Shared>,
    remote: Arc<Remote>,
    /// The task that is polled, unless it has asked to go behind the others.
    pub(crate) running: Cell<Option<Id>>,
    /// Of the settings, those that every poll asks for.
    pub(crate) budget: Budget,
    pub(crate) observed: bool,
    /// Whether somebody hears of spawns, or a guard leads them elsewhere.
    pub(crate) special_spawns: Cell<bool>,
    /// Whether an exhausted budget ended a poll: a long one, so that others may have come meanwhile.
    forced: Cell<bool>,
    /// Whether a task is polled that may give the core away.
    pub(crate) lendable: Cell<bool>,
    pub(crate) searching: Cell<bool>,
    /// Whether a sleep was told of, and its end not yet.
    pub(crate) owes_unpark: Cell<bool>,
    /// Whether it does nothing but poll tasks that give way.
    pub(crate) spin: Spin,
    /// Ticks until the injector's turn.
    interval: Cell<u32>,
    pub(crate) index: usize,
    /// How a thread of the runtime sleeps. One that others drive has its own.
    pub(crate) park: Cell<Option<Parker>>,
    /// Whether the interval has come since somebody last polled the driver. A driven worker looks.
    pub(crate) poll_is_due: Cell<bool>,
    /// Whether it pays to wait a moment before a sleep.
    pub(crate) backoff: Cell<Backoff>,
    /// How far the last watch has come, if no notification ended it.
    pub(crate) calm: Cell<WatchState>,
    /// What the watcher has seen in the others' slots.
    pub(crate) seen: Cell<Vec<Seen>>,
    /// Its polls when it was last notified in its sleep, until it sleeps again.
    pub(crate) notified_at: Cell<Option<u64>>,
    /// Since when it is awake, if that is measured.
    awake: Cell<Option<Instant>>,
}

impl Core {
    pub(crate) fn new(
        shared: Arc<Shared>,
        index: usize,
        queue: WorkerQueue<Node<Scheduler>>,
    ) -> Self {
        let remote = shared.remotes[index].clone();
        let settings = &shared.settings;
        Self {
            index,
            special_spawns: Cell::new(settings.special_spawns),
            observed: settings.observed,
            budget: settings.budget,
            queue,
            owned: UnsafeCell::new(Owned::new(remote.unpark.clone())),
            park: Cell::new(None),
            poll_is_due: Cell::new(false),
            interval: Cell::new(settings.global_interval),
            searching: Cell::new(false),
            spin: Spin::new(),
            notified_at: Cell::new(None),
            backoff: Cell::new(settings.backoff),
            calm: Cell::new(WatchState::default()),
            owes_unpark: Cell::new(false),
            seen: Cell::new(Vec::new()),
            running: Cell::new(None),
            forced: Cell::new(false),
            lendable: Cell::new(false),
            awake: Cell::new(None),
            remote,
            shared,
        }
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        &self.remote.counters
    }

    /// The tasks that this worker keeps.
    ///
    /// # Safety
    /// No other borrow of it is used while this one is.
    #[expect(clippy::mut_from_ref, reason = "as a cell's")]
    pub(crate) unsafe fn owned(&self) -> &mut Owned<Scheduler> {
        self.owned.with_mut(|owned| {
            // SAFETY: the core is this thread's; the rest is the caller's.
            unsafe { &mut *owned }
        })
    }

    /// A new task; given back once the runtime is closing.
    #[inline]
    pub(crate) fn accept(&self, task: Task) -> Option<Task> {
        if self.shared.is_closing() {
            return Some(task);
        }
        self.counters().spawned.add(1);
        self.queue.push_next(task, self);
        None
    }

    /// A task that was woken by this thread.
    #[inline]
    pub(crate) fn schedule(&self, task: Task, why: WakeKind) {
        self.counters().local_schedules.add(1);
        if let WakeKind::Wake = why {
            self.queue.push_next(task, self);
        } else {
            self.queue.push_back(task, self);
        }
    }

    #[inline]
    pub(crate) fn begin_poll(&self, task: Id) {
        self.counters().polls.add(1);
        self.running.set(Some(task));
    }

    /// Has the running task go behind the others when its poll is over, if that is what `waker` wakes.
    #[inline]
    pub(crate) fn yield_task(&self, waker: &Waker) -> bool {
        let running = self.running.get();
        let own = running.is_some_and(|task| task.is_woken_by(waker));
        if own {
            self.running.set(None);
        }
        own
    }

    /// The poll is over. Whether its task has asked to go behind the others.
    #[inline]
    pub(crate) fn end_poll(&self) -> bool {
        // Nobody runs from here on: who polls with that task's waker outside of its polls is to wake it.
        self.running.take().is_none()
    }

    pub(crate) fn forced_yield(&self, _: Exhausted) {
        self.counters().forced_yields.add(1);
        self.forced.set(true);
    }

    /// Time goes by as busy from here on, if it doesn't already.
    pub(crate) fn clock_in(&self) {
        if self.shared.settings.busy_time && self.awake.get().is_none() {
            self.awake.set(Some(Instant::now()));
        }
    }

    pub(crate) fn clock_out(&self) {
        if let Some(awake) = self.awake.take() {
            let busy = awake.elapsed().as_nanos() as u64;
            self.counters().busy_ns.add(busy);
        }
    }

    /// The task to run next.
    #[inline]
    pub(crate) fn next(&self) -> Option<Task> {
        let left = self.interval.get() - 1;
        if left == 0 {
            if let Some(task) = self.hold(Self::at_interval) {
                return Some(task);
            }
        } else {
            self.interval.set(left);
        }
        if self.forced.get()
            && let Some(task) = self.after_forced_yield()
        {
            return Some(task);
        }
        if let Some(next) = self.queue.next(self) {
            if next.from_slot {
                self.counters().lifo_hits.add(1);
            }
            return Some(next.item);
        }
        self.take_share().or_else(|| self.search())
    }

    /// By which those outside nudge this worker to look at the injector.
    pub(crate) fn slice(&self) -> &Preempt {
        self.shared.slices.of(self.index)
    }

    /// Begins a new time slice if the last one was asked to end. A load while it was not.
    #[cold]
    pub(crate) fn begin_slice(&self) {
        let slice = self.slice();
        if slice.need_preempt() {
            self.counters().slices_ended.add(1);
            slice.open_slice();
        }
    }

    #[cold]
    #[inline(never)]
    fn after_forced_yield(&self) -> Option<Task> {
        self.forced.set(false);
        self.begin_slice();
        self.take_share()
    }

    fn at_interval(&self) -> Option<Task> {
        self.interval.set(self.shared.settings.global_interval);
        self.clock_out();
        self.clock_in();
        if self.has_releases() {
            self.leave_search();
            self.drain();
        }
        if self.shared.settings.has_drivers {
            self.poll_driver();
        }
        self.poll_is_due.set(true);
        let task = self.take_share();
        if task.is_none() && !self.searching.get() {
            // What changes with all that happens to tasks, but for one that is polled again since it gave way.
            let c = self.counters();
            let news = c.spawned.get() + c.local_schedules.get() + c.injected.get();
            self.spin.look(news + c.stolen.get(), c.polls.get());
        }
        task
    }

    /// Lets go of tasks that ended elsewhere. Some memory is freed, and with it what users have put there.
    pub(crate) fn drain(&self) {
        // SAFETY: for this call: what it drops reaches the queues, but no list.
        unsafe { self.owned() }.drain();
    }

    /// A fair share of the injector: one to run, the others to the ring.
    pub(crate) fn take_share(&self) -> Option<Task> {
        let Shared {
            injector, remotes, ..
        } = &*self.shared;
        let look = || self.queue.take_share(injector, remotes.len(), self);
        let share = self.slice().look(look)?;
        self.counters().injected.add(1 + share.moved as u64);
        Some(share.first)
    }

    /// Drops the futures of this worker's tasks and of all that are queued. Whether its own list is empty by now.
    pub(crate) fn end(&self) -> bool {
        self.clock_in();
        self.leave_search();
        // SAFETY: for this call. What the futures' drops do reaches the queues, and no list: there is
        // no poll here, and no core is given away outside of one.
        let owned = unsafe { self.owned() };
        owned.close();
        owned.cancel_all_and(|id| self.ended(id));
        let injector = &self.shared.injector;
        while let Some(task) = self.queue.take_any().or_else(|| injector.pop()) {
            let id = task.id();
            owned.cancel(task);
            self.ended(id);
        }
        owned.drain();
        self.clock_out();
        // Ordering: SeqCst pairs with the fence of the notification in `Shared::take_in`, after the close was seen.
        fence(SeqCst);
        owned.is_empty() && injector.is_empty() && self.queue.is_empty()
    }

    /// Whether an end that failed has something to do if it is tried again at once.
    pub(crate) fn has_leftovers(&self) -> bool {
        !self.shared.injector.is_empty() || !self.queue.is_empty() || self.has_releases()
    }
}

impl Core {
    /// Runs what may be user code outside of a poll: the core stays here.
    #[cold]
    pub(crate) fn hold<R>(&self, f: impl FnOnce(&Self) -> R) -> R {
        let lendable = self.lendable.replace(false);
        let result = f(self);
        self.lendable.set(lendable);
        result
    }

    /// Runs `f` as the worker that it is. The core stays here.
    pub(crate) fn as_worker<R>(&self, f: impl FnOnce() -> R) -> R {
        debug_assert!(!self.lendable.get(), "it could be given away");
        // SAFETY: it is borrowed for as long, and not given away.
        unsafe { context::as_worker(&self.shared, self, f) }
    }

    /// The future of a queued task was dropped.
    pub(crate) fn ended(&self, task: Id) {
        self.counters().ended.add(1);
        self.shared.hooks.call_with(&self.shared.hooks.on_end, task);
    }
}

impl QueueHooks<Node<Scheduler>> for Core {
    fn overflow(&self, tasks: List<Node<Scheduler>>) {
        self.counters().overflows.add(1);
        self.shared.injector.requeue_batch(tasks);
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
