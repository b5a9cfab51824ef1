//! The simulated scheduler: what its threads do to the lines that they share.
//!
//! Each step of a thread is one event. The protocols are those of the runtime, in its own words:
//! `executor/src/steal.rs`, `worker-idle/src/idle.rs`, `queue-global/src/injector.rs` and
//! `net-driver/src/poller.rs`. Left out are the LIFO slot, nudges and the system's scheduler: each
//! thread has a core.
use crate::machine::{Costs, Line, Nanos};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

/// Room of a ring, and the most tasks of one share or steal.
const RING: usize = 256;
/// Ticks between two looks at the injector and the poller.
const INTERVAL: u32 = 61;
/// Events of one call of the kernel's poller.
const EVENTS: usize = 64;
/// Looks of a wait before a park, and the time between two of them.
const LOOKS: u32 = 20;
const LOOK: Nanos = 500.0;

#[derive(Clone, Copy)]
pub(crate) enum Then {
    Ends,
    /// Spawns this number of tasks with so much work each, up to the second figure.
    Spawns(u32, Nanos, Nanos),
    /// The socket with this index. It is ready again after this time.
    Socket(usize, Nanos),
}

#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) work: Nanos,
    /// The core that has the task's lines.
    pub(crate) core: usize,
    pub(crate) then: Then,
}

/// An outside thread, which spawns a task each `every` nanoseconds, or as fast as it can.
pub(crate) struct Producer {
    pub(crate) left: usize,
    pub(crate) every: Nanos,
    pub(crate) work: Nanos,
    pub(crate) due: Nanos,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
    #[default]
    Runs,
    /// Looks at the victim with this distance next.
    Scans(usize),
    /// Waits before a park, for so many more looks.
    Waits(u32),
    /// Has announced its sleep, and checks all queues. True once it is notified.
    Checks(bool),
    Sleeps,
}

#[derive(Default)]
struct Worker {
    stage: Stage,
    ticks: u32,
    searching: bool,
    /// Where its scan begins.
    start: usize,
    has_poller: bool,
    /// A task that is spawning.
    spawning: Option<Task>,
    busy: Nanos,
    /// Parks until the next wait, and the pause after the next lost one.
    parks: u32,
    pause: u32,
    /// Tells the event that ends this sleep from older ones.
    sleep: u64,
}

/// A worker's ring; or a part of the injector, whose `head` is the lock's line, and whose `tail` is
/// the pushers'.
struct Queue {
    items: VecDeque<Task>,
    head: Line,
    tail: Line,
}

pub(crate) struct Scheduler {
    costs: Costs,
    pub(crate) now: Nanos,
    events: BinaryHeap<Reverse<(u64, u64, usize, u64)>>,
    sequence: u64,
    random: u64,
    workers: Vec<Worker>,
    producers: Vec<Producer>,
    rings: Vec<Queue>,
    /// One, unless the injector is simulated as sharded.
    injector: Vec<Queue>,
    /// Counts the tasks that outside threads spawned, for each shard.
    spawned: Vec<Line>,
    pub(crate) idle: Line,
    searching: usize,
    sleepers: Vec<usize>,
    pub(crate) poller: Line,
    polled: bool,
    /// Sockets by the time at which they are ready, in picoseconds.
    ready: BinaryHeap<Reverse<(u64, usize, u64)>>,
    sockets: Vec<Task>,
    pub(crate) done: u64,
    pub(crate) searches: u64,
    pub(crate) parks: u64,
}

impl Scheduler {
    pub(crate) fn new(
        costs: Costs,
        (workers, shards): (usize, usize),
        producers: Vec<Producer>,
    ) -> Self {
        let cores = workers + producers.len();
        let line = || Line::new(cores);
        let queue = |_| Queue {
            items: VecDeque::new(),
            head: line(),
            tail: line(),
        };
        let mut this = Self {
            costs,
            now: 0.0,
            events: BinaryHeap::new(),
            sequence: 0,
            random: 0x9E37_79B9_7F4A_7C15,
            workers: (0..workers).map(|_| Worker::default()).collect(),
            rings: (0..workers).map(queue).collect(),
            injector: (0..shards).map(queue).collect(),
            spawned: vec![line(); shards],
            idle: line(),
            searching: 0,
            sleepers: (0..workers).rev().collect(),
            poller: line(),
            polled: false,
            ready: BinaryHeap::new(),
            sockets: Vec::new(),
            done: 0,
            searches: 0,
            parks: 0,
            producers,
        };
        for worker in &mut this.workers {
            worker.stage = Stage::Sleeps;
        }
        for producer in 0..this.producers.len() {
            this.at(this.producers[producer].due, workers + producer, 0);
        }
        this
    }

    /// Spawns a task before the time begins.
    pub(crate) fn spawn(&mut self, task: Task) {
        self.injector[0].items.push_back(task);
        self.notify(0, 0.0);
    }

    /// Adds a connection whose first request is there at this time.
    pub(crate) fn connect(&mut self, work: Nanos, pause: Nanos, at: Nanos) {
        let socket = self.sockets.len();
        self.sockets.push(Task {
            work,
            core: 0,
            then: Then::Socket(socket, pause),
        });
        self.is_ready(socket, at);
        if socket == 0 {
            self.notify(0, 0.0);
        }
    }

    /// Runs until so many tasks have ended, or nothing happens any more. Returns the time.
    pub(crate) fn run(&mut self, tasks: u64) -> Nanos {
        while self.done < tasks {
            let Some(Reverse((at, _, core, sleep))) = self.events.pop() else {
                break;
            };
            self.now = at as f64 / 1_000.0;
            if core >= self.workers.len() {
                self.produce(core, self.now);
            } else if sleep == self.workers[core].sleep {
                self.step(core, self.now);
            }
        }
        self.now
    }

    /// The part of all workers' time that the tasks' own work took.
    pub(crate) fn efficiency(&self) -> f64 {
        let busy: f64 = self.workers.iter().map(|worker| worker.busy).sum();
        self.part(busy) / 100.0
    }

    /// Returns what part of all workers' time this is, in per cent.
    pub(crate) fn part(&self, time: Nanos) -> f64 {
        100.0 * time / (self.now * self.workers.len() as f64)
    }

    /// The time in which cores waited for each other at the injector's lines.
    pub(crate) fn waited_at_injector(&self) -> Nanos {
        let each = |queue: &Queue| queue.head.waited + queue.tail.waited;
        self.injector.iter().map(each).sum()
    }

    /// The number of writes of words that all workers share, without those of locks.
    #[cfg(test)]
    pub(crate) fn shared_writes(&self) -> u64 {
        let stacks = self.injector.iter().map(|shard| shard.tail.writes);
        self.idle.writes + stacks.sum::<u64>()
    }

    fn at(&mut self, time: Nanos, core: usize, sleep: u64) {
        self.sequence += 1;
        let time = (time * 1_000.0) as u64;
        self.events
            .push(Reverse((time, self.sequence, core, sleep)));
    }

    fn next_step(&mut self, worker: usize, time: Nanos, stage: Stage) {
        self.workers[worker].stage = stage;
        self.at(time, worker, self.workers[worker].sleep);
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    fn between(&mut self, least: Nanos, most: Nanos) -> Nanos {
        least + (most - least) * self.random(1 << 16) as f64 / 65_536.0
    }

    fn is_ready(&mut self, socket: usize, at: Nanos) {
        self.sequence += 1;
        self.ready
            .push(Reverse(((at * 1_000.0) as u64, socket, self.sequence)));
    }

    fn has_work(&self) -> bool {
        let mut queues = self.rings.iter().chain(&self.injector);
        queues.any(|queue| !queue.items.is_empty())
    }

    fn next_event(&self) -> Option<Nanos> {
        self.ready.peek().map(|next| next.0.0 as f64 / 1_000.0)
    }

    /// A push's look for sleepers. Returns when it is done.
    fn notify(&mut self, core: usize, now: Nanos) -> Nanos {
        let now = self.idle.read(core, now + self.costs.rmw, &self.costs);
        if self.searching > 0 || self.sleepers.is_empty() {
            return now;
        }
        // The counts, then the mask on the same line.
        let now = self.idle.write(core, now, &self.costs) + self.costs.rmw;
        let Some(sleeper) = self.sleepers.pop() else {
            return now;
        };
        self.searching += 1;
        self.workers[sleeper].searching = true;
        if let Stage::Checks(_) = self.workers[sleeper].stage {
            self.workers[sleeper].stage = Stage::Checks(true);
            return now;
        }
        self.workers[sleeper].sleep += 1;
        self.polled &= !std::mem::take(&mut self.workers[sleeper].has_poller);
        self.next_step(sleeper, now + self.costs.wake, Stage::Runs);
        now + self.costs.wake_call
    }

    fn produce(&mut self, core: usize, now: Nanos) {
        let producer = core - self.workers.len();
        let Producer {
            left, every, work, ..
        } = self.producers[producer];
        if left == 0 {
            return;
        }
        let shard = producer % self.injector.len();
        let injector = &mut self.injector[shard];
        let now = injector
            .tail
            .write(core, now + self.costs.spawn, &self.costs);
        let then = Then::Ends;
        injector.items.push_back(Task { work, core, then });
        let now = self.spawned[shard].write(core, now, &self.costs);
        let now = self.notify(core, now);
        self.producers[producer].left -= 1;
        self.producers[producer].due += every;
        self.at(now.max(self.producers[producer].due), core, 0);
    }

    fn step(&mut self, worker: usize, now: Nanos) {
        match self.workers[worker].stage {
            Stage::Runs => {
                if let Some(task) = self.workers[worker].spawning.take() {
                    return self.go_on_spawning(worker, task, now);
                }
                self.workers[worker].ticks += 1;
                let is_due = self.workers[worker].ticks % INTERVAL == 0;
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
                if self.next_event().is_some_and(|at| at <= now) {
                    now = self.poll_sockets(worker, now);
                    if !self.rings[worker].items.is_empty() {
                        return self.run_next(worker, now);
                    }
                }
                self.begin_search(worker, now);
            }
            Stage::Scans(distance) => self.scan(worker, distance, now),
            Stage::Waits(left) => self.wait(worker, left, now),
            Stage::Checks(notified) => self.end_check(worker, notified, now),
            Stage::Sleeps => {
                // It has the poller, and is back from the kernel.
                self.polled &= !std::mem::take(&mut self.workers[worker].has_poller);
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
        match task.then {
            Then::Ends => self.done += 1,
            Then::Spawns(..) => self.workers[worker].spawning = Some(task),
            Then::Socket(socket, pause) => {
                self.done += 1;
                self.sockets[socket].core = worker;
                self.is_ready(socket, now + pause);
            }
        }
        self.next_step(worker, now, Stage::Runs);
    }

    fn go_on_spawning(&mut self, worker: usize, task: Task, now: Nanos) {
        let Then::Spawns(left, least, most) = task.then else {
            return;
        };
        let work = self.between(least, most);
        let (core, then) = (worker, Then::Ends);
        let child = Task { work, core, then };
        let mut now = self.push(worker, child, now + self.costs.spawn);
        now = self.notify(worker, now);
        if left > 1 {
            let then = Then::Spawns(left - 1, least, most);
            self.workers[worker].spawning = Some(Task { then, ..task });
        }
        self.next_step(worker, now, Stage::Runs);
    }

    /// Pushes a task into the worker's own ring. Half of a full ring goes to the injector.
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
        // A store, so no read-modify-write.
        ring.tail.write(worker, now, &self.costs) - self.costs.rmw
    }

    /// Moves a fair share of the injector into the ring: of the worker's own shard, or of the next
    /// that has tasks.
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
                    // To find the next task it reads this one, under the lock.
                    *now += self.costs.transfer;
                    task.core = worker;
                }
                self.rings[worker].items.push_back(task);
            }
            injector.head.hold(*now);
            *now = self.notify(worker, *now);
            return true;
        }
        false
    }

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
        let n = ring.items.len().div_ceil(2);
        let mut now = ring.head.write(worker, now, &self.costs);
        now += n.div_ceil(8) as f64 * self.costs.transfer;
        now = ring.head.write(worker, now, &self.costs);
        let stolen: Vec<_> = ring.items.drain(..n).collect();
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

    /// A searcher that is alone waits before it parks, if its last waits have paid.
    fn begin_wait(&mut self, worker: usize, now: Nanos) {
        let this = &mut self.workers[worker];
        if this.searching && self.searching == 1 && this.parks == 0 {
            return self.next_step(worker, now + LOOK, Stage::Waits(LOOKS));
        }
        this.parks = this.parks.saturating_sub(1);
        self.begin_sleep(worker, now);
    }

    fn wait(&mut self, worker: usize, left: u32, now: Nanos) {
        if self.has_work() {
            self.workers[worker].pause = 0;
            self.next_step(worker, now, Stage::Runs);
        } else if left > 0 {
            self.next_step(worker, now + LOOK, Stage::Waits(left - 1));
        } else {
            let this = &mut self.workers[worker];
            this.pause = (2 * this.pause).clamp(2, 1_024);
            this.parks = this.pause;
            self.begin_sleep(worker, now);
        }
    }

    fn begin_sleep(&mut self, worker: usize, now: Nanos) {
        // The mask, then the counts on the same line.
        let now = self.idle.write(worker, now, &self.costs) + self.costs.rmw;
        if std::mem::take(&mut self.workers[worker].searching) {
            self.searching -= 1;
        }
        self.sleepers.push(worker);
        self.workers[worker].stage = Stage::Checks(false);
        let now = self.check_all(worker, now);
        self.at(now, worker, self.workers[worker].sleep);
    }

    fn end_check(&mut self, worker: usize, notified: bool, now: Nanos) {
        if notified {
            return self.next_step(worker, now, Stage::Runs);
        }
        let has_events = !self.polled && self.next_event().is_some_and(|at| at <= now);
        if self.has_work() || has_events {
            return self.wake_by_self(worker, now);
        }
        self.parks += 1;
        self.workers[worker].sleep += 1;
        self.workers[worker].stage = Stage::Sleeps;
        if let Some(at) = self.next_event()
            && !self.polled
        {
            // It has the poller while it sleeps.
            let now = self.poller.write(worker, now, &self.costs);
            self.polled = true;
            self.workers[worker].has_poller = true;
            self.at(
                at.max(now) + self.costs.wake,
                worker,
                self.workers[worker].sleep,
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
        if self.sockets.is_empty() || self.polled {
            return now;
        }
        let mut now = self.poller.write(worker, now, &self.costs) + self.costs.poller;
        let mut found = 0;
        while found < EVENTS && self.next_event().is_some_and(|at| at <= now) {
            let Some(Reverse((_, socket, _))) = self.ready.pop() else {
                break;
            };
            now += self.costs.event;
            now = self.push(worker, self.sockets[socket], now);
            found += 1;
        }
        self.poller.hold(now);
        if found > 0 {
            now = self.notify(worker, now);
        }
        now
    }
}
