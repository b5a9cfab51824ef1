//! The simulated scheduler: what its threads do to the lines that they share.
//!
//! Each step of a thread is one event; [`worker`] has the steps of workers. The protocols are those
//! of the runtime, which these files describe: `executor/src/worker/steal.rs`,
//! `worker-idle/src/idle.rs`, `queue-global/src/injector.rs` and `net-driver/src/poller.rs`. The
//! simulation leaves out the LIFO slot and nudges. It needs no operating system's scheduler, since
//! each thread has its own core.
use crate::machine::{Costs, Line, Nanos};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
};

mod worker;

/// The end of a task's run.
#[derive(Clone, Copy)]
pub(crate) enum Outcome {
    /// The task ends.
    Ends,
    /// The task spawns this number of tasks. The work of each is between the two times.
    Spawns(u32, Nanos, Nanos),
    /// The task has served the socket with this index. The socket is ready again this long after
    /// the run.
    Socket(usize, Nanos),
}

#[derive(Clone, Copy)]
pub(crate) struct Task {
    /// The time that the run takes, without the costs of the scheduler.
    pub(crate) work: Nanos,
    /// The core that has the task's lines.
    pub(crate) core: usize,
    pub(crate) outcome: Outcome,
}

/// An outside thread that spawns a task every `every` nanoseconds, or as fast as it can if a spawn
/// takes longer.
pub(crate) struct Producer {
    /// The number of tasks that are still to be spawned.
    pub(crate) left: usize,
    pub(crate) every: Nanos,
    /// The work of each task.
    pub(crate) work: Nanos,
    /// The time of the next spawn.
    pub(crate) due: Nanos,
}

/// The step that a worker makes at its next event.
#[derive(Clone, Copy, Default, PartialEq)]
enum Stage {
    /// Runs a task, or searches if it finds none in its ring and the injector.
    #[default]
    Runs,
    /// Tries to steal from the victim that is this number of places after [`Worker::start`].
    Scans(usize),
    /// Waits before a park: checks for work, and then up to this many times more.
    Waits(u32),
    /// Has announced its sleep, and checks all queues. A thread may have notified it meanwhile.
    Checks {
        is_notified: bool,
    },
    Sleeps,
}

#[derive(Default)]
struct Worker {
    stage: Stage,
    ticks: u32,
    searching: bool,
    /// The index of the first victim of the worker's search.
    start: usize,
    has_poller: bool,
    /// The task of this worker that has more tasks to spawn.
    spawning: Option<Task>,
    /// The time that the tasks' own work took.
    busy: Nanos,
    /// The number of coming parks before which the worker does not wait.
    parks_without_wait: u32,
    /// The number to which the last wait in vain set `parks_without_wait`. The next wait in vain
    /// doubles the number, and a wait that finds work clears it.
    last_parks_without_wait: u32,
    /// Counts the starts and the ends of the worker's sleeps. An event with an older count is
    /// ignored.
    sleep_changes: u64,
}

/// A worker's ring, or a shard of the injector. In a shard, `head` is the line of the lock, and
/// `tail` is the line of the stack to which threads push.
struct Queue {
    items: VecDeque<Task>,
    head: Line,
    tail: Line,
}

pub(crate) struct Scheduler {
    costs: Costs,
    pub(crate) now: Nanos,
    /// The time in picoseconds, the number of the event, the core, and the core's `sleep_changes`.
    events: BinaryHeap<Reverse<(u64, u64, usize, u64)>>,
    /// The number of the last event. Events of one time come in the order of their numbers.
    sequence: u64,
    random: u64,
    workers: Vec<Worker>,
    producers: Vec<Producer>,
    rings: Vec<Queue>,
    /// The injector's shards. There is one, unless `new` is asked for more.
    injector: Vec<Queue>,
    /// For each shard, the line of the count of tasks that outside threads spawned.
    spawned: Vec<Line>,
    pub(crate) idle: Line,
    /// The number of searching workers.
    searching: usize,
    sleepers: Vec<usize>,
    pub(crate) poller: Line,
    /// True while a worker sleeps with the poller.
    is_poller_taken: bool,
    /// The time in picoseconds at which a socket is ready, the socket, and the number of the event.
    ready: BinaryHeap<Reverse<(u64, usize, u64)>>,
    sockets: Vec<Task>,
    pub(crate) done: u64,
    pub(crate) searches: u64,
    pub(crate) parks: u64,
}

impl Scheduler {
    pub(crate) fn new(
        costs: Costs,
        workers: usize,
        shards: usize,
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
            is_poller_taken: false,
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
            this.push_event(this.producers[producer].due, workers + producer, 0);
        }
        this
    }

    /// Spawns a task before the simulated time begins.
    pub(crate) fn spawn(&mut self, task: Task) {
        self.injector[0].items.push_back(task);
        self.notify(0, 0.0);
    }

    /// Adds a connection whose first request arrives at the time `at`.
    pub(crate) fn connect(&mut self, work: Nanos, pause: Nanos, at: Nanos) {
        let socket = self.sockets.len();
        self.sockets.push(Task {
            work,
            core: 0,
            outcome: Outcome::Socket(socket, pause),
        });
        self.push_ready(socket, at);
        if socket == 0 {
            self.notify(0, 0.0);
        }
    }

    /// Runs until this number of tasks have ended, or until no event is left. Returns the simulated
    /// time.
    pub(crate) fn run(&mut self, tasks: u64) -> Nanos {
        while self.done < tasks {
            let Some(Reverse((time, _, core, sleep_changes))) = self.events.pop() else {
                break;
            };
            self.now = time as f64 / 1_000.0;
            if core >= self.workers.len() {
                self.produce(core, self.now);
            } else if sleep_changes == self.workers[core].sleep_changes {
                self.step(core, self.now);
            }
        }
        self.now
    }

    /// Returns which part of all workers' time the tasks' own work took.
    pub(crate) fn efficiency(&self) -> f64 {
        let busy: f64 = self.workers.iter().map(|worker| worker.busy).sum();
        self.percent_of_all_time(busy) / 100.0
    }

    /// Returns `time` as a part of all workers' time, in per cent.
    pub(crate) fn percent_of_all_time(&self, time: Nanos) -> f64 {
        100.0 * time / (self.now * self.workers.len() as f64)
    }

    /// Returns the time in which cores waited for each other at the injector's lines.
    pub(crate) fn waited_at_injector(&self) -> Nanos {
        let waited = |shard: &Queue| shard.head.waited + shard.tail.waited;
        self.injector.iter().map(waited).sum()
    }

    /// Returns the number of writes of the idle word and of the injector's stacks. Writes of locks,
    /// and of the counts of spawned tasks, are not included.
    #[cfg(test)]
    pub(crate) fn shared_writes(&self) -> u64 {
        let stacks = self.injector.iter().map(|shard| shard.tail.writes);
        self.idle.writes + stacks.sum::<u64>()
    }

    fn push_event(&mut self, time: Nanos, core: usize, sleep_changes: u64) {
        self.sequence += 1;
        let time = (time * 1_000.0) as u64;
        self.events
            .push(Reverse((time, self.sequence, core, sleep_changes)));
    }

    fn next_step(&mut self, worker: usize, time: Nanos, stage: Stage) {
        self.workers[worker].stage = stage;
        self.push_event(time, worker, self.workers[worker].sleep_changes);
    }

    fn random(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % below as u64) as usize
    }

    fn random_between(&mut self, least: Nanos, most: Nanos) -> Nanos {
        least + (most - least) * self.random(1 << 16) as f64 / 65_536.0
    }

    /// Makes a socket ready at a time.
    fn push_ready(&mut self, socket: usize, time: Nanos) {
        self.sequence += 1;
        self.ready
            .push(Reverse(((time * 1_000.0) as u64, socket, self.sequence)));
    }

    fn has_work(&self) -> bool {
        let mut queues = self.rings.iter().chain(&self.injector);
        queues.any(|queue| !queue.items.is_empty())
    }

    /// Returns the first time at which a socket is ready.
    fn next_ready(&self) -> Option<Nanos> {
        self.ready.peek().map(|next| next.0.0 as f64 / 1_000.0)
    }

    /// Simulates the notification after a push: wakes a sleeper, if there is one and no worker
    /// searches. Returns the time at which the notification ends.
    fn notify(&mut self, core: usize, now: Nanos) -> Nanos {
        let now = self.idle.read(core, now + self.costs.rmw, &self.costs);
        if self.searching > 0 || self.sleepers.is_empty() {
            return now;
        }
        // The notifier writes the counts, and then the mask, which is on the same line.
        let now = self.idle.write(core, now, &self.costs) + self.costs.rmw;
        let Some(sleeper) = self.sleepers.pop() else {
            return now;
        };
        self.searching += 1;
        self.workers[sleeper].searching = true;
        if let Stage::Checks { .. } = self.workers[sleeper].stage {
            self.workers[sleeper].stage = Stage::Checks { is_notified: true };
            return now;
        }
        self.workers[sleeper].sleep_changes += 1;
        self.is_poller_taken &= !std::mem::take(&mut self.workers[sleeper].has_poller);
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
        let outcome = Outcome::Ends;
        injector.items.push_back(Task {
            work,
            core,
            outcome,
        });
        let now = self.spawned[shard].write(core, now, &self.costs);
        let now = self.notify(core, now);
        self.producers[producer].left -= 1;
        self.producers[producer].due += every;
        self.push_event(now.max(self.producers[producer].due), core, 0);
    }
}
