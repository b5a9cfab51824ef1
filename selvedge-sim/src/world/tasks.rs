//! The tasks of a run: their numbers, and how long each has been ready.
//!
//! A task is *ready* from its spawn or wake to its next poll. The front page of the executor's
//! `worker::next` bounds how long: a worker with tasks of its own looks at the injector at every
//! 61st tick, a tick has four polls at most, and a ring is first in, first out. So the task behind
//! R ready tasks comes to its poll after R looks, if a worker goes on. An exception has a bound in
//! time: a long task from outside is followed by up to 10 ms of the worker's own tasks.
use crate::net::HostId;
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasherDefault, Hasher},
};

/// The polls of a worker from one look at the injector to the next.
const POLLS_OF_A_LOOK: u64 = 61 * 4;

/// The time for which a worker may prefer its own tasks, in nanoseconds, twice.
const OWN_TIME: u64 = 20_000_000;

/// The ready tasks are looked at once in so many polls.
const EVERY: u64 = 1_024;

/// Hashes an address.
#[derive(Default)]
pub(super) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are addresses")
    }

    fn write_usize(&mut self, address: usize) {
        self.0 = (address as u64)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
    }
}

struct Task {
    number: u64,
    /// Whether the end of the run waits for this task to be freed.
    counts: bool,
    host: HostId,
    ready: Option<Ready>,
}

/// A task is ready since some poll of the run.
struct Ready {
    poll: u64,
    /// The time, and each thread's polls, when the task had been ready for long.
    suspected: Option<(u64, Vec<u64>)>,
}

#[derive(Default)]
pub(super) struct Tasks {
    by_address: HashMap<usize, Task, BuildHasherDefault<AddressHasher>>,
    last: u64,
    live: usize,
    /// The polls of each thread, by its id.
    polls: Vec<u64>,
    all_polls: u64,
    /// The tasks that are being polled, with the thread, and whether they were woken meanwhile.
    polled: Vec<(u64, usize, bool)>,
    ready: u64,
    most_ready: u64,
}

impl Tasks {
    fn task(&mut self, address: usize) -> &mut Task {
        match self.by_address.entry(address) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                self.last += 1;
                entry.insert(Task {
                    number: self.last,
                    counts: false,
                    host: 0,
                    ready: None,
                })
            }
        }
    }

    /// Returns the number of the task at this address.
    pub(super) fn number(&mut self, address: usize) -> u64 {
        self.task(address).number
    }

    /// Returns the number of tasks that were allocated and not freed.
    pub(super) fn live(&self) -> usize {
        self.live
    }

    /// Notes a task that a thread of this host has made.
    pub(super) fn allocate(&mut self, address: usize, host: HostId) {
        self.free(address);
        let task = self.task(address);
        task.counts = true;
        task.host = host;
        self.live += 1;
    }

    pub(super) fn free(&mut self, address: usize) {
        if let Some(task) = self.by_address.remove(&address) {
            self.live -= usize::from(task.counts);
            self.ready -= u64::from(task.ready.is_some());
        }
    }

    /// Forgets the tasks of a host, which are never freed.
    pub(super) fn forget_host(&mut self, host: HostId) {
        let of_host = self.by_address.iter().filter(|(_, task)| task.host == host);
        let lost: Vec<_> = of_host.map(|(address, _)| *address).collect();
        lost.into_iter().for_each(|address| self.free(address));
    }

    /// Notes a spawn or a wake. Returns the task's number.
    pub(super) fn wake(&mut self, address: usize) -> u64 {
        let mut polled = self.polled.iter_mut();
        if let Some((.., woken)) = polled.find(|(_, polled, _)| *polled == address) {
            *woken = true;
            return self.number(address);
        }
        let poll = self.all_polls;
        let task = self.task(address);
        let number = task.number;
        if task.ready.is_none() {
            let suspected = None;
            task.ready = Some(Ready { poll, suspected });
            self.ready += 1;
            self.most_ready = self.most_ready.max(self.ready);
        }
        number
    }

    /// Notes the begin of a poll. Returns the task's number.
    pub(super) fn begin_poll(&mut self, thread: u64, address: usize) -> u64 {
        let at = thread as usize;
        if self.polls.len() <= at {
            self.polls.resize(at + 1, 0);
        }
        self.polls[at] += 1;
        self.all_polls += 1;
        self.polled.push((thread, address, false));
        let task = self.task(address);
        let number = task.number;
        if task.ready.take().is_some() {
            self.ready -= 1;
        }
        number
    }

    /// Notes the end of this thread's last poll.
    pub(super) fn end_poll(&mut self, thread: u64, runs_again: bool) {
        let of_thread = |polled: &(u64, usize, bool)| polled.0 == thread;
        if let Some(at) = self.polled.iter().rposition(of_thread) {
            let (_, address, woken) = self.polled.remove(at);
            // The end of a task may have freed it.
            if (woken || runs_again) && self.by_address.contains_key(&address) {
                let _ = self.wake(address);
            }
        }
    }

    /// Returns whether it is time to look for a task that has been ready for too long.
    #[inline]
    pub(super) fn is_look_due(&self) -> bool {
        self.all_polls % EVERY == 0
    }

    /// Returns the number of a task that has been ready for too long, and the polls since it was
    /// suspected. `works` says whether the thread with this id is not passive.
    pub(super) fn find_starved(
        &mut self,
        now: u64,
        works: impl Fn(usize) -> bool,
    ) -> Option<(u64, u64)> {
        let bound = POLLS_OF_A_LOOK * (self.most_ready + 5);
        let mut starved = None;
        for task in self.by_address.values_mut() {
            let Some(ready) = &mut task.ready else {
                continue;
            };
            if self.all_polls - ready.poll < bound {
                continue;
            }
            let Some((since, before)) = &ready.suspected else {
                ready.suspected = Some((now, self.polls.clone()));
                continue;
            };
            let polls_of = |thread: usize| self.polls[thread] - before.get(thread).unwrap_or(&0);
            let workers = (0..self.polls.len()).filter(|at| self.polls[*at] > 0 && works(*at));
            let least = workers.map(polls_of).min();
            let polls = least.filter(|polls| now - since >= OWN_TIME && *polls >= bound);
            if let Some(polls) = polls {
                let found = (task.number, polls);
                starved = Some(starved.map_or(found, |other: (u64, u64)| other.min(found)));
            }
        }
        starved
    }
}

#[cfg(test)]
mod tests {
    use super::{OWN_TIME, POLLS_OF_A_LOOK, Tasks};

    /// Two threads poll two tasks in turn. Returns what is starved after so many rounds.
    fn poll(tasks: &mut Tasks, rounds: u64, works: [bool; 3]) -> Option<(u64, u64)> {
        let mut found = None;
        for _ in 0..rounds {
            for thread in 1..3 {
                tasks.begin_poll(thread, 100 + thread as usize);
                tasks.end_poll(thread, true);
            }
            let now = tasks.all_polls * OWN_TIME;
            found = found.or_else(|| tasks.find_starved(now, |thread| works[thread]));
        }
        found
    }

    #[test]
    fn task_that_no_worker_polls_is_starved() {
        let mut tasks = Tasks::default();
        tasks.allocate(7, 0);
        assert_eq!(poll(&mut tasks, 5_000, [true; 3]), None, "it is not ready");
        tasks.wake(7);
        let (number, polls) = poll(&mut tasks, 5_000, [true; 3]).unwrap();
        assert_eq!(number, tasks.number(7));
        assert!(polls >= POLLS_OF_A_LOOK * 5, "{polls}");
    }

    #[test]
    fn task_that_is_polled_or_freed_in_time_is_not_starved() {
        let mut tasks = Tasks::default();
        tasks.allocate(7, 0);
        for _ in 0..10 {
            tasks.wake(7);
            assert_eq!(poll(&mut tasks, 1_000, [true; 3]), None);
            tasks.begin_poll(1, 7);
            tasks.end_poll(1, false);
        }
        tasks.wake(7);
        tasks.free(7);
        assert_eq!(poll(&mut tasks, 5_000, [true; 3]), None);
        assert_eq!(tasks.live(), 0);
    }

    /// Thread 0 stands for a worker that has polled, and is in a long poll now.
    #[test]
    fn task_waits_for_a_worker_in_a_long_poll() {
        let mut tasks = Tasks::default();
        tasks.begin_poll(0, 9);
        tasks.wake(7);
        assert_eq!(poll(&mut tasks, 5_000, [true; 3]), None);
        assert!(poll(&mut tasks, 5_000, [false, true, true]).is_some());
    }

    #[test]
    fn task_that_is_woken_in_its_poll_is_ready_after_that() {
        let mut tasks = Tasks::default();
        tasks.begin_poll(0, 7);
        tasks.wake(7);
        assert_eq!(poll(&mut tasks, 5_000, [false, true, true]), None);
        tasks.end_poll(0, false);
        assert!(poll(&mut tasks, 5_000, [false, true, true]).is_some());
    }
}
