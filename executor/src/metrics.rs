//! What a runtime counts. A worker writes its own counters, with plain stores to lines of its own.
use crate::shared::Shared;
use std::fmt;
use sync_shim::atomic::Ordering::Relaxed;
use thread_counts::{Counter, Times};

/// How many polls took how long. See [`Builder::measure_polls`](crate::Builder::measure_polls).
pub use thread_counts::Histogram as PollTimes;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A worker's counters.
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            pub(crate) poll_times: Option<Times>,
        }

        impl Counters {
            pub(crate) fn new(poll_times: bool) -> Self {
                Self {
                    $($name: Counter::new(),)*
                    poll_times: poll_times.then(Times::new),
                }
            }
        }

        /// What one worker has done so far.
        ///
        /// ```
        /// let runtime = selvedge::Builder::new().workers(2).build()?;
        /// runtime.block_on(runtime.spawn(async {})).unwrap();
        /// let metrics = runtime.metrics();
        /// let polls: Vec<u64> = metrics.per_worker.iter().map(|worker| worker.polls).collect();
        /// assert_eq!((polls.len(), polls.iter().sum()), (2, 1));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct WorkerSnapshot {
            $($(#[$doc])* pub $name: u64,)*
            /// Tasks in its ring.
            pub ring_depth: u64,
        }

        /// What a runtime has done so far: sums over its workers, what others did, and each worker's own.
        ///
        /// Taking one costs the workers' polls nothing; it takes the lock of the threads that block, which [`block_in_place`](crate::block_in_place()) takes, and that
        /// which a thread's first wake of a runtime takes. That of a running one may be a little uneven. Its `Display` is a line of words and numbers.
        ///
        /// ```
        /// let runtime = selvedge::Builder::new().workers(1).build()?;
        /// runtime.block_on(runtime.spawn(async {})).unwrap();
        /// let metrics = runtime.metrics();
        /// assert_eq!((metrics.spawned, metrics.polls), (1, 1));
        /// assert!(metrics.to_string().starts_with("workers 1, spawned 1"));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Snapshot {
            /// Workers, also those without a thread.
            pub workers: u64,
            $($(#[$doc])* pub $name: u64,)*
            /// Tasks that were spawned and are not done.
            pub live: u64,
            /// Wakes of tasks by threads that are no workers.
            pub remote_schedules: u64,
            /// Tasks in the injector. Those that were pushed since a worker last looked may count as one.
            pub injector_depth: u64,
            /// Threads for closures that block: they run one, or wait for one.
            pub blocking_threads: u64,
            /// Of these, those that wait.
            pub blocking_idle: u64,
            /// Closures that wait for a thread.
            pub blocking_queue: u64,
            /// How long polls took, if the builder asked for it. A poll whose worker went to another
            /// thread meanwhile is not among them.
            pub poll_times: PollTimes,
            /// Each worker's own.
            pub per_worker: Vec<WorkerSnapshot>,
        }

        impl Snapshot {
            pub(crate) fn of(shared: &Shared) -> Self {
                let mut sum = Self { workers: shared.remotes.len() as u64, ..Self::default() };
                for remote in &shared.remotes {
                    let counters = &remote.counters;
                    let own = WorkerSnapshot {
                        $($name: counters.$name.get(),)*
                        ring_depth: remote.stealer.len() as u64,
                    };
                    $(sum.$name += own.$name;)*
                    counters.poll_times.iter().for_each(|times| sum.poll_times.add(times));
                    sum.per_worker.push(own);
                }
                sum.add_shared(shared);
                sum
            }
        }

        impl fmt::Display for Snapshot {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let numbers = [
                    $((stringify!($name), self.$name),)*
                    ("live", self.live),
                    ("remote_schedules", self.remote_schedules),
                    ("injector_depth", self.injector_depth),
                    ("blocking_threads", self.blocking_threads),
                    ("blocking_idle", self.blocking_idle),
                    ("blocking_queue", self.blocking_queue),
                ];
                write!(f, "workers {}", self.workers)?;
                for (name, number) in numbers {
                    write!(f, ", {} {number}", name.replace('_', " "))?;
                }
                Ok(())
            }
        }
    };
}

counters! {
    /// Tasks spawned.
    spawned,
    /// Tasks that are done: completed, panicked, aborted or dropped.
    ended,
    /// Polls of tasks. The run that ends an aborted task counts as one.
    polls,
    /// Wakes of tasks by the worker. A task that is woken in its own poll does not count.
    local_schedules,
    /// Tasks run from the LIFO slot.
    lifo_hits,
    /// Tasks taken from the injector.
    injected,
    /// Batches stolen.
    steals,
    /// Tasks in those batches.
    stolen,
    /// Tasks taken from a LIFO slot whose worker's poll was long.
    slots_stolen,
    /// Pushes that found the ring full.
    overflows,
    /// Searches through the other workers.
    searches,
    /// Operations that were refused: the first in a poll for its exhausted budget, and for a look at what came from outside.
    forced_yields,
    /// Time slices that a request ended. See [`Handle::preempt`](crate::Handle::preempt).
    slices_ended,
    /// Short waits before a sleep.
    lingers,
    /// Of these, those that made the sleep needless.
    lingers_that_found,
    /// Times that a worker went to sleep.
    parks,
    /// Sleeps that a notification ended.
    unparks,
    /// Wake-ups for nothing: the parker returned by itself, or a notification's work was gone when the worker came.
    false_wakes,
    /// Whether its thread could not be started: the runtime goes on without it.
    refused,
    /// Nanoseconds awake, up to the last sleep or the end. Zero unless asked for. A driven worker is
    /// awake from its first tick on; one that [`block_in_place`](crate::block_in_place()) offers to
    /// other threads is not until a thread has taken it.
    busy_ns,
}

impl Snapshot {
    /// What is no worker's own.
    fn add_shared(&mut self, shared: &Shared) {
        // Ordering: Relaxed, a snapshot.
        self.spawned += shared.spawned_outside.load(Relaxed);
        // Ordering: as above.
        self.ended += shared.ended_outside.load(Relaxed);
        self.live = self.spawned.saturating_sub(self.ended);
        self.remote_schedules = shared.foreign.announced();
        self.injector_depth = shared.injector.len() as u64;
        let pool = shared.blocking.counts();
        self.blocking_threads = pool.threads as u64;
        self.blocking_idle = pool.idle as u64;
        self.blocking_queue = pool.queue as u64;
    }
}
