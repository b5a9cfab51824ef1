//! A worker's core: its queue, its list of live tasks, and the order in which it finds work.
//!
//! A worker looks for its next task in this order ([`Core::next`]):
//!
//! 1. a fair share of the injector: at the end of an [`interval`](crate::worker::interval), after a
//!    nudge, and after a poll in which the budget refused an operation. At the end of an interval
//!    the worker fires due timers, and polls sockets that are due, before it takes the share. If a
//!    request has ended the slice, the worker takes no share this time if it has tasks of its own;
//! 2. the LIFO slot;
//! 3. the ring;
//! 4. a fair share of the injector;
//! 5. the tasks that the worker wakes when it fires due timers, its own timers or those of other
//!    workers, and when it polls sockets that are due ([`events`](crate::events));
//! 6. half of another worker's ring, if the worker may search: it looks at the other workers in
//!    turn, and chooses the first of them at random ([`steal`](crate::worker::steal));
//! 7. the injector once more.
//!
//! The LIFO slot, the ring and the requeued task are a [`WorkerQueue`](worker_queue::WorkerQueue).
//! The core uses it through the trait [`RunQueue`](worker_queue::RunQueue);
//! [`queue`](crate::worker::queue) chooses the type. The queue calls back here ([`QueueHooks`]):
//! tasks that overflow go to the injector, and a push of a task that others may take notifies a
//! sleeper. Where workers do not steal, these tasks go to the worker's own inbox, at which the
//! worker looks whenever it looks at the injector.
//!
//! After 4,096 polls in a row of tasks that only yielded, a worker yields its CPU at the next
//! interval: the tasks may wait for a thread that needs it ([`Spin`]).
//!
//! A core belongs to one thread at a time, and no other thread touches it. That thread is the
//! worker's own, or the thread that accepted the core when a task of the worker blocked (see
//! [`Lent`](blocking_threads::Lent)). A task in its poll may lend the core, so nothing borrows it
//! across a call of user code in a poll.
use crate::{
    observe::metrics::Counters,
    worker::{
        driver::Parker,
        interval::{Interval, Slice},
        queue::Queue,
        scheduler::{Scheduler, Task},
        shared::{Remote, Shared},
    },
};
use coop_budget::{Budget, Exhausted, Preempt};
use queue_global::List;
use std::{cell::Cell, time::Instant};
use sync_shim::{cell::UnsafeCell, sync::Arc};
use task_header::{Id, Node, Owned, WakeKind};
use worker_idle::{Backoff, Spin, WatchState};
use worker_queue::{Next, QueueHooks, RunQueue};

/// The state of a LIFO slot at one look of the watcher: the content of the slot, and the count of
/// polls of the slot's worker. `None` if the slot was empty.
pub(crate) type Seen = Option<(worker_queue::SlotContent, u64)>;

/// The state that makes a thread a worker. It has cache lines of its own, because each poll writes
/// to it. The list of live tasks comes first: its address is the core's, so `after_poll` needs one
/// pointer.
#[repr(C, align(128))]
pub(crate) struct Core {
    owned: UnsafeCell<Owned<Scheduler>>,
    pub(crate) queue: Queue,
    // Declared, and so dropped, before `shared`, which keeps its slices alive.
    slice: Slice,
    pub(crate) shared: Arc<Shared>,
    pub(crate) remote: Arc<Remote>,
    /// The id of the last [`Call`](crate::blocking::call::Call) that gave the core away: that call
    /// put the core into `Remote::call`, or offered it to other threads.
    pub(crate) call: Cell<usize>,
    /// The settings that every poll reads.
    pub(crate) budget: Budget,
    pub(crate) observed: bool,
    /// Spawns take the slow path: a hook is set, or an `EnterGuard` redirects them.
    pub(crate) special_spawns: Cell<bool>,
    /// Whether a poll ended at a refused operation: the budget was used up, or a nudge came in. A
    /// poll that used up its budget was long. In both cases the injector comes next.
    pub(crate) forced: Cell<bool>,
    /// Whether a task that is polled now may lend the core.
    pub(crate) lendable: Cell<bool>,
    pub(crate) searching: Cell<bool>,
    /// Whether the worker has announced its sleep, and its thread is in the code of that sleep.
    pub(crate) asleep: Cell<bool>,
    /// Whether the worker has called the hook for a park, and has yet to call the hook for the
    /// unpark.
    pub(crate) owes_unpark: Cell<bool>,
    /// Counts polls of tasks that only yield.
    pub(crate) spin: Spin,
    pub(crate) interval: Interval,
    pub(crate) index: usize,
    /// The parker of a thread of the runtime. A driven worker keeps its own.
    pub(crate) park: Cell<Option<Parker>>,
    /// Whether a driven worker must poll its parker at the end of this tick: an interval has
    /// passed, or timers or sockets are due.
    pub(crate) poll_is_due: Cell<bool>,
    /// Whether the last look ran a task of the worker's own next, as its slice was over.
    own_was_next: Cell<bool>,
    /// Whether a short wait before a park pays.
    pub(crate) backoff: Cell<Backoff>,
    /// The progress of the last watch, unless a notification ended it.
    pub(crate) watch_state: Cell<WatchState>,
    /// The contents of the workers' slots at this watcher's last look.
    pub(crate) seen: Cell<Vec<Seen>>,
    /// The worker's count of polls when a notification last ended its park. The next park clears
    /// this.
    pub(crate) notified_at: Cell<Option<u64>>,
    /// The start of the span of busy time in progress, if busy time is measured.
    awake: Cell<Option<Instant>>,
}

impl Core {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, queue: Queue) -> Self {
        let remote = shared.remotes[index].clone();
        let settings = &shared.settings;
        Self {
            index,
            special_spawns: Cell::new(settings.special_spawns),
            observed: settings.observed,
            budget: settings.budget,
            queue,
            owned: UnsafeCell::new(Owned::with_key(remote.unparker.waker().clone(), index)),
            park: Cell::new(None),
            poll_is_due: Cell::new(false),
            own_was_next: Cell::new(false),
            interval: Interval::new(settings.global_interval, settings.adapts),
            // SAFETY: the core has a reference to the runtime, and drops the slice before it.
            slice: unsafe { Slice::of(&shared.slices, index) },
            searching: Cell::new(false),
            asleep: Cell::new(false),
            spin: Spin::new(),
            notified_at: Cell::new(None),
            backoff: Cell::new(settings.backoff),
            watch_state: Cell::new(WatchState::default()),
            owes_unpark: Cell::new(false),
            seen: Cell::new(Vec::new()),
            call: Cell::new(0),
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
    /// The caller uses no other borrow of the list while it uses this one.
    #[expect(clippy::mut_from_ref, reason = "it is a cell")]
    pub(crate) unsafe fn owned(&self) -> &mut Owned<Scheduler> {
        self.owned.with_mut(|owned| {
            // SAFETY: the core is this thread's; the caller guarantees the rest.
            unsafe { &mut *owned }
        })
    }

    /// Queues a new task, or returns it if the runtime refuses spawns.
    pub(crate) fn accept(&self, task: Task) -> Option<Task> {
        if self.shared.refuses_spawns() {
            return Some(task);
        }
        self.counters().spawns.add(1);
        self.queue.push_next(task, self);
        None
    }

    /// As [`accept`](Self::accept), for a task with [`plain_scheduler`](Self::plain_scheduler).
    #[inline]
    pub(crate) fn accept_plain(&self, task: Task) -> Option<Task> {
        if self.shared.refuses_spawns() {
            return Some(task);
        }
        self.counters().spawns.add(1);
        self.plain().push_next(task, self);
        None
    }

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
            self.queue.push_next(task, self);
        } else {
            self.queue.push_back(task, self);
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

    #[inline]
    pub(crate) fn begin_poll(&self, task: Id) {
        self.counters().polls.add(1);
        self.counters().set_polled(Some(task));
    }

    pub(crate) fn forced_yield(&self, why: Exhausted) {
        self.shared.trace.forced_yield(self.index);
        if why == Exhausted::Slice {
            self.counters().preemptions.add(1);
        } else {
            self.counters().forced_yields.add(1);
            self.forced.set(true);
        }
    }

    /// Requeues the task whose poll is over, and which is to run again.
    #[inline(always)]
    pub(crate) fn requeue(&self, task: Task) {
        if self.slice().need_preempt() | self.is_sharing() {
            self.requeue_specially(task);
        } else {
            self.plain().requeue(task, self);
        }
    }

    /// Requeues a task whose time slice is over, or a task of a worker that shares its time among
    /// groups. A worker that shares keeps the task, which waits for the turn of its group. A worker
    /// that does not steal keeps the task behind its other tasks, as no other worker runs it.
    /// Otherwise the task goes to the injector, behind the tasks of all workers. If no task waits
    /// here or in the injector, it stays here.
    #[cold]
    #[inline(never)]
    fn requeue_specially(&self, task: Task) {
        let (queue, shared) = (&self.queue, &self.shared);
        if self.is_sharing() || self.is_sharded() {
            return queue.requeue(task, self);
        }
        if queue.is_empty() && !shared.has_injected() {
            queue.requeue(task, self);
            return;
        }
        shared.requeue(task);
        // A worker with an empty queue takes from the injector next.
        if !RunQueue::is_empty(queue) {
            shared.notify();
        }
    }

    /// Begins a span of busy time, unless one has begun.
    pub(crate) fn clock_in(&self) {
        if self.shared.settings.busy_time && self.awake.get().is_none() {
            self.awake.set(Some(Instant::now()));
        }
    }

    pub(crate) fn clock_out(&self) {
        if let Some(awake) = self.awake.take() {
            self.counters().add_busy(awake.elapsed());
        }
    }

    /// Returns the task to run next, in the order that this file's front page lists.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Task> {
        let interval_is_over = self.interval.tick();
        if interval_is_over || self.slice().is_set() || self.forced.get() | self.is_sharing() {
            return self.next_specially(interval_is_over);
        }
        self.count_slot(self.plain().next(self))
            .or_else(|| self.look_behind_own())
    }

    /// Returns the task to run next, for a worker that has to look at the injector first, or whose
    /// queue is not [plain](crate::worker::queue).
    #[cold]
    #[inline(never)]
    fn next_specially(&self, interval_is_over: bool) -> Option<Task> {
        let task = self
            .look_before_own(interval_is_over)
            .or_else(|| self.count_slot(self.queue.next(self)));
        self.count_taken();
        task.or_else(|| self.look_behind_own())
    }

    /// Looks at the injector, if an interval is over, if a nudge came in, or if a refused operation
    /// has ended the last poll.
    #[inline]
    fn look_before_own(&self, interval_is_over: bool) -> Option<Task> {
        let at_interval = || self.without_lending(Self::at_interval);
        let is_signalled = || self.slice().is_set() || self.forced.get();
        self.publish_requeued_if(|| interval_is_over || is_signalled());
        let task = interval_is_over.then(at_interval).flatten();
        task.or_else(|| is_signalled().then(|| self.look_at_signal()).flatten())
    }

    /// Looks wherever else there may be a task, when the worker's own queue is empty.
    #[inline(never)]
    fn look_behind_own(&self) -> Option<Task> {
        let task = self
            .take_share()
            .or_else(|| self.poll_events())
            .or_else(|| self.search());
        self.count_taken();
        task
    }

    /// Counts a task that the worker has taken from its slot.
    #[inline]
    fn count_slot(&self, next: Option<Next<Task>>) -> Option<Task> {
        let next = next?;
        if next.from_slot {
            self.counters().lifo_hits.add(1);
        }
        Some(next.item)
    }

    /// Polls the driver, if a timer or the sockets are due, before this worker takes the tasks of
    /// others. Costs a load if there are neither timers nor sockets.
    #[inline]
    fn poll_events(&self) -> Option<Task> {
        match self.shared.events.is_due() {
            true => self.without_lending(Self::poll_due_events),
            false => None,
        }
    }

    #[cold]
    #[inline(never)]
    fn poll_due_events(&self) -> Option<Task> {
        self.leave_search();
        self.poll_driver();
        // The core of a driven worker has no parker: the tick polls the user's parker at its end.
        self.poll_is_due.set(true);
        self.queue.next(self).map(|next| next.item)
    }

    /// The worker's time slice. With it, other threads nudge the worker to look at the injector, or
    /// request the end of the slice.
    #[inline]
    pub(crate) fn slice(&self) -> &Preempt {
        self.slice.get()
    }

    /// Begins a new time slice if a request has ended the last one. Costs a load if none has.
    #[cold]
    fn begin_slice(&self) {
        let slice = self.slice();
        if slice.need_preempt() {
            self.shared.trace.slice(self.index);
            self.counters().ended_slices.add(1);
            slice.open_slice();
        }
    }

    /// Begins a new time slice if a request has ended the last one. Returns true if it began one
    /// and the worker has tasks of its own. The worker then runs one of these tasks next. The task
    /// whose slice is over comes later: it is in the injector.
    ///
    /// It never returns true twice in a row. So the injector gets its turn even if a request ends
    /// every slice.
    pub(crate) fn begin_slice_before_own(&self, interval_is_over: bool) -> bool {
        let is_over = self.slice().need_preempt();
        self.begin_slice();
        let own_is_next = is_over && !self.queue.is_empty() && !self.own_was_next.get();
        self.own_was_next.set(own_is_next);
        if own_is_next {
            self.interval.note_ended_slice(interval_is_over);
        }
        own_is_next
    }

    fn at_interval(&self) -> Option<Task> {
        // A task in an ended slice would be refused its first operation.
        if !self.slice().need_preempt() {
            if let Some(task) = self.look_again() {
                return Some(task);
            }
        }
        self.clock_out();
        self.clock_in();
        if self.has_releases() {
            self.leave_search();
            self.drain();
        }
        // The new slice begins before the poll, because the poll's wakers are user code. The tasks
        // that they wake do not count as own tasks that come before the injector.
        let own_is_next = self.begin_slice_before_own(true);
        if self.shared.settings.has_drivers || self.shared.events.is_due() {
            self.leave_search();
            self.poll_driver();
        }
        self.poll_is_due.set(true);
        if own_is_next {
            self.shared.monitor.start(&self.shared);
            return None;
        }
        let task = self.look_at_interval();
        if self.shared.monitor.is_unstarted() {
            if task.is_some() || !self.queue.is_empty() {
                self.shared.monitor.start(&self.shared);
            } else {
                self.interval.end_at_next_tick();
            }
        }
        if task.is_none() && !self.searching.get() {
            // A task that is spawned, woken, injected or stolen changes this sum. A yield, and the
            // poll after it, does not.
            let c = self.counters();
            let news = c.spawns.get() + c.local_wakes.get() + c.injected_tasks.get();
            self.spin.look(news + c.stolen_tasks.get(), c.polls.get());
        }
        task
    }

    /// Releases tasks that ended on other threads. This may free their memory, and so drop metadata
    /// of users.
    pub(crate) fn drain(&self) {
        // SAFETY: the borrow ends with this call. The values that the call drops may use the
        // queues in their drops, but no list of tasks.
        unsafe { self.owned() }.drain();
    }

    /// Takes a fair share of the injector: returns one task, and moves the others to the ring.
    pub(crate) fn take_share(&self) -> Option<Task> {
        let Shared {
            injector, remotes, ..
        } = &*self.shared;
        let look = || self.queue.take_share(injector, remotes.len(), self);
        let share = self.slice().look(look)?;
        self.count_injected(1 + share.moved);
        Some(share.first)
    }

    /// Counts tasks that this worker has taken from outside.
    pub(crate) fn count_injected(&self, tasks: usize) {
        self.counters().injected_tasks.add(tasks as u64);
        self.shared.trace.inject(self.index, tasks);
    }

    /// Runs `f`, which may be user code outside of a poll. The core stays with this thread.
    #[cold]
    pub(crate) fn without_lending<R>(&self, f: impl FnOnce(&Self) -> R) -> R {
        let lendable = self.lendable.replace(false);
        let result = f(self);
        self.lendable.set(lendable);
        result
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.monitor.core_dropped();
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
