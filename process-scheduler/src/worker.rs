//! A worker: finds a process, runs it, and parks when there is none.
//!
//! # Where a worker finds a process
//!
//! 1. By a *fair pick* among the oldest processes, once the worker has made 61 steps since the last
//!    fair pick (rule 2).
//! 2. In its own deque: the newest process, but the oldest one of a batch.
//! 3. In the injector: it takes one process, and up to 16 more for its deque, the *batch*. The
//!    deque is empty then, so the batch is below all processes that are made ready later, the
//!    *fresh* ones. The oldest process of the batch is its uppermost one.
//! 4. In the deques of the other workers, one after the other from a random one on: it steals half
//!    of the processes there, claimed one at a time. A thief leaves the last process of a deque to
//!    the owner (rule 4), unless the owner is stuck.
//!
//! # Rules
//!
//! 1. A process that is made ready on a worker goes on that worker's deque, otherwise to the
//!    injector. A process that has used its slice (its steps in a row, `Builder::step_budget`) goes
//!    to the back of the injector. But if the worker's deque and the injector are empty, the
//!    process continues.
//! 2. So a process that always continues is behind all others after each slice, and makes no more
//!    steps in a row than its slice has while others wait. However the processes wake each other,
//!    the oldest ones get their turn by a fair pick. A slice is never cut short for a fair pick.
//!    The fair pick depends on the deque:
//!
//!    | the deque has | the worker takes next |
//!    |---|---|
//!    | no fresh process | what it would take anyway: the batch is older than the injector's processes |
//!    | fresh processes above a batch | the batch, the oldest first |
//!    | only fresh processes | the oldest one, and then the oldest one of the injector, unless that one has just used its slice |
//! 3. A push notifies a worker, by the protocol of [`worker_idle::Idle`]. One push does not: a
//!    worker's push to its own empty deque, because the worker takes that process next. The deque
//!    is then a *filled place* of [`worker_idle::Watch`]: if the worker's step takes long, the
//!    watcher finds the process. If there is no watcher, the push requests one. A push between two
//!    runs, by an event or a deadline, does not: the worker takes the process at once. If it takes
//!    another process first, it requests the watcher then. So events that each wake one process
//!    wake no other worker and request no watcher.
//! 4. The last process of a deque is its owner's: the owner takes it after its step, and a thief
//!    would only carry it to another processor. An owner is *stuck* if it has made no step between
//!    two looks of the watcher (its last process may be younger than the first of the two), or
//!    during 15 looks of another worker's wait (rule 5). Then a thief takes the last process too. A
//!    park may end early, without a reason or for an event, so the watcher looks only once its
//!    interval has passed. The watch goes on in the worker's next sleep, unless a notification or a
//!    process that a look found has ended the sleep. So the watch ends also if events end each
//!    sleep. A worker that leaves a last process and goes to sleep requests a watcher, so that a
//!    worker looks later.
//! 5. A worker that finds nothing may *wait* before it parks: it yields its processor and searches
//!    the injector and the other deques, up to 20 times. A [`worker_idle::Backoff`] decides whether
//!    it does, by what its waits have brought and by `Builder::wait`. One worker waits at a time.
//! 6. A worker that sees the stop runs the processes that are left in the queues, and then ends.
//!    The shutdown has killed each of them for good, so each ends at this run and is not queued
//!    again. A worker takes such processes from the deques of the others too, also the last one:
//!    the owner may be in a step that never returns. So no process is left in a queue when
//!    the last worker ends. A process whose `init` returns later is not run.
//! 7. A busy worker *polls for events* after 16 runs of processes, or after a millisecond of runs.
//!    It reads the clock for this after each run, but only while there is a driver, or a deadline
//!    that no sleeping worker waits for (`timer.rs`). The poll wakes the tasks of such deadlines
//!    that have come, and polls the worker's driver. A worker that parks does both when its park
//!    returns. The tasks that it wakes come to its own deque.
use crate::{
    deadline,
    guard::guarded,
    metrics::WorkerCounters,
    runnable::{RunSlice, Runnable},
    shared::Shared,
};
use queue_spmc::{Steal, StealLimit, deque::Worker as Deque};
use std::{
    cell::{Cell, RefCell},
    iter, mem, ptr,
    sync::Arc,
    time::{Duration, Instant},
};
use sync_shim::atomic::Ordering::Relaxed;
use worker_idle::{Backoff, Watch, WatchState, park::Park};

/// Steps between two fair picks (rule 2).
const FAIR_PICK_INTERVAL: u32 = 61;
/// Processes that a worker takes from the injector for its deque.
const BATCH: usize = 16;
/// A busy worker polls for events after this number of runs, or once this time has passed at the
/// end of a run (rule 7).
const RUNS_PER_POLL: u32 = 16;
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// The largest number of events of a driver that a busy worker collects at once.
const MAX_EVENTS: usize = 64;
/// An owner that makes no step before a wait's look with this number is stuck (rule 4). In a model
/// a wait has fewer looks.
const STUCK_LOOKS: u32 = 15;

/// False in a model: a model must be repeatable, so it reads no clock.
const HAS_CLOCK: bool = cfg!(not(any(selvedge_loom, selvedge_shuttle)));

/// The parker of a worker.
pub(crate) type BoxPark = Box<dyn Park + Send>;

/// A worker's deque, and how its processes came there.
struct LocalDeque {
    deque: Deque<Runnable>,
    /// The number of fresh processes in the deque, and that of the batch below them. Thieves take
    /// from below and do not count, so either number may be too large. Both are 0 once the deque
    /// was found empty.
    fresh: usize,
    batch: usize,
    /// Whether the deque was filled between two runs, and no watcher was requested (rule 3).
    is_unwatched: bool,
}

impl LocalDeque {
    /// Lifts the batch above the fresh processes, where it counts as fresh.
    fn lift_batch(&mut self) {
        let batch = mem::take(&mut self.batch);
        let own = self.deque.stealer();
        let steal = || match own.steal() {
            Steal::Success { first, .. } => Some(first),
            _ => None,
        };
        // The newest of the batch is stolen first. The oldest is pushed last, so the worker pops it
        // first.
        let lifted: Vec<_> = iter::from_fn(steal).take(batch).collect();
        self.fresh += lifted.len();
        self.deque.extend(lifted);
    }
}

/// The part of a worker that code on the worker's thread reaches by [`CONTEXT`].
pub(crate) struct WorkerContext {
    shared: Arc<Shared>,
    index: usize,
    /// Borrowed for single operations only, never while a process runs.
    local: RefCell<LocalDeque>,
    /// Whether the worker wakes the tasks of events or deadlines, between two runs (rule 3).
    between_runs: Cell<bool>,
    /// The progress of the worker's last watch, which its next sleep may continue (rule 4).
    watch: Cell<WatchState>,
}

impl WorkerContext {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, deque: Deque<Runnable>) -> Self {
        Self {
            shared,
            index,
            local: RefCell::new(LocalDeque {
                deque,
                fresh: 0,
                batch: 0,
                is_unwatched: false,
            }),
            between_runs: Cell::new(false),
            watch: Cell::default(),
        }
    }
}

sync_shim::simulated_thread_local! {
    /// The context of this thread's worker, or null.
    static CONTEXT: Cell<*const WorkerContext> = const { Cell::new(ptr::null()) };
}

/// Clears [`CONTEXT`] when this value is dropped.
struct ClearContext;

impl Drop for ClearContext {
    fn drop(&mut self) {
        CONTEXT.set(ptr::null());
    }
}

/// Returns the index of this thread among the scheduler's workers, if it is one.
pub(crate) fn index_in(shared: &Shared) -> Option<usize> {
    // SAFETY: as in `submit`.
    let context = unsafe { CONTEXT.get().as_ref() }?;
    ptr::eq(&*context.shared, shared).then_some(context.index)
}

/// Queues a process that is ready (rule 1), and notifies a worker (rule 3).
#[inline]
pub(crate) fn submit(shared: &Shared, runnable: Runnable) {
    // SAFETY: the pointer is null, or of a context that `run` keeps on this thread's stack. `run`
    // clears `CONTEXT` before the context ends, and this call returns before that.
    let context = unsafe { CONTEXT.get().as_ref() };
    let Some(context) = context.filter(|context| ptr::eq(&*context.shared, shared)) else {
        shared.injector.requeue(runnable);
        shared.notify();
        return;
    };
    let mut local = context.local.borrow_mut();
    let was_empty = local.deque.is_empty();
    local.deque.push(runnable);
    local.fresh += 1;
    let is_taken_next = was_empty && context.between_runs.get();
    local.is_unwatched |= is_taken_next;
    drop(local);
    if !was_empty {
        shared.notify();
    } else if !is_taken_next {
        request_watcher(shared);
    }
}

/// Requests a watcher for a deque that was empty, unless there is one (rule 3).
fn request_watcher(shared: &Shared) {
    if !shared.idle.is_watched() {
        shared.idle.want_watcher();
        shared.notify();
    }
}

/// Runs processes on this thread, as one of the scheduler's workers, until the scheduler stops.
pub(crate) fn run(context: WorkerContext, park: BoxPark) {
    CONTEXT.set(&raw const context);
    let clear = ClearContext;
    deadline::keep_entries(true);
    let mut worker = Worker::new(&context, park);
    // A process guards its user code. This guard is for any other panic: the process never runs
    // again then, and the worker continues.
    while guarded(|| worker.run_until_stop()).is_none() {}
    deadline::keep_entries(false);
    drop(clear);
}

/// A worker, with the state that its thread alone uses.
struct Worker<'a> {
    context: &'a WorkerContext,
    park: BoxPark,
    random: u32,
    /// Steps since the last fair pick (rule 2).
    steps: u32,
    /// True if the fair pick has taken the deque's oldest process, and takes the injector's oldest
    /// one next.
    picks_from_injector: bool,
    /// Runs until the next poll for events, unless it comes earlier by the clock (rule 7).
    runs_until_poll: u32,
    /// The time of the last poll for events.
    polled_at: Instant,
    /// The address of the process that was run last, if it went to the back of the injector, or 0.
    requeued: usize,
    /// Whether the worker counts as searching in [`worker_idle::Idle`].
    searching: bool,
    /// Whether to wait before a park (rule 5).
    backoff: Backoff,
    /// The count of each worker's steps at the last look of this worker's watch, or at its
    /// beginning.
    steps_at_look: Vec<u64>,
    /// The count of each worker's steps at the beginning of this worker's last wait.
    steps_at_wait: Vec<u64>,
    /// The next search takes the last process of this owner, if it is still stuck (rule 4).
    stuck: Option<Stuck>,
}

/// An owner that is stuck (rule 4), with the count of its steps.
#[derive(Clone, Copy)]
struct Stuck {
    worker: usize,
    steps: u64,
}

impl<'a> Worker<'a> {
    fn new(context: &'a WorkerContext, park: BoxPark) -> Self {
        Self {
            context,
            park,
            random: context.index as u32 * 2 + 1,
            steps: 0,
            picks_from_injector: false,
            runs_until_poll: RUNS_PER_POLL,
            polled_at: sync_shim::time::now(),
            requeued: 0,
            searching: false,
            backoff: context.shared.config.backoff,
            steps_at_look: Vec::new(),
            steps_at_wait: Vec::new(),
            stuck: None,
        }
    }

    fn run_until_stop(&mut self) {
        let shared = self.shared();
        // Ordering: Relaxed: the load of `take_left` orders what comes after the loop.
        while !shared.stop.load(Relaxed) {
            match self.find() {
                Some(runnable) => self.serve(runnable),
                None => self.wait(),
            }
        }
        // Rule 6.
        while let Some(runnable) = shared.take_left() {
            self.serve(runnable);
        }
    }

    #[inline]
    fn shared(&self) -> &'a Shared {
        &self.context.shared
    }

    fn find(&mut self) -> Option<Runnable> {
        if mem::take(&mut self.picks_from_injector) {
            if let Some(oldest) = self.take_oldest_injected() {
                if mem::take(&mut self.context.local.borrow_mut().is_unwatched) {
                    request_watcher(self.shared());
                }
                return Some(oldest);
            }
        }
        if self.steps >= FAIR_PICK_INTERVAL {
            self.steps = 0;
            if let Some(oldest) = self.fair_pick() {
                return Some(oldest);
            }
        }
        // The newest fresh process, or the oldest of the batch if no process is fresh.
        let mut local = self.context.local.borrow_mut();
        local.is_unwatched = false;
        let Some(runnable) = local.deque.pop() else {
            (local.fresh, local.batch) = (0, 0);
            drop(local);
            return self.search();
        };
        if local.fresh > 0 {
            local.fresh -= 1;
        } else {
            local.batch = local.batch.saturating_sub(1);
        }
        Some(runnable)
    }

    /// Makes a fair pick (rule 2). `None` if the worker's own deque has the process to take next.
    fn fair_pick(&mut self) -> Option<Runnable> {
        let mut local = self.context.local.borrow_mut();
        if local.fresh == 0 {
            return None;
        }
        if local.batch > 0 {
            local.lift_batch();
            return None;
        }
        self.picks_from_injector = true;
        match self.shared().stealers[self.context.index].steal() {
            Steal::Success { first, .. } => {
                local.fresh -= 1;
                Some(first)
            }
            _ => None,
        }
    }

    /// Takes the oldest process of the injector, unless it is the one that was run last.
    fn take_oldest_injected(&mut self) -> Option<Runnable> {
        let oldest = self.shared().injector.pop()?;
        if oldest.address() == self.requeued {
            self.shared().injector.requeue(oldest);
            return None;
        }
        Some(oldest)
    }

    /// Searches the injector and the other workers' deques.
    fn search(&mut self) -> Option<Runnable> {
        let mut batch = self.shared().injector.pop_n(1 + BATCH);
        if let Some(first) = batch.next() {
            // The oldest of the rest is pushed last, so the worker pops it first.
            let rest: Vec<_> = batch.collect();
            let has_rest = !rest.is_empty();
            let mut local = self.context.local.borrow_mut();
            (local.fresh, local.batch) = (0, rest.len());
            local.deque.extend(rest.into_iter().rev());
            drop(local);
            if has_rest {
                self.shared().notify();
            }
            return Some(first);
        }
        let victims = self.shared().stealers.len();
        if victims == 1 {
            return None;
        }
        if !self.searching {
            self.searching = self.shared().idle.try_search();
            if !self.searching {
                return None;
            }
        }
        let stuck = self.stuck.take();
        let start = self.next_random() as usize;
        for offset in 0..victims {
            let victim = (start + offset) % victims;
            if victim == self.context.index {
                continue;
            }
            let is_stuck = stuck.is_some_and(|owner| {
                owner.worker == victim && owner.steps == self.steps_of(victim)
            });
            let stealer = &self.shared().stealers[victim];
            if stealer.len() < 2 && !is_stuck {
                continue;
            }
            let mut local = self.context.local.borrow_mut();
            let stolen = stealer.steal_into_and_pop(&mut local.deque, StealLimit::Half);
            // The oldest of them is the lowest, as with fresh processes.
            (local.fresh, local.batch) = (local.deque.len(), 0);
            drop(local);
            // If another thief was in the way, the worker tries the next deque.
            if let Steal::Success { first, .. } = stolen {
                self.counters().count_steal();
                return Some(first);
            }
        }
        None
    }

    fn steps_of(&self, worker: usize) -> u64 {
        // Ordering: Relaxed, the count is a hint.
        self.shared().counters.workers[worker].steps.load(Relaxed)
    }

    /// Records the counts of steps of all workers.
    fn record_steps(&self, recorded: &mut Vec<u64>) {
        recorded.clear();
        recorded.extend((0..self.shared().stealers.len()).map(|worker| self.steps_of(worker)));
    }

    /// Returns a worker that has a process in its deque, and has made no step since the counts were
    /// recorded (rule 4).
    fn find_stuck(&self, recorded: &[u64]) -> Option<Stuck> {
        let workers = recorded.iter().enumerate();
        let mut workers = workers.map(|(worker, &steps)| Stuck { worker, steps });
        workers.find(|owner| {
            let stealer = &self.shared().stealers[owner.worker];
            !stealer.is_empty() && owner.steps == self.steps_of(owner.worker)
        })
    }

    fn next_random(&mut self) -> u32 {
        // Marsaglia's xorshift.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.random
    }

    #[inline]
    fn counters(&self) -> &WorkerCounters {
        &self.shared().counters.workers[self.context.index]
    }

    fn serve(&mut self, mut runnable: Runnable) {
        if self.searching {
            self.searching = false;
            let shared = self.shared();
            let is_last = shared.idle.stop_searching();
            if is_last && self.has_work_for_another() || shared.timer.lacks_keeper() {
                shared.notify();
            }
        }
        self.requeued = 0;
        let budget = self.shared().config.step_budget;
        loop {
            let mut slice = RunSlice {
                steps_left: budget,
                messages: self.shared().config.messages,
                counters: &self.shared().counters.workers[self.context.index],
            };
            sync_shim::sim::point();
            sync_shim::sim::event("step", 0, 0);
            let unfinished = runnable.0.run(&mut slice);
            self.steps += (budget - slice.steps_left).max(1);
            self.runs_until_poll -= 1;
            if self.runs_until_poll == 0 || HAS_CLOCK && self.has_outside_events() {
                self.poll_if_due();
            }
            let Some(unfinished) = unfinished else {
                return;
            };
            // Rule 1: the process continues if no other process is ready here.
            let shared = self.shared();
            let is_alone =
                self.context.local.borrow().deque.is_empty() && shared.injector.is_empty();
            // Ordering: Relaxed, as in `run`.
            if !is_alone || shared.stop.load(Relaxed) {
                self.requeued = unfinished.address();
                self.shared().injector.requeue(unfinished);
                self.shared().notify();
                return;
            }
            if self.steps >= FAIR_PICK_INTERVAL {
                // No other process waits here, so no fair pick is due.
                self.steps = 0;
            }
            runnable = unfinished;
        }
    }

    /// Returns whether another worker must be woken, as a thief of a process or as the watcher of a
    /// last process.
    fn has_work_for_another(&self) -> bool {
        let shared = self.shared();
        shared.has_shared() || !shared.idle.is_watched() && shared.has_ready()
    }

    /// Returns whether there is a driver, or a deadline that no sleeping worker waits for (rule 7).
    fn has_outside_events(&self) -> bool {
        self.shared().config.has_driver || self.shared().timer.lacks_keeper()
    }

    /// Polls for events if a poll is due (rule 7): fires the timer if no sleeping worker does, and
    /// polls the driver.
    #[cold]
    fn poll_if_due(&mut self) {
        if !self.has_outside_events() {
            self.runs_until_poll = RUNS_PER_POLL;
            return;
        }
        let now = sync_shim::time::now();
        if self.runs_until_poll > 0 && now.duration_since(self.polled_at) < POLL_INTERVAL {
            return;
        }
        self.runs_until_poll = RUNS_PER_POLL;
        self.polled_at = now;
        if self.shared().timer.lacks_keeper() {
            self.fire_timer();
        }
        guarded(|| self.park.poll(MAX_EVENTS));
        self.deliver();
    }

    /// Wakes the tasks of the deadlines that have come. They come to the worker's own deque.
    fn fire_timer(&mut self) {
        let _between = BetweenRuns::begin(self.context);
        self.shared().timer.fire();
    }

    /// Wakes the tasks of the events that the driver has collected. The worker counts as awake, so
    /// the tasks come to its own deque.
    fn deliver(&mut self) {
        if self.has_events() {
            let _between = BetweenRuns::begin(self.context);
            // The wakers are user code.
            guarded(|| self.park.deliver());
        }
    }

    /// Returns whether the driver has events. A driver that panics counts as one with events: the
    /// worker does not park then.
    fn has_events(&self) -> bool {
        guarded(|| self.park.has_events()).unwrap_or(true)
    }

    /// Sleeps until there may be a process to run. Runs a process that comes before that.
    fn wait(&mut self) {
        if let Some(runnable) = self.back_off() {
            return self.serve(runnable);
        }
        let (shared, index) = (self.shared(), self.context.index);
        let idle = &shared.idle;
        idle.sleep(index, self.searching);
        self.searching = true; // However this worker wakes, it counts as searching then.
        if shared.has_shared() {
            idle.wake_self(index);
            return;
        }
        if self.park() {
            shared.timer.leave();
            if shared.timer.lacks_keeper() {
                self.fire_timer();
            }
        }
        self.deliver();
    }

    /// Waits briefly before a park, if such waits have paid so far (rule 5). Returns the process
    /// that has come.
    fn back_off(&mut self) -> Option<Runnable> {
        let mut backoff = self.backoff;
        let waits = backoff.is_due() && self.is_only_searcher();
        let mut found = None;
        if waits {
            let mut at_wait = mem::take(&mut self.steps_at_wait);
            self.record_steps(&mut at_wait);
            let mut looks = 0;
            backoff.wait(|| {
                looks += 1;
                found = self.look_in_wait(looks, &at_wait);
                // Ordering: Relaxed, as in `run_until_stop`.
                found.is_some() || self.shared().stop.load(Relaxed)
            });
            self.steps_at_wait = at_wait;
        }
        self.backoff = backoff;
        found
    }

    /// Makes the look of a wait with this number, counted from 1. The counts of steps are those
    /// from before the wait.
    fn look_in_wait(&mut self, number: u32, at_wait: &[u64]) -> Option<Runnable> {
        if number >= STUCK_LOOKS {
            self.stuck = self.find_stuck(at_wait);
        }
        self.search()
    }

    /// Begins to search, unless this worker is the only one. Returns whether no other worker
    /// searches.
    fn is_only_searcher(&mut self) -> bool {
        let shared = self.shared();
        if shared.stealers.len() == 1 {
            return true;
        }
        self.searching = self.searching || shared.idle.try_search();
        self.searching && shared.idle.counts().0 == 1
    }

    /// Parks until the worker counts as awake, or the scheduler stops. Returns whether the worker
    /// is the timer's keeper (`timer.rs`).
    fn park(&mut self) -> bool {
        let context = self.context;
        let (shared, index, idle) = (&context.shared, context.index, &context.shared.idle);
        if shared.has_ready() {
            // Rule 4.
            idle.want_watcher();
        }
        self.counters().count_park();
        let had_watch = context.watch.get() != WatchState::default();
        let mut watch = Watch::begin(idle, index, &context.watch);
        if watch.is_some() && !had_watch {
            self.record_look();
        }
        let mut keep_for = None;
        // The interval may have passed while the worker was awake. A model has no intervals.
        let mut has_found = HAS_CLOCK && self.look_if_due(&mut watch);
        // Ordering: Relaxed. The token of the unpark orders this load: the unpark comes after the
        // store.
        while !has_found && !idle.was_notified(index) && !shared.stop.load(Relaxed) {
            keep_for = shared.timer.keep(index);
            if keep_for == Some(Duration::ZERO) || self.has_events() {
                // The watch goes on in the next sleep. Its last look comes now, as that sleep may
                // be far.
                let is_leaving = watch.as_ref().is_some_and(Watch::is_leaving);
                has_found = is_leaving && shared.has_ready() && self.look(&mut watch);
                break;
            }
            let deadline = keep_for.filter(|limit| *limit != Duration::MAX);
            let next_look = watch.as_ref().map(Watch::until_look);
            // A panic of the driver ends this park as an early return does.
            match [deadline, next_look].into_iter().flatten().min() {
                Some(limit) => guarded(|| self.park.park_timeout(limit)),
                None => guarded(|| self.park.park()),
            };
            if idle.was_notified(index) {
                break;
            }
            has_found = self.look_if_due(&mut watch);
        }
        drop(watch);
        if has_found || idle.was_notified(index) {
            Watch::forget(idle, &context.watch);
        }
        idle.wake_self(index);
        keep_for.is_some()
    }

    /// Looks for processes if the watcher's next look is due (rule 4). Returns whether there is one
    /// for this worker.
    fn look_if_due(&mut self, watch: &mut Option<Watch<'_>>) -> bool {
        watch.as_ref().is_some_and(Watch::is_due) && self.look(watch)
    }

    /// Looks for processes, as the watcher. Returns whether there is one for this worker. The watch
    /// ends with its last look.
    fn look(&mut self, watch: &mut Option<Watch<'_>>) -> bool {
        let shared = self.shared();
        let is_filled = shared.has_ready();
        let goes_on = |watch: &mut Watch<'_>| watch.record_look(is_filled);
        if !watch.as_mut().is_some_and(goes_on) {
            *watch = None;
        }
        self.stuck = self.find_stuck(&self.steps_at_look);
        self.record_look();
        self.stuck.is_some() || shared.has_shared()
    }

    /// Records the counts of steps for the watcher's next look.
    fn record_look(&mut self) {
        let mut at_look = mem::take(&mut self.steps_at_look);
        self.record_steps(&mut at_look);
        self.steps_at_look = at_look;
    }
}

/// The time in which a worker wakes the tasks of events or deadlines, between two runs (rule 3).
struct BetweenRuns<'a>(&'a WorkerContext);

impl<'a> BetweenRuns<'a> {
    fn begin(context: &'a WorkerContext) -> Self {
        context.between_runs.set(true);
        Self(context)
    }
}

impl Drop for BetweenRuns<'_> {
    fn drop(&mut self) {
        self.0.between_runs.set(false);
    }
}

#[cfg(test)]
pub(crate) mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
