//! A worker's core: its queues, its list of live tasks, and how it finds work.
//!
//! Work is found in this order: every so many ticks (61, unless the builder says otherwise), and after a poll that an exhausted budget ended, a fair share of the
//! injector; the LIFO slot; the ring; a fair share of the injector; half of another's ring, from a random start; the injector again.
//!
//! A task that goes behind the others (it yielded, or was woken in its poll) finds, as a rule, none or many there. Where it finds none it is not queued but kept
//! at hand, to be run next; where there are some it goes into the ring. Neither tells the sleepers of it, as every push into a queue does otherwise. Why none sleeps on beside
//! two tasks that this worker runs in turns:
//!
//! 1. While a task is polled, nothing is at hand: it is what the worker takes up next. Where something else is next after all (a share of the injector, a task
//!    that a drop has put into the slot), what is at hand goes into the ring, and if the ring has anything then, a sleeper is told.
//! 2. So what is in the ring while a task is polled was told of, by a fence after its push, or is there by a theft, whose thief looks after it as a searcher.
//! 3. A requeue with the slot empty adds to the ring, and the worker pops next. If the ring was not empty, then since the push that rule 2 names it never was, or thieves have emptied it
//!    and the worker pops what it has just pushed. In the first case whoever slept at that push was told, or a searcher was there, and who has gone to sleep since looked at the ring last, and saw something.
//!    In the second nobody else is needed.
//! 4. A requeue with something in the slot tells: the slot's task runs next, for as long as it likes.
//!
//! A core belongs to one thread at a time, which is the only one to touch it: that of its worker, or the one that took it over when a task of
//! that worker blocked (see [`lend`](crate::lend)). Since a task in its poll may give it away, nothing borrows the core across a call of user code in a poll.
use crate::{
    park::ThreadPark,
    shared::{Own, Remote, Scheduler, Shared, Task},
    watch::Seen,
};
use coop_budget::{Budget, Exhausted};
use queue_spmc::ring::{self, Full, Steal, StealLimit, Stealer};
use std::{cell::Cell, task::Waker, time::Instant};
use sync_shim::{
    atomic::{Ordering::SeqCst, fence},
    cell::UnsafeCell,
    sync::Arc,
};
use task_header::{Id, Owned, WakeKind};
use worker_idle::{Calm, Linger};

/// What makes a thread a worker. On lines of its own: what is in it changes with every poll.
#[repr(align(128))]
pub(crate) struct Core {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    remote: Arc<Remote>,
    /// Of the settings, those that every spawn and every poll asks for.
    pub(crate) lifo: bool,
    pub(crate) observed: bool,
    pub(crate) budget: Budget,
    /// Whether somebody hears of spawns, or a guard leads them elsewhere.
    pub(crate) special_spawns: Cell<bool>,
    /// See [`ring`](Self::ring).
    queue: UnsafeCell<ring::Worker<Task>>,
    /// The task that gave way to nobody (rule 1).
    at_hand: Cell<Option<Task>>,
    owned: UnsafeCell<Owned<Scheduler>>,
    /// How a thread of the runtime sleeps. One that others drive has its own.
    pub(crate) park: Cell<Option<ThreadPark>>,
    /// Ticks until the injector's turn.
    interval: Cell<u32>,
    /// What says whom it looks at first (`steal`).
    pub(crate) random: Cell<u64>,
    pub(crate) searching: Cell<bool>,
    pub(crate) watching: Cell<bool>,
    /// Whether it pays to wait a moment before a sleep.
    pub(crate) linger: Cell<Linger>,
    /// How far the last watch has come, if no notification ended it.
    pub(crate) calm: Cell<Calm>,
    /// Whether a sleep was told of, and its end not yet.
    pub(crate) owes_unpark: Cell<bool>,
    /// What the watcher has seen in the others' slots.
    pub(crate) seen: Cell<Vec<Seen>>,
    /// The task that is polled, unless it has asked to go behind the others.
    pub(crate) running: Cell<Option<Id>>,
    /// Whether an exhausted budget ended a poll: a long one, so that others may have come meanwhile.
    forced: Cell<bool>,
    /// Whether a task is polled that may give the core away.
    pub(crate) lendable: Cell<bool>,
    /// Since when it is awake, if that is measured.
    awake: Cell<Option<Instant>>,
}

impl Core {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, ring: ring::Worker<Task>) -> Self {
        let remote = shared.remotes[index].clone();
        let settings = &shared.settings;
        // Odd multiples of an odd number: never 0, and different for each worker.
        let random = (settings.seed | 1).wrapping_mul(2 * index as u64 + 1);
        Self {
            index,
            lifo: settings.lifo,
            special_spawns: Cell::new(settings.special_spawns),
            observed: settings.observed,
            budget: settings.budget,
            queue: UnsafeCell::new(ring),
            at_hand: Cell::new(None),
            owned: UnsafeCell::new(Owned::new(remote.unpark.clone())),
            park: Cell::new(None),
            interval: Cell::new(settings.global_interval),
            random: Cell::new(random),
            searching: Cell::new(false),
            watching: Cell::new(false),
            linger: Cell::new(settings.linger),
            calm: Cell::new(Calm::default()),
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
    pub(crate) fn own(&self) -> &Own {
        &self.remote.own
    }

    /// One operation on the ring: `f` does that and nothing else. None of them runs user code, or gets here again.
    #[inline(always)]
    fn ring<R>(&self, f: impl FnOnce(&mut ring::Worker<Task>) -> R) -> R {
        // SAFETY: the core is this thread's, and each `f` in this file is one operation.
        self.queue.with_mut(|ring| f(unsafe { &mut *ring }))
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

    /// A task that its waker, or its parent, wants to run soon: to the slot. What was there goes
    /// behind the others, and only then is there something for a thief.
    #[inline]
    pub(crate) fn push_next(&self, task: Task) {
        if !self.lifo {
            self.push_back(task);
            self.shared.notify();
            return;
        }
        // SAFETY: only the thread that has the core gets here.
        if let Some(displaced) = unsafe { self.own().slot.put(task) } {
            self.push_back(displaced);
            self.shared.notify();
        } else {
            self.shared.call_watcher();
        }
    }

    /// A new task; given back once the runtime is closing.
    #[inline]
    pub(crate) fn accept(&self, task: Task) -> Option<Task> {
        if self.shared.is_closing() {
            return Some(task);
        }
        self.own().counters.spawned.add(1);
        self.push_next(task);
        None
    }

    /// A task that is to run after the others. The caller notifies.
    #[inline]
    pub(crate) fn push_back(&self, task: Task) {
        if let Err(Full(task)) = self.ring(|ring| ring.push(task)) {
            self.overflow(task);
        }
    }

    #[cold]
    #[inline(never)]
    fn overflow(&self, task: Task) {
        self.own().counters.overflows.add(1);
        self.ring(|ring| ring.push_or_overflow(task, &self.shared.injector));
    }

    /// A task that yielded, or was woken in its poll, goes behind the others. The poll is over, and the worker takes up the slot's task or looks for its
    /// next one.
    #[inline(always)]
    pub(crate) fn requeue(&self, task: Task) {
        if !self.own().slot.is_empty() {
            self.push_behind_slot(task);
        } else if self.ring(|ring| ring.is_surely_empty()) {
            // There was nothing: the task that is polled was next.
            let before = self.at_hand.replace(Some(task));
            debug_assert!(before.is_none(), "rule 1");
        } else {
            self.push_back(task); // Rule 3.
        }
    }

    /// Rule 4.
    #[cold]
    #[inline(never)]
    fn push_behind_slot(&self, task: Task) {
        self.push_back(task);
        self.shared.notify();
    }

    /// Rule 1: another task is next.
    #[cold]
    fn put_behind(&self) {
        self.open_hand();
        if !self.ring(|ring| ring.is_surely_empty()) {
            self.shared.notify();
        }
    }

    /// What is at hand goes where others can have it.
    fn open_hand(&self) {
        if let Some(task) = self.at_hand.take() {
            self.push_back(task);
        }
    }

    /// Between two turns of somebody else's loop, which may take its time: a sleeper is told, unless there is just the one task.
    pub(crate) fn leave_tick(&self) {
        let alone = self.ring(|ring| ring.is_surely_empty());
        self.open_hand();
        if !alone {
            self.shared.notify();
        }
    }

    /// A task that was woken by this thread.
    #[inline]
    pub(crate) fn schedule(&self, task: Task, why: WakeKind) {
        self.own().counters.local_schedules.add(1);
        if let WakeKind::Wake = why {
            self.push_next(task);
        } else {
            self.push_back(task);
            self.shared.notify();
        }
    }

    /// Makes what is in the slot visible to the others.
    pub(crate) fn open_slot(&self) {
        if let Some(task) = self.own().slot.take() {
            self.push_back(task);
            self.shared.notify();
        }
    }

    /// Whether slot and ring are empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.own().slot.is_empty() && self.ring(|ring| ring.is_empty())
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Task> {
        self.ring(ring::Worker::pop)
    }

    /// Half of another's ring to this one, and one of them to run.
    pub(crate) fn steal_half(&self, victim: &Stealer<Task>) -> Steal<Task> {
        self.ring(|ring| victim.steal_into_and_pop(ring, StealLimit::Half))
    }

    #[inline]
    pub(crate) fn begin_poll(&self, task: Id) {
        self.own().counters.polls.add(1);
        self.running.set(Some(task));
    }

    /// Has the running task go behind the others when its poll is over, if that is what `waker` wakes.
    #[inline]
    pub(crate) fn give_way(&self, waker: &Waker) -> bool {
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
        self.own().counters.forced_yields.add(1);
        self.forced.set(true);
    }

    /// Time goes by as busy from here on.
    pub(crate) fn clock_in(&self) {
        if self.shared.settings.busy_time {
            self.awake.set(Some(Instant::now()));
        }
    }

    pub(crate) fn clock_out(&self) {
        if let Some(awake) = self.awake.take() {
            self.own()
                .counters
                .busy_ns
                .add(awake.elapsed().as_nanos() as u64);
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
        if let Some(task) = self.own().slot.take() {
            self.own().counters.lifo_hits.add(1);
            self.put_behind();
            return Some(task);
        }
        self.at_hand
            .take()
            .or_else(|| self.pop())
            .or_else(|| self.take_share())
            .or_else(|| self.search())
    }

    #[cold]
    #[inline(never)]
    fn after_forced_yield(&self) -> Option<Task> {
        self.forced.set(false);
        self.take_share()
    }

    fn at_interval(&self) -> Option<Task> {
        self.interval.set(self.shared.settings.global_interval);
        self.clock_out();
        self.clock_in();
        self.drain();
        self.take_share()
    }

    /// Lets go of tasks that ended elsewhere. Some memory is freed, and with it what users have put there.
    pub(crate) fn drain(&self) {
        // SAFETY: for this call: what it drops reaches the queues, but no list.
        unsafe { self.owned() }.drain();
    }

    /// A fair share of the injector: one to run, the others to the ring.
    pub(crate) fn take_share(&self) -> Option<Task> {
        let shared = &self.shared;
        let waiting = shared.injector.len();
        if waiting == 0 {
            return None;
        }
        let share = waiting / shared.remotes.len() + 1;
        let room = self.ring(|ring| ring.spare_capacity());
        let mut batch = shared.injector.pop_n(share.min(room / 2 + 1));
        let first = batch.pop_front()?;
        self.own().counters.injected.add(1 + batch.len() as u64);
        while let Some(task) = batch.pop_front() {
            self.push_back(task);
        }
        // What is in the ring, also from before, waits for this one now. A searcher looks after it when it ends its search.
        if !self.searching.get() {
            self.put_behind();
        }
        Some(first)
    }

    /// Drops the futures of this worker's tasks and of all that are queued. Whether its own list is empty by now.
    pub(crate) fn end(&self) -> bool {
        self.leave_search();
        // SAFETY: for this call. What the futures' drops do reaches the queues, and no list: there is
        // no poll here, and no core is given away outside of one.
        let owned = unsafe { self.owned() };
        owned.close();
        owned.cancel_all_and(|id| self.ended(id));
        let queued = || {
            let at_hand = self.at_hand.take();
            let own = at_hand.or_else(|| self.own().slot.take());
            let own = own.or_else(|| self.pop());
            own.or_else(|| self.shared.injector.pop())
        };
        while let Some(task) = queued() {
            let id = task.id();
            owned.cancel(task);
            self.ended(id);
        }
        owned.drain();
        // Ordering: SeqCst pairs with the fence of the notification in `Shared::take_in`, after the close was seen.
        fence(SeqCst);
        owned.is_empty() && self.shared.injector.is_empty() && self.is_empty()
    }
}
