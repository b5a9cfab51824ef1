//! A worker: one thread's loop over its queues.
//!
//! Work is found in this order: every 61st tick, and after a poll that an exhausted budget ended, a fair share of the injector; the LIFO slot; the ring; a fair share of
//! the injector; half of another's ring, from a random start; the injector again. Then sleep,
//! announced and looked over once more as [`idle`](crate::idle) asks.
//!
//! The slot's task runs next after the one that filled it, in the same budget, at most three times
//! in a row; then it goes behind the others. The slot is private: a task in it waits, at worst,
//! for the poll in progress.
use crate::{
    block_on::unpark_waker,
    context::{self, Local},
    idle::Woken,
    park::{Park, ThreadPark},
    shared::{Scheduler, Shared, Task},
};
use coop_budget::{Budget, Turns};
use queue_spmc::ring::{self, Steal, StealLimit};
use sync_shim::{hint, sync::Arc};
use task_header::{Owned, Ran};

/// Ticks between looks at the injector while there is other work. Prime, so that it falls in with
/// no pattern of the tasks'.
const GLOBAL_INTERVAL: u32 = 61;

/// Polls of the slot in a row.
const LIFO_CAP: u32 = 3;

/// The whole life of a worker's thread.
pub(crate) fn run(
    shared: Arc<Shared>,
    index: usize,
    ring: ring::Worker<Task>,
    mut park: ThreadPark,
    seed: u64,
) {
    let owned = Owned::new(unpark_waker(park.unparker()));
    let budget = shared.budget;
    let local = Local::new(shared, index, ring);
    // Odd multiples of an odd number: never 0, and different for each worker.
    let random = (seed | 1).wrapping_mul(2 * index as u64 + 1);
    let work = |turns: &Turns<'_>| {
        let mut worker = Worker {
            local: &local,
            owned,
            park: &mut park,
            turns,
            budget,
            tick: 0,
            searching: false,
            random,
        };
        while !local.shared.is_closing() {
            match worker.next() {
                Some(task) => worker.run(task),
                None => worker.sleep(),
            }
        }
        worker.end();
    };
    context::as_worker(&local, || coop_budget::with_turns(&local, work));
    local.shared.foreign.wait();
}

/// What the loop has to itself. The queues, which a running task reaches too, are in [`Local`].
struct Worker<'a> {
    local: &'a Local,
    owned: Owned<Scheduler>,
    park: &'a mut ThreadPark,
    turns: &'a Turns<'a>,
    budget: Budget,
    tick: u32,
    searching: bool,
    random: u64,
}

impl Worker<'_> {
    #[inline]
    fn next(&mut self) -> Option<Task> {
        self.tick = self.tick.wrapping_add(1);
        if self.tick.is_multiple_of(GLOBAL_INTERVAL) {
            self.owned.drain();
            if let Some(task) = self.take_share() {
                return Some(task);
            }
        }
        if self.local.was_forced()
            && let Some(task) = self.take_share()
        {
            return Some(task);
        }
        if let Some(task) = self.local.take_slot() {
            self.local.counters().lifo_hits.add(1);
            return Some(task);
        }
        self.local
            .pop()
            .or_else(|| self.take_share())
            .or_else(|| self.search())
    }

    /// A fair share of the injector: one to run, the others to the ring.
    fn take_share(&mut self) -> Option<Task> {
        let shared = &self.local.shared;
        let waiting = shared.injector.len();
        if waiting == 0 {
            return None;
        }
        let share = waiting / shared.remotes.len() + 1;
        let room = self.local.with_ring(|ring| ring.spare_capacity());
        let mut batch = shared.injector.pop_n(share.min(room / 2 + 1));
        let first = batch.pop_front()?;
        self.local.counters().injected.add(1 + batch.len() as u64);
        while let Some(task) = batch.pop_front() {
            self.local.push_back(task);
        }
        // What is in the ring, also from before, waits for this one now.
        if !self.searching && !self.local.is_empty() {
            shared.notify();
        }
        Some(first)
    }

    /// Looks through the other workers, if few enough do.
    fn search(&mut self) -> Option<Task> {
        let shared = &self.local.shared;
        let workers = shared.remotes.len();
        if workers == 1 {
            return None;
        }
        if !self.searching && !shared.idle.try_search() {
            return None;
        }
        self.searching = true;
        self.local.counters().searches.add(1);
        let start = self.next_random() as usize % workers;
        let others = (0..workers)
            .map(|i| (start + i) % workers)
            .filter(|&i| i != self.local.index);
        for other in others {
            // A thief in mid-copy is gone after one copy; it may be preempted, so not for ever.
            for _ in 0..4 {
                let stolen = self.local.with_ring(|ring| {
                    shared.remotes[other]
                        .stealer
                        .steal_into_and_pop(ring, StealLimit::Half)
                });
                match stolen {
                    Steal::Success { first, moved } => {
                        self.local.counters().steals.add(1);
                        self.local.counters().stolen.add(moved as u64);
                        return Some(first);
                    }
                    Steal::Retry => hint::spin_loop(),
                    Steal::Empty => break,
                }
            }
        }
        self.take_share()
    }

    fn next_random(&mut self) -> u64 {
        // Marsaglia's xorshift64.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    /// The searcher has found work: the last one to do so wakes another if there is more.
    #[inline]
    fn leave_search(&mut self) {
        if std::mem::replace(&mut self.searching, false)
            && self.local.shared.idle.stop_searching()
            && self.local.shared.has_work()
        {
            self.local.shared.notify();
        }
    }

    /// Runs a task, and what it puts into the slot.
    #[inline]
    fn run(&mut self, task: Task) {
        self.leave_search();
        let turns = self.turns;
        turns.run(self.budget, || {
            self.poll(task);
            for _ in 0..LIFO_CAP {
                if !coop_budget::has_remaining() {
                    break;
                }
                let Some(next) = self.local.take_slot() else {
                    return;
                };
                self.local.counters().lifo_hits.add(1);
                self.poll(next);
            }
            if let Some(last) = self.local.take_slot() {
                self.local.requeue(last);
            }
        });
    }

    #[inline]
    fn poll(&mut self, task: Task) {
        self.local.counters().polls.add(1);
        match self.owned.run(task) {
            Ran::Complete | Ran::Pending => {}
            Ran::Notified(task) => self.local.requeue(task),
        }
    }

    /// Sleeps until notified, unless there is work after all. Either way it goes on as a searcher.
    fn sleep(&mut self) {
        self.owned.drain();
        let shared = &self.local.shared;
        let me = self.local.index;
        shared.idle.sleep(me, self.searching);
        self.searching = true;
        if shared.has_work() || shared.is_closing() {
            self.wake_self();
            return;
        }
        self.local.counters().parks.add(1);
        loop {
            self.park.park();
            if shared.idle.was_notified(me) {
                return;
            }
            if shared.is_closing() || self.owned.has_releases() || shared.has_work() {
                self.wake_self();
                return;
            }
        }
    }

    /// Takes itself out of the sleepers, as a searcher.
    fn wake_self(&mut self) {
        match self.local.shared.idle.wake_self(self.local.index) {
            // A token may be left in the parker: it costs a turn of the next sleep's loop.
            Woken::BySelf | Woken::ByNotifier => {}
        }
    }

    /// Drops the futures of this worker's tasks and of all that are queued, until its own list is empty.
    fn end(&mut self) {
        self.owned.close();
        loop {
            self.leave_search();
            self.owned.cancel_all();
            while let Some(task) = self.local.take_slot().or_else(|| self.local.pop()) {
                self.owned.cancel(task);
            }
            while let Some(task) = self.local.shared.injector.pop() {
                self.owned.cancel(task);
            }
            self.owned.drain();
            if self.owned.is_empty()
                && self.local.shared.injector.is_empty()
                && self.local.is_empty()
            {
                return;
            }
            self.sleep_until_release();
        }
    }

    /// Waits for a task of this worker that is in another's hands: it comes over the injector or
    /// the release stack.
    fn sleep_until_release(&mut self) {
        let shared = &self.local.shared;
        let me = self.local.index;
        shared.idle.sleep(me, self.searching);
        self.searching = true;
        if shared.injector.is_empty() && self.local.is_empty() && !self.owned.has_releases() {
            self.park.park();
            if shared.idle.was_notified(me) {
                return;
            }
        }
        self.wake_self();
    }
}
