//! The queue for tasks from outside, in shards where many workers take from it.
//!
//! Each push writes one word, and each share takes one lock. So with one queue the time that its
//! lines take from processor to processor bounds the rate of tasks from outside, whatever the
//! number of workers. `docs/benchmarks/scale.md` has the simulation. It names the number of
//! [`WORKERS`] that share a shard.
//!
//! 1. A thread pushes into the shard of its number, whatever it pushes, so that its pushes find the
//!    shard's lines where they are. A worker pushes what its ring has no room for into its own
//!    shard.
//! 2. A worker looks at its own shard first, and then at the others. One look in [`LOOKS`] begins
//!    at another shard, a different one each time. So the oldest task of a shard waits for a
//!    bounded number of looks of any worker, even if all workers of its shard are in long polls.
//! 3. A shard is empty at the moment at which a looker finds it so, and no task goes from one shard
//!    to another. A sleeper announces its sleep, fences, and then looks at each shard; a pusher
//!    pushes into one of them, fences, and then looks for sleepers. So rule 5 of the
//!    [injector](Injector) holds for each shard: the sleeper sees the task, or the pusher sees the
//!    sleeper.
//! 4. A close closes one shard after the other. Meanwhile a push is refused or accepted by its
//!    shard. Whoever has seen the flag that the closer sets afterwards finds all accepted tasks.
use super::scheduler::{Scheduler, Task};
use queue_global::{Injector, List};
use std::{cell::Cell, iter};
use sync_shim::{
    CachePadded,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Retire},
    count,
};
use task_header::Node;

/// The most workers that share a shard.
const WORKERS: usize = 16;

/// Of so many looks of a worker one begins at another shard than the worker's own.
const LOOKS: usize = 8;

sync_shim::thread_local! {
    /// The number of this thread, or 0 for none yet.
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

pub(crate) struct Injectors {
    /// The only shard, for most runtimes.
    first: Shard,
    others: Box<[Shard]>,
    /// How many workers take from a shard.
    workers: usize,
    /// The number of the next thread that has none.
    next_number: AtomicUsize,
}

struct Shard {
    queue: Injector<Node<Scheduler>>,
    /// The tasks that other threads than workers have spawned.
    spawned: CachePadded<AtomicU64>,
}

impl Shard {
    fn new() -> Self {
        Self {
            queue: Injector::new(),
            spawned: CachePadded::new(count::shared(AtomicU64::new(0))),
        }
    }
}

/// Returns the number of shards for so many workers.
fn shards_of(workers: usize) -> usize {
    workers.div_ceil(WORKERS)
}

impl Injectors {
    /// `shards` is for tests.
    pub(crate) fn new(workers: usize, shards: Option<usize>) -> Self {
        let shards = shards.unwrap_or_else(|| shards_of(workers));
        Self {
            first: Shard::new(),
            others: (1..shards).map(|_| Shard::new()).collect(),
            workers: workers.div_ceil(shards),
            next_number: AtomicUsize::new(0),
        }
    }

    fn shards(&self) -> impl Iterator<Item = &Shard> {
        iter::once(&self.first).chain(&self.others)
    }

    /// Returns the shard with this number, counted around.
    fn shard(&self, number: usize) -> &Shard {
        match number % (1 + self.others.len()) {
            0 => &self.first,
            at => &self.others[at - 1],
        }
    }

    /// Returns the shard into which this thread pushes.
    #[inline]
    fn of_thread(&self) -> &Shard {
        match self.others.is_empty() {
            true => &self.first,
            false => self.shard(self.number_of_thread()),
        }
    }

    /// Returns a number that stays with the thread. A thread whose thread-locals are gone has that
    /// of nobody.
    #[cold]
    fn number_of_thread(&self) -> usize {
        let number = NUMBER.try_with(|number| {
            if number.get() == 0 {
                // Ordering: Relaxed, as any number does.
                number.set(self.next_number.fetch_add(1, Relaxed) + 1);
            }
            number.get()
        });
        number.unwrap_or(0)
    }

    /// The queue into which this thread pushes.
    #[inline]
    pub(crate) fn mine(&self) -> &Injector<Node<Scheduler>> {
        &self.of_thread().queue
    }

    /// Counts tasks that this thread has spawned.
    #[inline]
    pub(crate) fn count_spawned(&self, tasks: u64) {
        // Ordering: Relaxed, as it is only a count.
        self.of_thread().spawned.fetch_add(tasks, Relaxed);
    }

    /// Returns the number of tasks that were spawned from outside.
    pub(crate) fn spawned(&self) -> u64 {
        // Ordering: Relaxed, as above.
        let spawned = |shard: &Shard| shard.spawned.load(Relaxed);
        self.shards().map(spawned).sum()
    }

    /// Queues the tasks for which the ring of this worker has no room.
    pub(crate) fn requeue_of(&self, worker: usize, tasks: List<Node<Scheduler>>) {
        self.shard(worker).queue.requeue_batch(tasks);
    }

    /// Returns the queue for a look of this worker, and how many workers take from it: rule 2.
    /// `looks` counts the worker's looks.
    #[inline]
    pub(crate) fn look(
        &self,
        worker: usize,
        looks: &Cell<usize>,
    ) -> (&Injector<Node<Scheduler>>, usize) {
        let shard = match self.others.is_empty() {
            true => &self.first,
            false => self.choose(worker, looks),
        };
        (&shard.queue, self.workers)
    }

    /// Returns the first shard that has a task.
    #[cold]
    fn choose(&self, worker: usize, looks: &Cell<usize>) -> &Shard {
        let look = looks.get();
        looks.set(look.wrapping_add(1));
        let from = match look % LOOKS {
            0 => look / LOOKS,
            _ => worker,
        };
        let mut shards = (0..=self.others.len()).map(|n| self.shard(from.wrapping_add(n)));
        let first = shards.find(|shard| !shard.queue.is_empty());
        first.unwrap_or_else(|| self.shard(worker))
    }

    /// Takes a task out of any shard.
    pub(crate) fn pop(&self) -> Option<Task> {
        self.shards().find_map(|shard| shard.queue.pop())
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.queue.is_empty() && self.others.iter().all(|shard| shard.queue.is_empty())
    }

    /// The number of tasks, of which those of a shard that were pushed since a worker last looked
    /// may count as one.
    pub(crate) fn len(&self) -> usize {
        self.shards().map(|shard| shard.queue.len()).sum()
    }

    /// Counts the tasks. Takes the lock of each shard.
    pub(crate) fn count(&self) -> usize {
        self.shards().map(|shard| shard.queue.count()).sum()
    }

    /// Refuses spawns from now on: rule 4.
    pub(crate) fn close(&self) {
        self.shards().for_each(|shard| _ = shard.queue.close());
    }
}

impl Drop for Injectors {
    /// Marks the counts as freed, so that a model fails if a late notifier touches them.
    fn drop(&mut self) {
        self.first.spawned.retire();
        self.others
            .iter_mut()
            .for_each(|shard| shard.spawned.retire());
    }
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
