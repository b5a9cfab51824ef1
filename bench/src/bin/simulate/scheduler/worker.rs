//! A worker's steps: what it does with its queue, the injector, its victims and the poller.
use super::{Nanos, Outcome, Scheduler, Stage, Task};
use std::cmp::Reverse;

/// Number of tasks for which a ring has room.
const RING: usize = 256;
/// Ticks between two checks of the injector and the poller.
const INTERVAL: u32 = 61;
/// The most events that one call of the kernel's poller returns.
const EVENTS: usize = 64;
/// A worker that waits before a park checks for work once, and then up to `MORE_CHECKS` times more.
const MORE_CHECKS: u32 = 20;
/// The time between two of these checks.
const CHECK_INTERVAL: Nanos = 500.0;

impl Scheduler {
    pub(super) fn step(&mut self, worker: usize, now: Nanos) {
        match self.workers[worker].stage {
            Stage::Runs => {
                if let Some(task) = self.workers[worker].spawning.take() {
                    return self.go_on_spawning(worker, task, now);
                }
                self.workers[worker].ticks += 1;
                let is_due = self.workers[worker].ticks.is_multiple_of(INTERVAL);
                let mut now = now;
                if is_due {
                    now = self.poll_sockets(worker, now);
                    if self.take_share(worker, &mut now) {
                        return self.run_next(worker, now);
                    }
                }
                if !self.rings[worker].items.is_empty() || self.take_share(worker, &mut now) {
                    return self.run_next(worker, now);
                }
                if self.next_ready().is_some_and(|time| time <= now) {
                    now = self.poll_sockets(worker, now);
                    if !self.rings[worker].items.is_empty() {
                        return self.run_next(worker, now);
                    }
                }
                self.begin_search(worker, now);
            }
            Stage::Scans(distance) => self.scan(worker, distance, now),
            Stage::Waits(left) => self.wait(worker, left, now),
            Stage::Checks { is_notified } => self.end_check(worker, is_notified, now),
            Stage::Sleeps => {
                // This worker slept with the poller, and is back from the kernel.
                self.is_poller_taken &= !std::mem::take(&mut self.workers[worker].has_poller);
                self.wake_by_self(worker, now);
            }
        }
    }

    /// Takes the ring's oldest task, and runs it.
    fn run_next(&mut self, worker: usize, now: Nanos) {
        let now = self.rings[worker].head.write(worker, now, &self.costs);
        let Some(task) = self.rings[worker].items.pop_front() else {
            return self.next_step(worker, now, Stage::Runs);
        };
        let mut now = self.leave_search(worker, now) + self.costs.poll;
        if task.core != worker {
            now += self.costs.task_lines * self.costs.transfer;
        }
        now += task.work;
        self.workers[worker].busy += task.work;
        match task.outcome {
            Outcome::Ends => self.done += 1,
            Outcome::Spawns(..) => self.workers[worker].spawning = Some(task),
            Outcome::Socket(socket, pause) => {
                self.done += 1;
                self.sockets[socket].core = worker;
                self.push_ready(socket, now + pause);
            }
        }
        self.next_step(worker, now, Stage::Runs);
    }

    /// Spawns the next task of a task that spawns several.
    fn go_on_spawning(&mut self, worker: usize, task: Task, now: Nanos) {
        let Outcome::Spawns(left, least, most) = task.outcome else {
            return;
        };
        let work = self.random_between(least, most);
        let (core, outcome) = (worker, Outcome::Ends);
        let child = Task {
            work,
            core,
            outcome,
        };
        let mut now = self.push(worker, child, now + self.costs.spawn);
        now = self.notify(worker, now);
        if left > 1 {
            let outcome = Outcome::Spawns(left - 1, least, most);
            self.workers[worker].spawning = Some(Task { outcome, ..task });
        }
        self.next_step(worker, now, Stage::Runs);
    }

    /// Pushes a task into the worker's own ring. The older half of a full ring goes to the
    /// injector.
    fn push(&mut self, worker: usize, task: Task, now: Nanos) -> Nanos {
        let ring = &mut self.rings[worker];
        let mut now = now;
        if ring.items.len() == RING {
            now = ring.head.write(worker, now, &self.costs);
            let shard = worker % self.injector.len();
            let injector = &mut self.injector[shard];
            now = injector.tail.write(worker, now, &self.costs);
            injector.items.extend(ring.items.drain(..RING / 2));
        }
        ring.items.push_back(task);
        // The owner's push is a store of `tail`, so a read-modify-write's cost is taken off.
        ring.tail.write(worker, now, &self.costs) - self.costs.rmw
    }

    /// Moves a fair share of one shard of the injector into the ring. The shard is the worker's
    /// own, or the next one that has tasks.
    fn take_share(&mut self, worker: usize, now: &mut Nanos) -> bool {
        let shards = self.injector.len();
        for shard in (0..shards).map(|n| (worker + n) % shards) {
            let injector = &mut self.injector[shard];
            *now = injector.tail.read(worker, *now, &self.costs);
            if injector.items.is_empty() {
                continue;
            }
            let room = RING - self.rings[worker].items.len();
            let fair = injector.items.len() * shards / self.workers.len() + 1;
            let share = fair.min(room / 2 + 1).min(room).min(injector.items.len());
            *now = injector.head.write(worker, *now, &self.costs);
            *now = injector.tail.write(worker, *now, &self.costs);
            for mut task in injector.items.drain(..share) {
                if task.core != worker {
                    // The task holds the link to the next task. So the worker reads the task's line
                    // under the lock.
                    *now += self.costs.transfer;
                    task.core = worker;
                }
                self.rings[worker].items.push_back(task);
            }
            injector.head.keep_until(*now);
            *now = self.notify(worker, *now);
            return true;
        }
        false
    }

    /// Begins a search at a random victim, if not too many workers search.
    fn begin_search(&mut self, worker: usize, now: Nanos) {
        let mut now = now;
        if !self.workers[worker].searching {
            now = self.idle.read(worker, now, &self.costs);
            if 2 * self.searching >= self.workers.len() || self.workers.len() == 1 {
                return self.begin_wait(worker, now);
            }
            now = self.idle.write(worker, now, &self.costs);
            self.searching += 1;
            self.workers[worker].searching = true;
        }
        self.searches += 1;
        self.workers[worker].start = self.random(self.workers.len());
        self.next_step(worker, now, Stage::Scans(0));
    }

    /// Tries to steal from one victim.
    fn scan(&mut self, worker: usize, distance: usize, now: Nanos) {
        if distance >= self.workers.len() {
            let mut now = now;
            if self.take_share(worker, &mut now) {
                return self.run_next(worker, now);
            }
            return self.begin_wait(worker, now);
        }
        let victim = (self.workers[worker].start + distance) % self.workers.len();
        let ring = &mut self.rings[victim];
        let now = ring.head.read(worker, now, &self.costs);
        let now = ring.tail.read(worker, now, &self.costs);
        if victim == worker || ring.items.is_empty() {
            return self.next_step(worker, now, Stage::Scans(distance + 1));
        }
        let half = ring.items.len().div_ceil(2);
        let mut now = ring.head.write(worker, now, &self.costs);
        now += half.div_ceil(8) as f64 * self.costs.transfer;
        now = ring.head.write(worker, now, &self.costs);
        let stolen: Vec<_> = ring.items.drain(..half).collect();
        self.rings[worker].items.extend(stolen);
        self.run_next(worker, now);
    }

    fn leave_search(&mut self, worker: usize, now: Nanos) -> Nanos {
        if !std::mem::take(&mut self.workers[worker].searching) {
            return now;
        }
        self.searching -= 1;
        let mut now = self.idle.write(worker, now, &self.costs);
        if self.searching == 0 {
            now = self.check_all(worker, now);
            if self.has_work() {
                now = self.notify(worker, now);
            }
        }
        now
    }

    /// Reads the queues until one has a task.
    fn check_all(&mut self, worker: usize, now: Nanos) -> Nanos {
        let mut now = now;
        for queue in self.injector.iter_mut().chain(&mut self.rings) {
            now = queue.head.read(worker, now, &self.costs);
            now = queue.tail.read(worker, now, &self.costs);
            if !queue.items.is_empty() {
                break;
            }
        }
        now
    }

    /// Lets the only searcher wait before it parks, unless its last waits found nothing
    /// ([`Worker::parks_without_wait`](super::Worker::parks_without_wait)). Any other worker goes to
    /// sleep at once.
    fn begin_wait(&mut self, worker: usize, now: Nanos) {
        let state = &mut self.workers[worker];
        if state.searching && self.searching == 1 && state.parks_without_wait == 0 {
            return self.next_step(worker, now + CHECK_INTERVAL, Stage::Waits(MORE_CHECKS));
        }
        state.parks_without_wait = state.parks_without_wait.saturating_sub(1);
        self.begin_sleep(worker, now);
    }

    /// Checks for work during the wait before a park.
    fn wait(&mut self, worker: usize, left: u32, now: Nanos) {
        if self.has_work() {
            self.workers[worker].last_parks_without_wait = 0;
            self.next_step(worker, now, Stage::Runs);
        } else if left > 0 {
            self.next_step(worker, now + CHECK_INTERVAL, Stage::Waits(left - 1));
        } else {
            let state = &mut self.workers[worker];
            let parks = (2 * state.last_parks_without_wait).clamp(2, 1_024);
            state.last_parks_without_wait = parks;
            state.parks_without_wait = parks;
            self.begin_sleep(worker, now);
        }
    }

    fn begin_sleep(&mut self, worker: usize, now: Nanos) {
        // The worker sets its bit in the mask, then changes the counts, on the same cache line.
        let now = self.idle.write(worker, now, &self.costs) + self.costs.rmw;
        if std::mem::take(&mut self.workers[worker].searching) {
            self.searching -= 1;
        }
        self.sleepers.push(worker);
        self.workers[worker].stage = Stage::Checks { is_notified: false };
        let now = self.check_all(worker, now);
        self.push_event(now, worker, self.workers[worker].sleep_changes);
    }

    /// Parks, if the check of all queues has found nothing.
    fn end_check(&mut self, worker: usize, is_notified: bool, now: Nanos) {
        if is_notified {
            return self.next_step(worker, now, Stage::Runs);
        }
        let has_events = !self.is_poller_taken && self.next_ready().is_some_and(|time| time <= now);
        if self.has_work() || has_events {
            return self.wake_by_self(worker, now);
        }
        self.parks += 1;
        self.workers[worker].sleep_changes += 1;
        self.workers[worker].stage = Stage::Sleeps;
        if let Some(time) = self.next_ready()
            && !self.is_poller_taken
        {
            // This worker has the poller while it sleeps.
            let now = self.poller.write(worker, now, &self.costs);
            self.is_poller_taken = true;
            self.workers[worker].has_poller = true;
            self.push_event(
                time.max(now) + self.costs.wake,
                worker,
                self.workers[worker].sleep_changes,
            );
        }
    }

    fn wake_by_self(&mut self, worker: usize, now: Nanos) {
        let now = self.idle.write(worker, now, &self.costs) + self.costs.rmw;
        self.sleepers.retain(|sleeper| *sleeper != worker);
        self.searching += 1;
        self.workers[worker].searching = true;
        self.next_step(worker, now, Stage::Runs);
    }

    /// Takes the poller if it is free, and queues the tasks of the sockets that are ready.
    fn poll_sockets(&mut self, worker: usize, now: Nanos) -> Nanos {
        if self.sockets.is_empty() || self.is_poller_taken {
            return now;
        }
        let mut now = self.poller.write(worker, now, &self.costs) + self.costs.poller;
        let mut found = 0;
        while found < EVENTS && self.next_ready().is_some_and(|time| time <= now) {
            let Some(Reverse((_, socket, _))) = self.ready.pop() else {
                break;
            };
            now += self.costs.event;
            now = self.push(worker, self.sockets[socket], now);
            found += 1;
        }
        self.poller.keep_until(now);
        if found > 0 {
            now = self.notify(worker, now);
        }
        now
    }
}
