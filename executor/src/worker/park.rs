//! How a worker parks and wakes, and [`Park`], the trait for a parker or a driver of your own.
//!
//! ```
//! use selvedge_executor::park::{ThreadPark, block_on};
//!
//! let value = block_on(&mut ThreadPark::new(), async { 7 });
//! assert_eq!(value, 7);
//! ```
//!
//! # How a worker sleeps
//!
//! A worker announces its sleep and then checks every queue once more, as [`worker_idle`] requires.
//!
//! While a worker counts as searching, pushes wake no other worker. So a worker leaves the search
//! before it calls user code here (hooks, drops). An unpark begins a search. The worker calls the
//! hook for its unpark when it has left that search: once it has a task, or before it parks again.
use crate::{
    events::Over,
    observe::trace,
    worker::{
        context,
        core::Core,
        driver::{BoxPark, OwnedDriver, Parker},
        scheduler::Task,
    },
};
use std::time::Duration;
use worker_idle::{Watch, Woken};
use worker_queue::RunQueue;

pub use worker_idle::park::{Park, ThreadPark, block_on};

/// Events that a busy worker collects at once.
pub(crate) const MAX_EVENTS: usize = 64;

/// The largest number of looks at its driver that a busy worker skips in a row.
const MAX_SKIPS: u32 = 16;

/// False in a model: a model must be repeatable, so it reads no clock.
const HAS_CLOCK: bool = cfg!(not(any(selvedge_loom, selvedge_shuttle)));

/// How long a sleep lasts.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// Until the worker is notified.
    Endless,
    /// Until the parker returns, at most for this time.
    Once(Option<Duration>),
}

impl Patience {
    fn limit(self) -> Option<Duration> {
        match self {
            Self::Endless => None,
            Self::Once(limit) => limit,
        }
    }
}

impl Core {
    /// Waits briefly as a searcher before a park, if such waits have paid so far. Returns whether
    /// work came.
    ///
    /// Pushes wake no worker meanwhile. At most one worker waits in this way at a time.
    pub(crate) fn backoff(&self) -> bool {
        let shared = &self.shared;
        let mut backoff = self.idle_state.backoff.get();
        let waits =
            backoff.is_due() && (self.idle_state.searching.get() || shared.idle.try_search()) && {
                self.idle_state.searching.set(true);
                shared.idle.counts().0 == 1
            };
        let found = waits && {
            self.counters().backoffs.add(1);
            backoff.wait(|| shared.has_work() || self.has_mail() || shared.is_closing())
        };
        self.counters().backoff_hits.add(u64::from(found));
        self.idle_state.backoff.set(backoff);
        found
    }

    /// Sleeps, unless there is work after all. Returns a task that a watch found in a slot.
    pub(crate) fn sleep(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        self.counters().set_polled(None);
        sync_shim::sim::point();
        if self.prepare() {
            self.announce(park, patience)
        } else {
            None
        }
    }

    /// Calls user code that runs before a sleep. Returns whether this worker still has nothing to
    /// do.
    fn prepare(&self) -> bool {
        let hooks = &self.shared.hooks;
        let observed = hooks.on_park.is_some() || hooks.on_unpark.is_some();
        if !observed && !self.has_releases() {
            return true;
        }
        self.as_worker(|| {
            self.leave_search();
            self.drain();
            self.outside_of_turns(|| hooks.call_hook(&hooks.on_park));
            self.idle_state.owes_unpark.set(hooks.on_unpark.is_some());
            let nothing = self.queue.is_empty();
            if !nothing {
                self.call_unpark_hook();
            }
            nothing
        })
    }

    /// Calls the hook for an unpark, once for each park. The worker must not be searching.
    pub(crate) fn call_unpark_hook(&self) {
        if self.idle_state.owes_unpark.take() {
            let hooks = &self.shared.hooks;
            let call = || hooks.call_hook(&hooks.on_unpark);
            self.without_lending(|core| core.as_worker(|| core.outside_of_turns(call)));
        }
    }

    /// Announces the sleep, and sleeps. The worker searches afterwards, also if the parker panics.
    fn announce(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        let _asleep = Asleep::announce(self);
        if park.has_events() || shared.has_work() || self.has_mail() || shared.is_closing() {
            return None;
        }
        self.counters().parks.add(1);
        self.looks.interval.forget();
        self.busy_time.end(self.counters());
        trace::park(self);
        let task = self.doze(park, patience);
        self.counters().ended_parks.add(1);
        trace::unpark(self);
        self.busy_time.begin();
        task
    }

    fn doze(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        let mut watch = self.watch();
        let was_notified = self.idle_state.take_notified(self.counters().polls.get());
        if was_notified && watch.is_none() {
            // The notified worker found no work, and is not needed as a watcher.
            self.counters().false_wakes.add(1);
        }
        // The interval may have passed while the worker was awake. A model has no intervals.
        let mut task = HAS_CLOCK.then(|| self.look_if_due(&mut watch)).flatten();
        while task.is_none() {
            let look = watch.as_ref().map(Watch::until_look);
            match [look, patience.limit()].into_iter().flatten().min() {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
            if shared.idle.was_notified(self.index) {
                self.counters().unparks.add(1);
                self.idle_state.note_notified(self.counters().polls.get());
                drop(watch.take());
                self.forget_watch();
                break;
            }
            let has_own = || park.has_events() || self.has_releases() || self.has_mail();
            if has_own() || shared.has_work() || shared.is_closing() {
                // The watch goes on in the next sleep, which may be far.
                task = self.look_while_leaving(&mut watch);
                break;
            }
            if watch.is_none() {
                self.counters().false_wakes.add(1);
            }
            task = self.look_if_due(&mut watch);
            if let Patience::Once(_) = patience {
                break; // The next sleep continues this sleep.
            }
        }
        drop(watch);
        if task.is_some() {
            self.forget_watch();
        }
        task
    }

    /// Looks at the slots if the watcher's next look is due. Returns the task of an aged slot.
    fn look_if_due(&self, watch: &mut Option<Watch<'_>>) -> Option<Task> {
        let is_due = watch.as_ref().is_some_and(Watch::is_due);
        is_due.then(|| self.look_as_watcher(watch))?
    }

    /// Looks at the slots. Returns the task of an aged slot. The watch ends with its last look.
    fn look_as_watcher(&self, watch: &mut Option<Watch<'_>>) -> Option<Task> {
        let filled = match self.look_at_slots() {
            Ok(aged) => {
                self.counters().slot_steals.add(1);
                return Some(aged);
            }
            Err(filled) => filled,
        };
        let goes_on = |watch: &mut Watch<'_>| watch.record_look(filled);
        if !watch.as_mut().is_some_and(goes_on) {
            *watch = None;
            self.clear_seen();
        }
        None
    }

    /// Looks at the slots if the watcher has given up, and its last look is to come in the next
    /// sleep. If a slot is filled, a watcher is wanted again.
    fn look_while_leaving(&self, watch: &mut Option<Watch<'_>>) -> Option<Task> {
        let is_leaving = watch.as_ref().is_some_and(Watch::is_leaving);
        (is_leaving && self.shared.has_filled_slot()).then(|| self.look_as_watcher(watch))?
    }

    /// Waits, while the runtime ends, for a task of this worker that another thread holds. The task
    /// comes back through the injector or through the release stack.
    pub(crate) fn sleep_until_release(&self, park: &mut impl Park, limit: Option<Duration>) {
        let _asleep = Asleep::announce(self);
        if self.awaits_release() && !park.has_events() {
            match limit {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
        }
    }
}

/// A worker among the sleepers. The drop of this value makes the worker a searcher, unless a
/// notifier has done so.
struct Asleep<'a>(&'a Core);

impl<'a> Asleep<'a> {
    /// Announces the sleep. The worker must check every queue once more before it parks.
    fn announce(core: &'a Core) -> Self {
        core.shared
            .idle
            .sleep(core.index, core.idle_state.searching.replace(true));
        core.idle_state.asleep.set(true);
        Self(core)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        self.0.idle_state.asleep.set(false);
        match self.0.shared.idle.wake_self(self.0.index) {
            // A token may be left in the parker. The token costs one turn of the next sleep's loop.
            Woken::BySelf | Woken::ByNotifier => {}
        }
        self.0.shared.monitor.ring();
    }
}

impl Core {
    /// Delivers the collected events, if there are any (rule 3 of
    /// [`driver`](crate::worker::driver)). No task may give the core away meanwhile.
    ///
    /// A lone task that this wakes is kept for this worker, and no other worker is notified of it.
    /// So the caller takes the worker's next task at once, or leaves the queue.
    pub(crate) fn deliver(&self, park: &mut impl Park) {
        if !park.has_events() {
            return;
        }
        self.as_worker(|| {
            self.leave_search();
            RunQueue::between_items(&self.queue, || park.deliver());
        });
    }

    /// Returns how many sockets, and how many timers, a busy worker's look collects at most: half
    /// as many as its ring has room for. The ring would else push its oldest tasks behind all tasks
    /// of the injector. The timers that are left are in the order of their deadlines. The worker's
    /// next look fires them, or another worker does.
    ///
    /// `None` if the ring has room for one task at most, and the worker's intervals are short by
    /// the clock: then there is no look. A ring that stays full skips [`MAX_SKIPS`] looks in a row,
    /// half a millisecond. A worker that counts its intervals in ticks, or whose polls are long,
    /// skips none, because so many of its intervals may take any time.
    ///
    /// While the worker shares its time among groups, the tasks that wait for events may be of
    /// another group, whose queue is not this ring. So there is no limit and no skip.
    pub(crate) fn max_busy_events(&self) -> Option<usize> {
        let max = self.shared.settings.max_busy_events;
        if self.is_sharing() {
            return Some(max);
        }
        let (room, skips) = (self.plain().spare_capacity() / 2, &self.looks.skipped);
        let may_skip = self.looks.interval.is_surely_short() && skips.get() < MAX_SKIPS;
        if room == 0 && may_skip {
            skips.set(skips.get() + 1);
            return None;
        }
        skips.set(0);
        Some(room.min(max).max(1))
    }

    /// A busy worker's look at its driver (rule 2 of [`driver`](crate::worker::driver)).
    pub(crate) fn poll_park(&self, park: &mut impl Park) {
        if let Some(max) = self.max_busy_events() {
            park.poll(max);
            self.deliver(park);
        }
    }

    /// As `poll_park`, for a worker with a thread of the runtime.
    #[cold]
    pub(crate) fn poll_driver(&self) {
        if let Some(mut parker) = self.park.take() {
            self.shared.process.end_in_child();
            let hooks = &self.shared.hooks;
            hooks.contain(|| match &mut parker {
                Parker::Events(park) => self.poll_park(park),
                Parker::Driver(driver) => driver.with(|park| self.poll_park(park)),
            });
            self.park.set(Some(parker));
        }
    }
}

impl OwnedDriver {
    /// Runs `f` on the driver, with the timers over it. The driver's code does not find the core
    /// meanwhile (rule 1 of [`driver`](crate::worker::driver)).
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut Over<'_, BoxPark>) -> R) -> R {
        let driver = self.driver.as_mut().expect("it is there until the drop");
        let events = self.events.as_mut().expect("the core has it");
        context::without_core(|| f(&mut events.over(driver)))
    }
}
