//! A worker with a thread of the runtime: its loop finds a task, runs it, or else parks.
use crate::{
    events::ClockHold,
    worker::{
        context::{self, OnWorker},
        core::Core,
        driver::{OwnedDriver, Parker},
        park::{Park, Patience},
        run::run,
        scheduler::Task,
        shared::Shared,
    },
};
use coop_budget::{Budget, Scope, Turns};
use std::panic::resume_unwind;
use sync_shim::panics;
use worker_idle::{Backoff, announce::Registry};
use worker_queue::RunQueue;

/// Runs a worker on this thread until the runtime ends, or until a task lends the core.
///
/// `hold` keeps a paused clock from jumping until the runtime's driver knows that the worker runs.
pub(crate) fn drive(core: Box<Core>, hold: Option<ClockHold>) {
    let shared = core.shared.clone();
    core.lending.allow();
    core.show();
    core.wait_for_first_work();
    core.busy_time.begin();
    core.looks.interval.forget();
    let slice = shared.slices.of(core.index);
    // A poll for a dump may have lent the core.
    slice.take_over();
    let core = Box::into_raw(core);
    let turn = || {
        // The block moves the hold into this closure, and ends it.
        let _: Option<ClockHold> = { hold };
        Scope::own(Budget::UNLIMITED)
            .slice(slice)
            .hook(&OnWorker)
            .turns(|turns| work(&shared, turns))
    };
    // SAFETY: the core is freed below, after this call.
    let ended = unsafe { context::as_worker(&shared, core, turn) };
    if !ended {
        crate::groups::Inherited::clear();
        context::release_clock();
        return;
    }
    Registry::wait_keeping(&shared.announcements, || shared.clone());
    // SAFETY: the pointer was made from a box above, and this thread still has the core.
    drop(unsafe { Box::from_raw(core) });
}

/// Runs tasks. Returns true at the runtime's end, and false when a task has lent the core.
fn work(shared: &Shared, turns: &Turns<'_>) -> bool {
    loop {
        // SAFETY: the reference is not used after the run of a task, which may lend the core.
        let Some(core) = (unsafe { context::core() }) else {
            return false;
        };
        sync_shim::sim::point();
        if shared.is_closing() {
            if core.without_lending(Core::end) {
                return true;
            }
            core.without_lending(Core::wait_in_thread);
        } else if let Some(task) = core
            .next()
            .or_else(|| core.without_lending(Core::sleep_in_thread))
        {
            let settings = core.begin_run(&task);
            run::<true>(shared, turns, settings, task);
        }
    }
}

impl Core {
    /// Shows the monitor that this thread has the core from now on.
    fn show(&self) {
        self.counters().set_polled(None);
        let thread = sched_monitor::thread_id().unwrap_or(0);
        // Ordering: Relaxed, as it is only a number.
        self.remote
            .thread
            .store(thread, sync_shim::atomic::Ordering::Relaxed);
        if self.index > 0 {
            // A thread other than the first has started, so there are tasks for several workers.
            self.shared.monitor.start(&self.shared);
        }
        self.shared.monitor.ring();
    }

    /// Waits briefly for work if this worker is new, before it parks: a new runtime usually gets
    /// work, or is dropped, at once. The models leave this out: correctness does not depend on it.
    fn wait_for_first_work(&self) {
        let shared = &self.shared;
        let waits = cfg!(not(any(selvedge_loom, selvedge_shuttle)));
        let mut backoff = Backoff::eager().with(self.idle_state.backoff.get().rule());
        if waits && self.counters().polls.get() == 0 && !shared.has_work() && backoff.is_due() {
            backoff.wait(|| shared.has_work() || shared.is_closing());
        }
    }

    fn sleep_in_thread(&self) -> Option<Task> {
        self.shared.process.end_in_child();
        if self.backoff() {
            return None;
        }
        let mut parker = self.park.take()?;
        let task = match &mut parker {
            Parker::Events(park) => {
                let task = self.sleep(park, Patience::Endless);
                if park.has_events() {
                    self.shared.hooks.contain(|| self.deliver(park));
                }
                task
            }
            Parker::Driver(driver) => self.sleep_in_driver(driver),
        };
        self.park.set(Some(parker));
        self.keep_order(task?)
    }

    /// Returns the task of another worker's slot that the sleep has found, unless the events after
    /// that sleep have woken tasks. One of them may be where no other worker finds it, so it runs
    /// first: then the found task goes behind them.
    fn keep_order(&self, found: Task) -> Option<Task> {
        if self.queue.is_empty() {
            return Some(found);
        }
        RunQueue::push_back(&self.queue, found, self);
        None
    }

    #[cold]
    fn sleep_in_driver(&self, driver: &mut OwnedDriver) -> Option<Task> {
        let (hooks, mut task) = (&self.shared.hooks, None);
        let sleep = || task = driver.with(|park| self.sleep(park, Patience::Endless));
        if let Err(payload) = panics::catch(sleep) {
            // The hook for panics is user code, and this worker searches.
            self.leave_search();
            hooks.contain(|| resume_unwind(payload));
        }
        hooks.contain(|| driver.with(|park| self.deliver(park)));
        task
    }
}
