//! The watch over the LIFO slots.
//!
//! A slot is its worker's alone, so that a chain of tasks that wake each other stays on one processor. But a task in it waits for the poll
//! in progress, and that may take long. So as the last resort a slot is robbed once it is *aged*: the same task in it, and the
//! same number of polls, at two looks that are a while apart. (The task alone would not tell: it may have run in between.)
//!
//! 1. A sleeper is the watcher, if there is none, and sleeps with a limit. At each it looks at every slot.
//! 2. Who fills an empty slot and sees no watcher wakes a sleeper, who becomes one unless it finds work.
//! 3. The watcher that wakes for work leaves the watch. It is chosen last among the sleepers, and as a searcher it looks after
//!    filled slots when it stops to search, by waking another.
//! 4. Once all others have slept for a while, the watcher gives up, but looks once more after that. So whoever relied on it before (rule 2 has no fence,
//!    a slot is filled too often for that) is seen by then. From there on an idle runtime has no wake-up at all.
//!
//! 5. A worker that others drive returns to them at each look. Its next sleep takes the watch up where it was, with what it has seen, unless
//!    something has ended the last one; and once it has been given up begins none as long as all sleep.
//!
//! No task is lost if all this fails: it waits for its worker's poll.
use crate::{core::Core, shared::Task};
use std::time::Duration;
use worker_idle::Idle;

/// Between two looks at a slot with a task in it; the limits of the others double up to the longest.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(8);

/// Looks at sleepers only, before the watch is given up.
const PATIENCE: u32 = 6;

/// A slot at some time: what was in it, and the polls of its worker.
pub(crate) type Seen = Option<(queue_global::Seen, u64)>;

/// What a look has shown.
pub(crate) enum Look {
    /// A task that has waited for too long.
    Aged(Task),
    /// Nothing that calls for anything.
    Nothing,
    /// All sleep, and have for long.
    GiveUp,
}

/// How far a watch has come.
#[derive(Clone, Copy)]
pub(crate) struct Calm {
    limit: Duration,
    /// Looks at sleepers only.
    quiet: u32,
}

impl Default for Calm {
    fn default() -> Self {
        Self {
            limit: SHORTEST,
            quiet: 0,
        }
    }
}

impl Core {
    /// The next watch is a new one, not this one's continuation.
    pub(crate) fn forget_watch(&self) {
        self.calm.take();
        let mut seen = self.seen.take();
        seen.clear();
        self.seen.set(seen);
    }
}

/// The watcher's watch.
pub(crate) struct Watch<'a> {
    core: &'a Core,
    calm: Calm,
    /// Rule 4: given up, but for one look.
    leaving: bool,
    seen: Vec<Seen>,
}

impl<'a> Watch<'a> {
    /// Rule 1. The sleep was announced.
    pub(crate) fn begin(core: &'a Core) -> Option<Self> {
        let shared = &core.shared;
        let calm = core.calm.take();
        if calm.quiet > PATIENCE && shared.all_sleep() && !shared.has_filled_slot() {
            core.calm.set(calm);
            return None;
        }
        if !shared.watches_slots() || !shared.idle.try_watch(core.index) {
            return None;
        }
        let mut seen = core.seen.take();
        seen.resize(shared.remotes.len(), None);
        Some(Self {
            core,
            calm,
            leaving: false,
            seen,
        })
    }

    /// How long to sleep before the next look.
    pub(crate) fn limit(&self) -> Duration {
        self.calm.limit
    }

    fn idle(&self) -> &'a Idle {
        &self.core.shared.idle
    }

    /// Looks at the others.
    pub(crate) fn look(&mut self) -> Look {
        let shared = &self.core.shared;
        let mut filled = false;
        for (other, remote) in shared.remotes.iter().enumerate() {
            let own = &remote.own;
            let now = own.slot.look().map(|task| (task, own.counters.polls.get()));
            let before = std::mem::replace(&mut self.seen[other], now);
            filled |= now.is_some();
            if let Some((task, _)) = now
                && now == before
                && let Some(task) = own.slot.steal(task)
            {
                return Look::Aged(task);
            }
        }
        let calm = &mut self.calm;
        calm.limit = if filled {
            SHORTEST
        } else {
            LONGEST.min(2 * calm.limit)
        };
        if filled || !shared.all_sleep() {
            calm.quiet = 0;
            return self.come_back();
        }
        calm.quiet += 1;
        if calm.quiet > PATIENCE {
            return Look::GiveUp;
        }
        if calm.quiet == PATIENCE {
            self.leaving = true;
            self.idle().leave_watch();
        }
        Look::Nothing
    }

    /// Somebody is awake after all.
    fn come_back(&mut self) -> Look {
        if self.leaving && !self.idle().try_watch(self.core.index) {
            return Look::GiveUp;
        }
        self.leaving = false;
        Look::Nothing
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        if !self.leaving {
            self.core.watching.set(true);
            self.idle().leave_watch();
        }
        self.core.calm.set(self.calm);
        self.core.seen.set(std::mem::take(&mut self.seen));
    }
}
