//! How a worker parks and wakes.
//!
//! A worker announces its sleep and then checks every queue once more, as [`worker_idle`] asks.
//!
//! While a worker counts as searching, pushes rely on it. So it leaves the search before it calls
//! user code here (hooks, drops). It calls the hook for its unpark when it has left the search that
//! the unpark began: with a task in hand, or before it parks again.
use crate::{core::Core, park::Park, shared::Task, trace};
use std::time::Duration;
use worker_idle::{Watch, Woken};
#[cfg(feature = "groups")]
use worker_queue::RunQueue;

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
    /// Waits briefly as a searcher before a park, if such waits pay. Returns whether work came.
    ///
    /// Pushes wake nobody meanwhile. One worker waits at a time.
    pub(crate) fn backoff(&self) -> bool {
        let shared = &self.shared;
        let mut backoff = self.backoff.get();
        let waits = backoff.is_due() && (self.searching.get() || shared.idle.try_search()) && {
            self.searching.set(true);
            shared.idle.counts().0 == 1
        };
        let found = waits && {
            self.counters().backoffs.add(1);
            backoff.wait(|| shared.has_work() || shared.is_closing())
        };
        self.counters().backoffs_that_found.add(u64::from(found));
        self.backoff.set(backoff);
        found
    }

    /// Sleeps, unless there is work after all. Returns a task that a watch found in a slot.
    pub(crate) fn sleep(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        self.counters().set_polled(None);
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
            hooks.call(&hooks.on_park);
            self.owes_unpark.set(hooks.on_unpark.is_some());
            let nothing = self.queue.is_empty();
            if !nothing {
                self.tell_unpark();
            }
            nothing
        })
    }

    /// Calls the hook for an unpark, once for each park. Not while the worker searches.
    pub(crate) fn tell_unpark(&self) {
        if self.owes_unpark.take() {
            let hooks = &self.shared.hooks;
            self.hold(|_| hooks.call(&hooks.on_unpark));
        }
    }

    /// Announces the sleep, and sleeps. The worker searches afterwards, also if the parker panics.
    fn announce(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        let _asleep = Asleep::announce(self);
        if park.has_events() || shared.has_work() || shared.is_closing() {
            return None;
        }
        self.counters().parks.add(1);
        self.interval.forget();
        self.clock_out();
        trace::park(self);
        let task = self.doze(park, patience);
        self.counters().parks_ended.add(1);
        trace::unpark(self);
        self.clock_in();
        task
    }

    fn doze(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        let mut watch = self.watch();
        let was_notified = self.notified_at.take() == Some(self.counters().polls.get());
        if was_notified && watch.is_none() {
            self.counters().false_wakes.add(1); // There was nothing left for it, nor was it to watch.
        }
        let task = loop {
            let look = watch.as_ref().map(Watch::limit);
            match [look, patience.limit()].into_iter().flatten().min() {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
            if shared.idle.was_notified(self.index) {
                self.counters().unparks.add(1);
                self.notified_at.set(Some(self.counters().polls.get()));
                break None;
            }
            if park.has_events() || self.has_releases() || shared.has_work() || shared.is_closing()
            {
                break None;
            }
            if let Some(at) = &mut watch {
                match self.look_at_slots() {
                    Ok(aged) => {
                        self.counters().slots_stolen.add(1);
                        break Some(aged);
                    }
                    Err(filled) if at.record_look(filled) => {}
                    Err(_) => watch = None,
                }
            } else {
                self.counters().false_wakes.add(1);
            }
            if let Patience::Once(_) = patience {
                return None; // The next sleep is this one's continuation.
            }
        };
        drop(watch);
        self.forget_watch();
        task
    }

    pub(crate) fn has_releases(&self) -> bool {
        // SAFETY: borrowed for this call, which runs no user code.
        unsafe { self.owned() }.has_releases()
    }

    /// Waits, while the runtime ends, for a task of this worker that another thread holds. The task
    /// comes by the injector or by the release stack.
    pub(crate) fn sleep_until_release(&self, park: &mut impl Park, limit: Option<Duration>) {
        let _asleep = Asleep::announce(self);
        if !self.has_leftovers() && !park.has_events() {
            match limit {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
        }
    }
}

/// A worker among the sleepers. Its drop makes the worker a searcher, unless a notifier has.
struct Asleep<'a>(&'a Core);

impl<'a> Asleep<'a> {
    /// Announces the sleep. The worker must check every queue once more before it parks.
    fn announce(core: &'a Core) -> Self {
        core.shared
            .idle
            .sleep(core.index, core.searching.replace(true));
        Self(core)
    }
}

impl Drop for Asleep<'_> {
    fn drop(&mut self) {
        match self.0.shared.idle.wake_self(self.0.index) {
            // A token may be left in the parker. It costs one turn of the next sleep's loop.
            Woken::BySelf | Woken::ByNotifier => {}
        }
        self.0.shared.monitor.ring();
    }
}
