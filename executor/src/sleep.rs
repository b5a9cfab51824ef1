//! How a worker goes to sleep and wakes.
//!
//! Sleep is announced and looked over once more as [`worker_idle`] asks.
//!
//! While a worker counts as searching, pushes rely on it. So it leaves the search before what users do here (hooks, drops), and the hook
//! for its wake is called when it has left the search that the wake began: with a task in hand, or before it sleeps again.
use crate::{core::Core, park::Park, shared::Task};
use std::time::Duration;
use worker_idle::{Watch, Woken};

/// How long a sleep may be.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// Until it is notified.
    Endless,
    /// Until its parker returns, which is no later than this.
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
    /// Before a sleep: a short wait as a searcher, if such waits pay. Whether there is something to look at.
    ///
    /// So long as it lasts pushes wake nobody. One worker does it at a time.
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

    /// Sleeps until notified, unless there is work after all. It may have found a task.
    pub(crate) fn sleep(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        if self.prepare() {
            self.announce(park, patience)
        } else {
            None
        }
    }

    /// Lets users do what they do before a sleep. Whether this worker has still nothing to do.
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

    /// The hook for a wake, once for each sleep. Not while searching.
    pub(crate) fn tell_unpark(&self) {
        if self.owes_unpark.take() {
            let hooks = &self.shared.hooks;
            self.hold(|_| hooks.call(&hooks.on_unpark));
        }
    }

    /// Sleeps. Goes on as a searcher, also when the parker panics.
    fn announce(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        let _asleep = Asleep::announce(self);
        if shared.has_work() || shared.is_closing() {
            return None;
        }
        self.counters().parks.add(1);
        self.clock_out();
        let task = self.doze(park, patience);
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
        // SAFETY: for this call, which runs no user code.
        unsafe { self.owned() }.has_releases()
    }

    /// While the runtime ends: waits for a task of this worker that is in another's hands. It comes over the injector or
    /// the release stack.
    pub(crate) fn sleep_until_release(&self, park: &mut impl Park, limit: Option<Duration>) {
        let _asleep = Asleep::announce(self);
        if !self.has_leftovers() {
            match limit {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
        }
    }
}

/// A worker among the sleepers. In the end it takes itself back, unless a notifier has: it counts as searching either way.
struct Asleep<'a>(&'a Core);

impl<'a> Asleep<'a> {
    /// The worker has to look at every queue once more before it sleeps.
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
            // A token may be left in the parker: it costs a turn of the next sleep's loop.
            Woken::BySelf | Woken::ByNotifier => {}
        }
    }
}
