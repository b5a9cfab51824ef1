//! A worker: finds a process, runs it, and parks when there is none.
//!
//! # Where a worker looks
//!
//! 1. At the oldest processes, once it has made 61 steps since the last such look (rule 2).
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
//!    the oldest ones get their turn by a look. A slice is never cut short for a look. The look
//!    depends on the deque:
//!
//!    | the deque has | the worker takes next |
//!    |---|---|
//!    | no fresh process | what it would take anyway: the batch is older than the injector's processes |
//!    | fresh processes above a batch | the batch, the oldest first |
//!    | only fresh processes | the oldest one, and then the oldest one of the injector, unless that one has just used its slice |
//! 3. A push notifies a worker, by the protocol of [`worker_idle::Idle`]. One push does not: a
//!    worker's push to its own empty deque, because the worker takes that process next. The deque
//!    is then a *filled place*: if the worker's step takes long, the watcher finds the process
//!    ([`worker_idle::Watch`]).
//! 4. The last process of a deque is its owner's: the owner takes it after its step, and a thief
//!    would only carry it to another processor. An owner is *stuck* if its count of steps has not
//!    changed between two looks: of the watcher, or at the beginning and at the end of the looks of
//!    rule 5. Then a thief takes the last process too. A park may end early, without a reason or
//!    for an event, so the watcher looks only once its interval has passed. A worker that leaves a
//!    last process and goes to sleep requests a watcher, so that a worker looks again.
//! 5. A worker that finds nothing looks again 15 times, the first 3 at once, the others after it
//!    has yielded its processor. Then it parks.
//! 6. A worker that sees the stop runs the processes that are left in the queues, and then ends.
//!    The shutdown has killed each of them for good, so each ends at this run and is not queued
//!    again. A worker takes such processes from the deques of the others too, also the last one:
//!    the owner may be in a step that never returns. So no process is left in a queue when
//!    the last worker ends. A process whose `init` returns later is not run.
//! 7. A busy worker *looks outside* after 16 runs of processes, or after a millisecond of runs. It
//!    reads the clock for this after each run, but only while there is a driver or a deadline that
//!    nobody keeps. A look wakes the tasks whose deadlines have come, unless a sleeping worker
//!    keeps the time (`timer.rs`), and polls its driver. A worker that parks does both when its
//!    park returns. The tasks that it wakes come to its own deque.
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
    thread,
    time::{Duration, Instant},
};
use sync_shim::atomic::Ordering::Relaxed;
use worker_idle::{Watch, WatchState, park::Park};

/// Steps between two looks at the oldest processes.
const LOOK: u32 = 61;
/// Processes that a worker takes from the injector for its deque.
const BATCH: usize = 16;
/// The largest number of runs between two looks outside, and the time after which the end of a run
/// is followed by a look (rule 7).
const RUNS: u32 = 16;
const OUTSIDE: Duration = Duration::from_millis(1);
/// The largest number of events of a driver that a busy worker collects at once.
const EVENTS: usize = 64;
/// The number of looks of a worker that finds nothing, and how many of them come without a yield in
/// between. A model makes only two, as correctness does not depend on their number.
const SPINS: u32 = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    2
} else {
    16
};
const TIGHT: u32 = 4;

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

/// The part of a worker that the processes on its thread find.
pub(crate) struct Place {
    shared: Arc<Shared>,
    index: usize,
    /// Borrowed for single operations only, never while a process runs.
    local: RefCell<LocalDeque>,
}

impl Place {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, deque: Deque<Runnable>) -> Self {
        Self {
            shared,
            index,
            local: RefCell::new(LocalDeque {
                deque,
                fresh: 0,
                batch: 0,
            }),
        }
    }
}

thread_local! {
    /// The place of this thread's worker, or null.
    static PLACE: Cell<*const Place> = const { Cell::new(ptr::null()) };
}

/// Takes the worker's place from the thread.
struct LeavePlace;

impl Drop for LeavePlace {
    fn drop(&mut self) {
        PLACE.set(ptr::null());
    }
}

/// Returns the index of this thread among the scheduler's workers, if it is one.
pub(crate) fn index_in(shared: &Shared) -> Option<usize> {
    // SAFETY: as in `submit`.
    let place = unsafe { PLACE.get().as_ref() }?;
    ptr::eq(&*place.shared, shared).then_some(place.index)
}

/// Queues a process that is ready (rule 1), and notifies a worker (rule 3).
#[inline]
pub(crate) fn submit(shared: &Shared, runnable: Runnable) {
    // SAFETY: the pointer is null, or of a place that `run` keeps on this thread's stack. `run`
    // takes the pointer back before the place ends, and this call returns before that.
    let place = unsafe { PLACE.get().as_ref() };
    let Some(place) = place.filter(|place| ptr::eq(&*place.shared, shared)) else {
        shared.injector.requeue(runnable);
        shared.notify();
        return;
    };
    let mut local = place.local.borrow_mut();
    let was_empty = local.deque.is_empty();
    local.deque.push(runnable);
    local.fresh += 1;
    drop(local);
    if !was_empty {
        shared.notify();
    } else if !shared.idle.is_watched() {
        shared.idle.want_watcher();
        shared.notify();
    }
}

/// Runs processes on this thread, as one of the scheduler's workers, until the scheduler stops.
pub(crate) fn run(place: Place, park: BoxPark) {
    PLACE.set(&raw const place);
    let leave = LeavePlace;
    deadline::keep_entries(true);
    let mut worker = Worker::new(&place, park);
    // A process guards its user code. This guard is for any other panic: the process is stuck then,
    // and the worker continues.
    while guarded(|| worker.run_until_stop()).is_none() {}
    deadline::keep_entries(false);
    drop(leave);
}

/// The progress of one worker.
struct Worker<'a> {
    place: &'a Place,
    park: BoxPark,
    random: u32,
    /// Steps since the last look at the oldest processes.
    steps: u32,
    /// Runs until the next look outside, unless a look comes earlier by the clock (rule 7).
    runs_left: u32,
    /// The time of the last look outside.
    looked_outside: Instant,
    /// True while the look at the injector's oldest process is still to come.
    looks_at_injector: bool,
    /// The address of the process that was run last, if it went to the back of the injector, or 0.
    requeued: usize,
    searching: bool,
    /// The count of each worker's steps when this worker last looked at the counts.
    seen: Vec<Cell<u64>>,
    /// True if the next look takes the last process of a stuck owner (rule 4).
    takes_last: bool,
    watch: Cell<WatchState>,
}

impl<'a> Worker<'a> {
    fn new(place: &'a Place, park: BoxPark) -> Self {
        Self {
            place,
            park,
            random: place.index as u32 * 2 + 1,
            steps: 0,
            runs_left: RUNS,
            looked_outside: Instant::now(),
            looks_at_injector: false,
            requeued: 0,
            searching: false,
            seen: vec![Cell::default(); place.shared.stealers.len()],
            takes_last: false,
            watch: Cell::default(),
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
        &self.place.shared
    }

    fn find(&mut self) -> Option<Runnable> {
        if mem::take(&mut self.looks_at_injector) {
            if let Some(oldest) = self.oldest_injected() {
                return Some(oldest);
            }
        }
        if self.steps >= LOOK {
            self.steps = 0;
            if let Some(oldest) = self.look() {
                return Some(oldest);
            }
        }
        // The newest fresh process, or the oldest of the batch if no process is fresh.
        let mut local = self.place.local.borrow_mut();
        let Some(runnable) = local.deque.pop() else {
            (local.fresh, local.batch) = (0, 0);
            drop(local);
            return self.find_elsewhere();
        };
        if local.fresh > 0 {
            local.fresh -= 1;
        } else {
            local.batch = local.batch.saturating_sub(1);
        }
        Some(runnable)
    }

    /// Looks at the oldest processes (rule 2).
    fn look(&mut self) -> Option<Runnable> {
        let mut local = self.place.local.borrow_mut();
        if local.fresh == 0 {
            return None;
        }
        if local.batch > 0 {
            local.lift_batch();
            return None;
        }
        self.looks_at_injector = true;
        match self.shared().stealers[self.place.index].steal() {
            Steal::Success { first, .. } => {
                local.fresh -= 1;
                Some(first)
            }
            _ => None,
        }
    }

    /// Takes the oldest process of the injector, unless it is the one that was run last.
    fn oldest_injected(&mut self) -> Option<Runnable> {
        let oldest = self.shared().injector.pop()?;
        if oldest.address() == self.requeued {
            self.shared().injector.requeue(oldest);
            return None;
        }
        Some(oldest)
    }

    /// Looks in the injector and in the other workers' deques.
    fn find_elsewhere(&mut self) -> Option<Runnable> {
        let mut batch = self.shared().injector.pop_n(1 + BATCH);
        if let Some(first) = batch.next() {
            // The oldest of the rest is pushed last, so the worker pops it first.
            let rest: Vec<_> = batch.collect();
            let more = !rest.is_empty();
            let mut local = self.place.local.borrow_mut();
            (local.fresh, local.batch) = (0, rest.len());
            local.deque.extend(rest.into_iter().rev());
            drop(local);
            if more {
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
        let takes_last = mem::take(&mut self.takes_last);
        let start = self.next_random() as usize;
        for i in 0..victims {
            let victim = (start + i) % victims;
            if victim == self.place.index {
                continue;
            }
            let is_stuck = takes_last && self.is_stuck(victim);
            let victim = &self.shared().stealers[victim];
            if victim.len() < 2 && !is_stuck {
                continue;
            }
            let mut local = self.place.local.borrow_mut();
            let stolen = victim.steal_into_and_pop(&mut local.deque, StealLimit::Half);
            // The oldest of them is the lowest, as with fresh processes.
            (local.fresh, local.batch) = (local.deque.len(), 0);
            drop(local);
            // After a retry, the worker looks at the other deques first.
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
    fn note_steps(&self) {
        for (worker, seen) in self.seen.iter().enumerate() {
            seen.set(self.steps_of(worker));
        }
    }

    /// Returns whether a worker has made no step since the last look, and has a process (rule 4).
    fn is_stuck(&self, worker: usize) -> bool {
        !self.shared().stealers[worker].is_empty()
            && self.seen[worker].get() == self.steps_of(worker)
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
        &self.shared().counters.workers[self.place.index]
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
                counters: &self.shared().counters.workers[self.place.index],
            };
            let left = runnable.0.run(&mut slice);
            self.steps += (budget - slice.steps_left).max(1);
            self.runs_left -= 1;
            if self.runs_left == 0 || HAS_CLOCK && self.serves_time() {
                self.look_outside();
            }
            let Some(left) = left else {
                return;
            };
            // Rule 1: the process continues if no other process is ready here.
            let shared = self.shared();
            let is_alone = self.place.local.borrow().deque.is_empty() && shared.injector.is_empty();
            // Ordering: Relaxed, as in `run`.
            if !is_alone || shared.stop.load(Relaxed) {
                self.requeued = left.address();
                self.shared().injector.requeue(left);
                self.shared().notify();
                return;
            }
            if self.steps >= LOOK {
                // No other process waits here, so no look is due.
                self.steps = 0;
            }
            runnable = left;
        }
    }

    /// Returns whether another worker must be woken, as a thief of a process or as the watcher of a
    /// last process.
    fn has_work_for_another(&self) -> bool {
        let shared = self.shared();
        shared.has_shared() || !shared.idle.is_watched() && shared.has_ready()
    }

    /// Returns whether this worker has something to look at outside (rule 7).
    fn serves_time(&self) -> bool {
        self.shared().config.has_driver || self.shared().timer.lacks_keeper()
    }

    /// Looks at the timer if nobody keeps the time, and polls the driver, if a look is due (rule
    /// 7).
    #[cold]
    fn look_outside(&mut self) {
        if !self.serves_time() {
            self.runs_left = RUNS;
            return;
        }
        let now = Instant::now();
        if self.runs_left > 0 && now.duration_since(self.looked_outside) < OUTSIDE {
            return;
        }
        self.runs_left = RUNS;
        self.looked_outside = now;
        if self.shared().timer.lacks_keeper() {
            self.shared().timer.fire();
        }
        guarded(|| self.park.poll(EVENTS));
        self.deliver();
    }

    /// Wakes the tasks of the events that the driver has collected. The worker counts as awake, so
    /// the tasks come to its own deque.
    fn deliver(&mut self) {
        if self.has_events() {
            // The wakers are user code.
            guarded(|| self.park.deliver());
        }
    }

    /// Returns whether the driver has events. A driver that panics counts as one with events: the
    /// worker does not park then.
    fn has_events(&self) -> bool {
        guarded(|| self.park.has_events()).unwrap_or(true)
    }

    /// Looks again (rule 5), and then parks.
    fn wait(&mut self) {
        self.note_steps();
        for spin in 1..SPINS {
            match spin {
                ..TIGHT => std::hint::spin_loop(),
                _ => thread::yield_now(),
            }
            // Ordering: Relaxed, as in `run`.
            if self.shared().stop.load(Relaxed) {
                return;
            }
            self.takes_last = spin == SPINS - 1;
            if let Some(runnable) = self.find_elsewhere() {
                return self.serve(runnable);
            }
        }
        let (shared, index) = (self.shared(), self.place.index);
        let idle = &shared.idle;
        idle.sleep(index, self.searching);
        self.searching = true; // However this worker wakes, it counts as searching then.
        if shared.has_shared() {
            idle.wake_self(index);
            Watch::forget(idle, &self.watch);
            return;
        }
        if self.park() {
            shared.timer.leave();
            if shared.timer.lacks_keeper() {
                shared.timer.fire();
            }
        }
        self.deliver();
    }

    /// Parks until the worker counts as awake, or the scheduler stops. Returns whether the worker
    /// keeps the time.
    fn park(&mut self) -> bool {
        let (shared, index) = (self.shared(), self.place.index);
        let idle = &shared.idle;
        if shared.has_ready() {
            // Rule 4.
            idle.want_watcher();
        }
        self.note_steps();
        self.counters().count_park();
        let mut watch = Watch::begin(idle, index, &self.watch);
        let mut last_look = Instant::now();
        let mut keeps = None;
        // Ordering: Relaxed. The token of the unpark orders this load: the unpark comes after the
        // store.
        while !idle.was_notified(index) && !shared.stop.load(Relaxed) {
            keeps = shared.timer.keep(index);
            if keeps == Some(Duration::ZERO) || self.has_events() {
                idle.wake_self(index);
                break;
            }
            let deadline = keeps.filter(|limit| *limit != Duration::MAX);
            let look = watch
                .as_ref()
                .map(|watch| watch.limit().saturating_sub(last_look.elapsed()));
            // A panic of the driver ends this park, and the worker looks again.
            match [deadline, look].into_iter().flatten().min() {
                Some(limit) => guarded(|| self.park.park_timeout(limit)),
                None => guarded(|| self.park.park()),
            };
            if idle.was_notified(index) {
                break;
            }
            let Some(watcher) = &mut watch else {
                continue;
            };
            if HAS_CLOCK && last_look.elapsed() < watcher.limit() {
                continue; // The park has ended early (rule 4).
            }
            if !watcher.record_look(shared.has_ready()) {
                watch = None;
            }
            let is_stuck = (0..self.seen.len()).any(|worker| self.is_stuck(worker));
            if is_stuck || shared.has_shared() {
                drop(watch);
                idle.wake_self(index);
                self.takes_last = true;
                return keeps.is_some();
            }
            self.note_steps();
            last_look = Instant::now();
        }
        drop(watch);
        Watch::forget(idle, &self.watch);
        keeps.is_some()
    }
}

#[cfg(test)]
pub(crate) mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
