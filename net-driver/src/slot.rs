//! A slot: the readiness of one registered source, and the tasks that wait for it.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `readiness` | events and the shutdown, under the lock; clears of operations, without it |
//! | `waiters.generation` | the registration and its release, under the lock; odd while registered |
//! | `waiters.reader`, `.writer` | the one task that polls the read, or the write, half |
//! | `waiters.shared` | any number of tasks that wait through a shared reference |
//!
//! # Rules
//!
//! 1. A waiter stores its waker under the lock and then loads the readiness once more, still under
//!    the lock. An event sets the readiness and takes the wakers in one hold of the lock.
//! 2. An event names the generation for which its source was registered. If the slot has another
//!    generation by now, the event is stale and does nothing.
//! 3. An entry of `shared` belongs to the owner of its [`WaiterKey`], which removes the entry. An
//!    event only marks the entry as notified.
//! 4. No thread clones, drops or wakes a waker under the lock: wakers are user code, which may use
//!    this slot again.
//!
//! # Why no waiter is forgotten
//!
//! Rule 1 speaks of two holds of the lock: the waiter's and the event's. If the waiter's hold comes
//! first, the event takes the waiter's waker. If the event's hold comes first, the waiter loads the
//! readiness that the event set, unless an operation has cleared that readiness since. In that case
//! the operation found after the event that nothing was left (rules 2 and 4 of `readiness.rs`), and
//! another event follows.
use crate::{
    Interest, Ready,
    list::{self, List},
    readiness::{Readiness, Snapshot},
    ready::{InterestBits, ReadyBits, SHUTDOWN},
};
use std::{collections::VecDeque, mem, task::Waker};
use sync_shim::sync::Mutex;

/// One place of the slab.
#[derive(Debug)]
pub(crate) struct Slot {
    readiness: Readiness,
    waiters: Mutex<Waiters>,
}

#[derive(Debug, Default)]
struct Waiters {
    generation: u32,
    reader: Option<Waker>,
    writer: Option<Waker>,
    shared: List<Waiter>,
}

/// A task that waits through a shared reference.
#[derive(Debug)]
enum Waiter {
    Waiting(Interest, Waker),
    Notified,
}

/// The key of an entry in the list of waiters. The owner of the key has to remove the entry.
#[derive(Debug)]
#[must_use = "the entry stays until it is removed"]
pub(crate) struct WaiterKey(usize);

/// A half of the source. The slot has one cell for each half, with the waker of the task that polls
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Read,
    Write,
}

impl Direction {
    pub(crate) fn interest(self) -> Interest {
        match self {
            Self::Read => Interest::READABLE,
            Self::Write => Interest::WRITABLE,
        }
    }
}

impl Slot {
    pub(crate) fn new() -> Self {
        Self {
            readiness: Readiness::new(Ready::EMPTY),
            waiters: Mutex::new(Waiters::default()),
        }
    }

    /// Begins a registration. Returns its generation.
    pub(crate) fn occupy(&self, ready: Ready) -> u32 {
        let mut waiters = self.waiters.lock();
        waiters.generation = waiters.generation.wrapping_add(1);
        debug_assert!(waiters.is_registered(), "a slot is occupied once");
        self.readiness.reset(ready);
        waiters.generation
    }

    /// Ends a registration: later events for it are stale. Returns what is left of its waiters, for
    /// the caller to drop outside of every lock (rule 4).
    #[must_use = "drop it outside of every lock"]
    pub(crate) fn release(&self) -> impl Sized + use<> {
        let mut waiters = self.waiters.lock();
        debug_assert!(waiters.is_registered(), "a slot is released once");
        let generation = waiters.generation.wrapping_add(1);
        let left = mem::take(&mut *waiters);
        waiters.generation = generation;
        left
    }

    pub(crate) fn load(&self) -> Snapshot {
        self.readiness.load()
    }

    /// Clears readiness: see [`Readiness::clear`].
    pub(crate) fn clear(&self, seen: Snapshot, interest: Interest) {
        self.readiness.clear(seen, interest);
    }

    /// Clears readiness: see [`Readiness::clear_for_user`].
    pub(crate) fn clear_for_user(&self, seen: Snapshot, interest: Interest) {
        self.readiness.clear_for_user(seen, interest);
    }

    /// Clears readiness: see [`Readiness::clear_after_short`].
    pub(crate) fn clear_after_short(&self, seen: Snapshot, interest: Interest) {
        self.readiness.clear_after_short(seen, interest);
    }

    /// Applies an event, and moves the wakers of the tasks that waited for it to `out`. A stale
    /// event (rule 2) does nothing.
    pub(crate) fn dispatch(&self, generation: u32, ready: Ready, out: &mut VecDeque<Waker>) {
        let mut waiters = self.waiters.lock();
        if waiters.generation == generation {
            self.readiness.set(ready);
            waiters.take(ready, out);
        }
    }

    /// Ends all waits forever, if the slot is registered.
    pub(crate) fn shut_down(&self, out: &mut VecDeque<Waker>) {
        let mut waiters = self.waiters.lock();
        if waiters.is_registered() {
            self.readiness.set(SHUTDOWN);
            waiters.take(Ready::ALL, out);
        }
    }

    /// Stores `waker` as the one waiter of `direction`, unless the slot is ready already. Returns
    /// the readiness (rule 1).
    pub(crate) fn wait_in_cell(&self, direction: Direction, waker: &Waker) -> Snapshot {
        let mut waiters = self.waiters.lock();
        let seen = self.readiness.load();
        let cell = waiters.cell(direction);
        if seen.ends_wait(direction.interest()) || is_same(cell, waker) {
            return seen;
        }
        drop(waiters);
        let waker = waker.clone();
        let mut waiters = self.waiters.lock();
        let old = waiters.cell(direction).replace(waker);
        let seen = self.readiness.load();
        drop(waiters);
        drop(old);
        seen
    }

    /// Stores `waker` in the list, in the entry of `key` or in a new one, unless the slot is ready
    /// already. Returns the readiness (rule 1).
    pub(crate) fn wait_in_list(
        &self,
        interest: Interest,
        key: &mut Option<WaiterKey>,
        waker: &Waker,
    ) -> Snapshot {
        let waiters = self.waiters.lock();
        let seen = self.readiness.load();
        let same = key
            .as_ref()
            .is_some_and(|key| waiters.is_waiting(key, waker));
        if seen.ends_wait(interest) || same {
            return seen;
        }
        drop(waiters);
        let waiter = Waiter::Waiting(interest, waker.clone());
        let mut waiters = self.waiters.lock();
        let old = match key {
            Some(key) => Some(mem::replace(&mut waiters.shared[key.0], waiter)),
            None => {
                *key = Some(WaiterKey(waiters.shared.insert(waiter)));
                None
            }
        };
        let seen = self.readiness.load();
        drop(waiters);
        drop(old);
        seen
    }

    /// Removes an entry of the list.
    pub(crate) fn stop_waiting(&self, key: WaiterKey) {
        let mut waiters = self.waiters.lock();
        let old = list::remove(&mut waiters.shared, key.0);
        drop(waiters);
        drop(old);
    }
}

impl Waiters {
    fn is_registered(&self) -> bool {
        self.generation % 2 == 1
    }

    fn cell(&mut self, direction: Direction) -> &mut Option<Waker> {
        match direction {
            Direction::Read => &mut self.reader,
            Direction::Write => &mut self.writer,
        }
    }

    fn take(&mut self, ready: Ready, out: &mut VecDeque<Waker>) {
        for direction in [Direction::Read, Direction::Write] {
            if ready.intersects(direction.interest().wanted()) {
                out.extend(self.cell(direction).take());
            }
        }
        for (_, waiter) in &mut self.shared {
            if matches!(waiter, Waiter::Waiting(interest, _) if ready.intersects(interest.wanted()))
            {
                if let Waiter::Waiting(_, waker) = mem::replace(waiter, Waiter::Notified) {
                    out.push_back(waker);
                }
            }
        }
    }

    fn is_waiting(&self, key: &WaiterKey, waker: &Waker) -> bool {
        let waiter = &self.shared[key.0];
        matches!(waiter, Waiter::Waiting(_, stored) if stored.will_wake(waker))
    }
}

fn is_same(cell: &Option<Waker>, waker: &Waker) -> bool {
    cell.as_ref().is_some_and(|stored| stored.will_wake(waker))
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
