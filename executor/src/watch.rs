//! What the watch over the LIFO slots looks for.
//!
//! A slot is its worker's alone, so that a chain of tasks that wake each other stays on one processor. But a task in it waits for the poll
//! in progress, and that may take long. So as the last resort a slot is robbed once it is *aged*: the same task in it, and the
//! same number of polls, at two looks that are a while apart. (The task alone would not tell: it may have run in between.)
//!
//! Who looks and when is [`Watch`]'s, with its rules; the places that it speaks of are the slots. A worker that others drive returns to them at each
//! look, and its next sleep takes the watch up where it was, with what it has seen, unless something has ended the last one.
//!
//! The first slot that is filled starts the thread of a worker which has none, if no other sleeps,
//! only to watch. It could start no later: while the one thread there is runs a poll, nothing else
//! of the runtime runs, and nobody could tell that the poll is long.
//!
//! No task is lost if all this fails: it waits for its worker's poll. It may fail where a slot is filled in the nanoseconds in which the watcher leaves for
//! work that keeps it: the filler still sees a watcher, and that one, which looks as it leaves, not yet what is in the slot. Without a fence at each push into a
//! slot, which would cost every one of them, the next look is that of whoever goes to sleep.
use crate::{core::Core, shared::Task};
use std::mem;
use worker_idle::Watch;

/// A slot at some time: what was in it, and the polls of its worker.
pub(crate) type Seen = Option<(worker_queue::Seen, u64)>;

impl Core {
    /// The sleep was announced.
    pub(crate) fn watch(&self) -> Option<Watch<'_>> {
        let shared = &self.shared;
        let watches = shared.watches_slots();
        watches.then(|| Watch::begin(&shared.idle, self.index, &self.calm))?
    }

    /// A task that has waited in a slot for too long; else, whether there is one in any.
    pub(crate) fn look_at_slots(&self) -> Result<Task, bool> {
        let (mut filled, mut seen) = (false, self.seen.take());
        seen.resize(self.shared.remotes.len(), None);
        let mut slots = self.shared.remotes.iter().zip(&mut seen);
        let aged = slots.find_map(|(remote, seen)| {
            let now = remote.stealer.look();
            let now = now.map(|task| (task, remote.counters.polls.get()));
            let before = mem::replace(seen, now);
            filled |= now.is_some();
            remote.stealer.rob(now.filter(|_| now == before)?.0)
        });
        self.seen.set(seen);
        aged.ok_or(filled)
    }

    /// The next watch is a new one, not this one's continuation.
    pub(crate) fn forget_watch(&self) {
        Watch::forget(&self.shared.idle, &self.calm);
        let mut seen = self.seen.take();
        seen.clear();
        self.seen.set(seen);
    }
}
