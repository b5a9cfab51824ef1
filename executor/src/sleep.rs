//! How a worker goes to sleep and wakes.
//!
//! Sleep is announced and looked over once more as [`worker_idle`] asks.
use crate::{
    core::Core,
    park::Park,
    shared::Task,
    watch::{Look, Watch},
};
use std::time::Duration;
use worker_idle::Woken;

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
    pub(crate) fn linger(&self) -> bool {
        let shared = &self.shared;
        let mut linger = self.linger.get();
        let waits = linger.is_due() && (self.searching.get() || shared.idle.try_search()) && {
            self.searching.set(true);
            shared.idle.counts().0 == 1
        };
        let found = waits && {
            self.own().counters.lingers.add(1);
            linger.wait(|| shared.has_work() || shared.is_closing())
        };
        self.own().counters.lingers_that_found.add(u64::from(found));
        self.linger.set(linger);
        found
    }

    /// Sleeps until notified, unless there is work after all. Either way it goes on as a searcher, who may have found a task.
    pub(crate) fn sleep(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        self.drain();
        let shared = &self.shared;
        shared.hooks.park();
        // What a hook spawns, or the drop of what a task carried, may be here now.
        let task = if self.is_empty() {
            self.announce(park, patience)
        } else {
            None
        };
        shared.hooks.unpark();
        task
    }

    fn announce(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        shared.idle.sleep(self.index, self.searching.replace(true));
        if shared.has_work() || shared.is_closing() {
            self.wake_self();
            return None;
        }
        self.own().counters.parks.add(1);
        self.clock_out();
        let task = self.doze(park, patience);
        self.clock_in();
        task
    }

    fn doze(&self, park: &mut impl Park, patience: Patience) -> Option<Task> {
        let shared = &self.shared;
        let mut watch = Watch::begin(self);
        loop {
            let look = watch.as_ref().map(Watch::limit);
            match [look, patience.limit()].into_iter().flatten().min() {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
            if shared.idle.was_notified(self.index) {
                self.own().counters.unparks.add(1);
                return None;
            }
            if self.has_releases() || shared.has_work() || shared.is_closing() {
                self.wake_self();
                return None;
            }
            match watch.as_mut().map(Watch::look) {
                Some(Look::Aged(task)) => {
                    self.own().counters.slots_stolen.add(1);
                    self.wake_self();
                    return Some(task);
                }
                Some(Look::GiveUp) => watch = None,
                Some(Look::Nothing) => {}
                None => self.own().counters.false_wakes.add(1),
            }
            if let Patience::Once(_) = patience {
                self.wake_self();
                return None;
            }
        }
    }

    fn has_releases(&self) -> bool {
        // SAFETY: for this call, which runs no user code.
        unsafe { self.owned() }.has_releases()
    }

    /// Takes itself out of the sleepers, as a searcher.
    fn wake_self(&self) {
        match self.shared.idle.wake_self(self.index) {
            // A token may be left in the parker: it costs a turn of the next sleep's loop.
            Woken::BySelf | Woken::ByNotifier => {}
        }
    }

    /// While the runtime ends: waits for a task of this worker that is in another's hands. It comes over the injector or
    /// the release stack.
    pub(crate) fn sleep_until_release(&self, park: &mut impl Park, limit: Option<Duration>) {
        let shared = &self.shared;
        shared.idle.sleep(self.index, self.searching.replace(true));
        if shared.injector.is_empty() && self.is_empty() && !self.has_releases() {
            match limit {
                None => park.park(),
                Some(limit) => park.park_timeout(limit),
            }
            if shared.idle.was_notified(self.index) {
                return;
            }
        }
        self.wake_self();
    }
}
