//! How a worker finds its next task.
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
//! The core uses it through the trait [`RunQueue`]; [`queue`](crate::worker::queue) chooses the
//! type. Each look at the injector is also one at the worker's inbox, if it has one.
//!
//! After 4,096 polls in a row of tasks that only yielded, a worker yields its CPU at the next
//! interval: the tasks may wait for a thread that needs it ([`Spin`](worker_idle::Spin)).
use crate::worker::{core::Core, interval::Reading, scheduler::Task, shared::Shared};
use coop_budget::Exhausted;
use std::time::Duration;
use sync_shim::atomic::Ordering::Relaxed;
use worker_queue::{Next, RunQueue};

impl Core {
    /// Returns the task to run next, in the order of this file's front page.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<Task> {
        let interval_is_over = self.looks.interval.tick();
        if interval_is_over
            || self.slice.get().is_set()
            || self.looks.forced.get() | self.is_sharing()
        {
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
        let is_signalled = || self.slice.get().is_set() || self.looks.forced.get();
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
        self.looks.poll_is_due.set(true);
        self.queue.next(self).map(|next| next.item)
    }

    /// Notes that the polled task was refused an operation, for this reason.
    pub(crate) fn forced_yield(&self, why: Exhausted) {
        self.shared.trace.forced_yield(self.index);
        if why == Exhausted::Slice {
            self.counters().preemptions.add(1);
        } else {
            self.counters().forced_yields.add(1);
            self.looks.forced.set(true);
        }
    }

    /// Begins a new time slice if a request has ended the last one. Costs a load if none has.
    #[cold]
    fn begin_slice(&self) {
        let slice = self.slice.get();
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
        let is_over = self.slice.get().need_preempt();
        self.begin_slice();
        let own_is_next = self.looks.own_is_next(is_over, !self.queue.is_empty());
        if own_is_next {
            self.looks.interval.note_ended_slice(interval_is_over);
        }
        own_is_next
    }

    fn at_interval(&self) -> Option<Task> {
        // Elsewhere the monitor does this.
        if !self.shared.monitor.is_running() {
            self.shared.trace.go_on();
        }
        // A task in an ended slice would be refused its first operation.
        if !self.slice.get().need_preempt() {
            if let Some(task) = self.look_again() {
                return Some(task);
            }
        }
        self.busy_time.end(self.counters());
        self.busy_time.begin();
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
        self.looks.poll_is_due.set(true);
        if own_is_next {
            self.shared.monitor.start(&self.shared);
            return None;
        }
        let task = self.look_at_interval();
        if self.shared.monitor.is_unstarted() {
            if task.is_some() || !self.queue.is_empty() {
                self.shared.monitor.start(&self.shared);
            } else {
                self.looks.interval.end_at_next_tick();
            }
        }
        if task.is_none() && !self.idle_state.searching.get() {
            // A task that is spawned, woken, injected or stolen changes this sum. A yield, and the
            // poll after it, does not.
            let c = self.counters();
            let news = c.spawns.get() + c.local_wakes.get() + c.injected_tasks.get();
            self.looks
                .spin
                .look(news + c.stolen_tasks.get(), c.polls.get());
        }
        task
    }

    /// Looks at the end of an interval, and begins the next interval.
    pub(crate) fn look_at_interval(&self) -> Option<Task> {
        self.look(false)
    }

    /// Looks because of a signal.
    ///
    /// A refused operation also leads to this call. If there was no signal, the operation was
    /// refused because the budget is used up. Then the interval goes on.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_signal(&self) -> Option<Task> {
        self.looks.forced.set(false);
        // The signal may have come after the check of `look_before_own`.
        self.publish_requeued_if(|| true);
        if !self.slice.get().is_set() {
            return self.take_share();
        }
        if self.begin_slice_before_own(false) {
            return None;
        }
        self.look(true)
    }

    fn look(&self, is_due: bool) -> Option<Task> {
        let interval = &self.looks.interval;
        let reading = interval.begin(is_due);
        if interval.owes_own() && !self.queue.is_empty() {
            interval.stop_repaying();
            interval.note_look(false, reading.is_some());
            return None;
        }
        let repays = interval.owes() || interval.is_one_tick() && self.queue.is_empty();
        let task = if repays {
            self.take_one()
        } else {
            self.take_share()
        };
        if repays && task.is_some() {
            interval.repay(reading.is_some());
        } else {
            interval.stop_repaying();
        }
        interval.note_look(task.is_some(), reading.is_some());
        if let Some(reading) = reading.filter(|_| task.is_some()) {
            self.record_wait(&reading);
        }
        task
    }

    /// Takes the next task from outside, if the worker takes such tasks one by one now.
    pub(crate) fn look_again(&self) -> Option<Task> {
        let goes_on = self.looks.interval.goes_on_repaying();
        goes_on.then(|| self.look(false)).flatten()
    }

    fn take_one(&self) -> Option<Task> {
        let (injector, _) = self.shared.injector.look(self.index, &self.looks.injected);
        let task = self
            .slice
            .get()
            .look(|| self.queue.take_one(injector, self))?;
        self.count_injected(1);
        Some(task)
    }

    /// Records the wait of the work that this look has found. The wait counts from the push that
    /// nudged this worker, or from the worker's last reading of the clock if that is later.
    fn record_wait(&self, reading: &Reading) {
        let nudged = &self.remote.nudged_at;
        // Ordering: Relaxed, as the stamp orders no other data. A look that does not see the
        // nudger's stamp yet counts from the last reading, so the wait may come out too long.
        let nudge = match nudged.load(Relaxed) {
            0 => None,
            at => self.shared.begun.checked_add(Duration::from_nanos(at)),
        };
        // Ordering: Relaxed, as above. This store may overwrite a newer stamp. The newer stamp is
        // that of a push that waits for the next look, or a late stamp of the push that this look
        // has found. In both cases the wait counts from the last reading, as above.
        nudged.store(0, Relaxed);
        if let Some(since) = nudge.max(reading.before) {
            let waited = reading.now.saturating_duration_since(since);
            self.counters().record_wait(waited);
        }
    }

    /// Takes a fair share of the injector: returns one task, and moves the others to the ring.
    pub(crate) fn take_share(&self) -> Option<Task> {
        let injector = &self.shared.injector;
        let (injector, workers) = injector.look(self.index, &self.looks.injected);
        let look = || self.queue.take_share(injector, workers, self);
        let share = self.slice.get().look(look)?;
        self.count_injected(1 + share.moved);
        Some(share.first)
    }

    /// Counts tasks that this worker has taken from outside.
    pub(crate) fn count_injected(&self, tasks: usize) {
        self.counters().injected_tasks.add(tasks as u64);
        self.shared.trace.inject(self.index, tasks);
    }
}

impl Shared {
    /// Nudges a busy worker after a push. If the workers read the clock, also stamps the time of
    /// the nudge.
    pub(crate) fn nudge(&self) {
        if let Some(worker) = self.slices.nudge_one() {
            self.note_nudge(worker);
        }
    }

    /// Stamps the time of a nudge, if the workers read the clock.
    pub(crate) fn note_nudge(&self, worker: usize) {
        if self.settings.adapts {
            let now = sync_shim::time::since(self.begun).as_nanos() as u64;
            // Ordering: Relaxed, see `Core::record_wait`.
            self.remotes[worker].nudged_at.store(now.max(1), Relaxed);
        }
    }
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
