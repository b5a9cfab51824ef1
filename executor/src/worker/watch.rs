//! The watch over the LIFO slots.
//!
//! As a rule only a slot's own worker takes its task, so that a chain of tasks that wake each other
//! stays on one CPU. But a task in the slot waits for the poll in progress, which may be long. So a
//! thief takes a task from a slot only once the task is *aged*: two looks, some time apart, find
//! the same task in the slot and the same number of polls of the slot's worker. (The same task
//! alone does not suffice: the task may have run between the looks.)
//!
//! [`Watch`] says which sleeper looks, and when. The *places* in the rules of `Watch` are the
//! slots. A park may end early, without a reason or for an event; the watcher looks only once the
//! interval of its watch has passed since its last look. The worker's next sleep continues the
//! watch, unless the watch has ended. So the watch ends in time also if events end each sleep, and
//! a task in a slot waits for up to two intervals of 8 ms. A driven worker that finds nothing at
//! the look after a park returns to its caller.
//!
//! A task that an event wakes between two polls uses no slot: the worker takes it next
//! ([`WorkerQueue::between_items`](worker_queue::WorkerQueue::between_items)). So the events of a
//! lone socket start no thread and wake no watcher.
//!
//! The first push into a slot starts the thread of an unstarted worker, if no other worker sleeps.
//! The thread starts only to watch. It cannot start later: while the only thread runs a poll, no
//! other code of the runtime runs, so none could notice that the poll is long.
//!
//! If the watch fails, the slot's task is not lost: it waits for its worker's poll to end. The
//! watch fails if a slot is filled in the nanoseconds in which the watcher leaves for work that
//! keeps the watcher busy. Then the filler still sees a watcher, and the watcher's own check as it
//! leaves does not see the task yet. A fence at each push into a slot would prevent this failure,
//! and cost every push. The next worker that goes to sleep looks at the slots again.
use crate::{
    observe::trace,
    worker::{core::Core, scheduler::Task, shared::Shared},
};
use std::mem;
use worker_idle::Watch;

impl Core {
    /// Begins or continues a watch, if this worker is to watch. The worker has announced its sleep.
    pub(crate) fn watch(&self) -> Option<Watch<'_>> {
        let shared = &self.shared;
        let begin = || Watch::begin(&shared.idle, self.index, &self.idle_state.watch);
        let watch = shared.watches_slots().then(begin).flatten();
        if watch.is_none() && !shared.idle.is_watcher_wanted() {
            self.clear_seen();
        }
        watch
    }

    /// Takes a task from an aged slot. Returns the task, or else whether any slot is filled.
    pub(crate) fn look_at_slots(&self) -> Result<Task, bool> {
        let (mut filled, mut seen) = (false, self.idle_state.seen.take());
        seen.resize(self.shared.remotes.len(), None);
        let mut slots = self.shared.remotes.iter().zip(&mut seen).enumerate();
        let aged = slots.find_map(|(from, (remote, seen))| {
            let now = remote.stealer.look();
            let now = now.map(|task| (task, remote.counters.polls.get()));
            let before = mem::replace(seen, now);
            filled |= now.is_some();
            let task = remote
                .stealer
                .steal_slot(now.filter(|_| now == before)?.0)?;
            trace::steal_slot(self, from, &task);
            Some(task)
        });
        self.idle_state.seen.set(seen);
        aged.ok_or(filled)
    }

    /// Makes the next watch a new one, not a continuation of this one.
    pub(crate) fn forget_watch(&self) {
        Watch::forget(&self.shared.idle, &self.idle_state.watch);
        self.clear_seen();
    }

    /// Clears what the looks of a watch that has ended have seen.
    pub(crate) fn clear_seen(&self) {
        let mut seen = self.idle_state.seen.take();
        seen.clear();
        self.idle_state.seen.set(seen);
    }
}

impl Shared {
    /// Requests a watcher after a worker has filled its empty slot. This costs a load if there is a
    /// watcher, and three loads if no sleeping worker could become one. The request may start a
    /// thread: see [`watch`](crate::worker::watch).
    pub(crate) fn call_watcher(&self) {
        if !self.idle.is_watched() && self.watches_slots() {
            self.idle.want_watcher();
            if self.idle.counts().1 > 0 {
                self.notify();
            }
        }
    }
}
