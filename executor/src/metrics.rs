//! Counters of a runtime. A worker writes only its own, with plain stores to its own cache lines.
use crate::shared::Shared;
use std::{fmt, time::Duration};
use sync_shim::atomic::{AtomicUsize, Ordering::Relaxed};
use task_header::Id;
use thread_counts::{Counter, Times};

/// Histogram of the durations of polls. See
/// [`Builder::measure_polls`](crate::Builder::measure_polls).
pub use thread_counts::Histogram as PollTimes;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// A worker's counters.
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
            pub(crate) poll_times: Option<Times>,
            waits: Times,
            longest_wait_ns: Counter,
            /// The number of the polled task, or 0. See `monitor`.
            polled: AtomicUsize,
        }

        impl Counters {
            pub(crate) fn new(poll_times: bool) -> Self {
                Self {
                    $($name: Counter::new(),)*
                    poll_times: poll_times.then(Times::new),
                    waits: Times::new(),
                    longest_wait_ns: Counter::new(),
                    polled: AtomicUsize::new(0),
                }
            }

            /// Shows the monitor which task is polled. A store.
            #[inline]
            pub(crate) fn set_polled(&self, task: Option<Id>) {
                if cfg!(all(feature = "monitor", not(any(selvedge_loom, selvedge_shuttle)))) {
                    let number = task.map_or(0, |task| u64::from(task) as usize);
                    // Ordering: Relaxed, a number that publishes nothing.
                    self.polled.store(number, Relaxed);
                }
            }

            /// The task that is polled, or was polled last, or 0.
            #[cfg(feature = "monitor")]
            pub(crate) fn polled(&self) -> usize {
                // Ordering: Relaxed, as above.
                self.polled.load(Relaxed)
            }

            /// Records how long work from outside waited for this worker's look.
            pub(crate) fn record_wait(&self, waited: Duration) {
                self.waits.record(waited);
                let (waited, longest) = (waited.as_nanos() as u64, &self.longest_wait_ns);
                longest.add(waited.saturating_sub(longest.get()));
            }
        }

        /// Counters of one worker so far.
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

        /// Counters of a runtime so far: sums over its workers and other threads, and each
        /// worker's own.
        ///
        /// A snapshot costs the workers' polls nothing. It takes two locks: that of the blocking
        /// threads, which [`block_in_place`](crate::block_in_place()) also takes, and one that a
        /// thread takes when it first wakes a task of the runtime. While the runtime runs, the
        /// counters may not quite agree with each other. `Display` writes one line of words and
        /// numbers.
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
            /// Workers, including those without a thread.
            pub workers: u64,
            $($(#[$doc])* pub $name: u64,)*
            /// Tasks that were spawned and have not ended.
            pub live: u64,
            /// Wakes of tasks by threads that are not workers.
            pub remote_schedules: u64,
            /// Tasks in the injector. Those pushed since a worker last looked may count as one.
            pub injector_depth: u64,
            /// Threads for blocking closures, whether they run one or wait for one.
            pub blocking_threads: u64,
            /// Threads for blocking closures that wait for one.
            pub blocking_idle: u64,
            /// Blocking closures that wait for a thread.
            pub blocking_queue: u64,
            /// Durations of polls, if [measured](crate::Builder::measure_polls). Without the polls
            /// in which another thread took the worker over.
            pub poll_times: PollTimes,
            /// How long tasks from outside waited for a worker while all were busy.
            ///
            /// A busy worker that finds tasks in the injector records one time: since the push that
            /// nudged it, or else since it last read the clock at a look. So a time is exact or too
            /// long, except for tasks that a look leaves for the next one. Driven workers record
            /// none.
            pub remote_waits: PollTimes,
            /// Stalled polls that the monitor has reported, or held back.
            pub stalls: u64,
            /// 1 if the thread of the monitor could not be started. The runtime goes on without it.
            pub monitor_refused: u64,
            /// The longest of these waits, in nanoseconds.
            pub longest_remote_wait_ns: u64,
            /// Counters of each worker.
            pub per_worker: Vec<WorkerSnapshot>,
            /// Counters of each scheduling group, once one was built.
            #[cfg(feature = "groups")]
            pub groups: Vec<crate::GroupSnapshot>,
        }

        impl Snapshot {
            pub(crate) fn of(shared: &Shared) -> Self {
                let mut sum = Self { workers: shared.remotes.len() as u64, ..Self::default() };
                for remote in &shared.remotes {
                    let counters = &remote.counters;
                    let mut own = WorkerSnapshot {
                        $($name: counters.$name.get(),)*
                        ring_depth: remote.stealer.len() as u64,
                    };
                    own.lifo_hits += own.inherited_slices;
                    $(sum.$name += own.$name;)*
                    sum.remote_waits.add(&counters.waits);
                    let longest = counters.longest_wait_ns.get();
                    sum.longest_remote_wait_ns = sum.longest_remote_wait_ns.max(longest);
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
                    ("stalls", self.stalls),
                    ("monitor_refused", self.monitor_refused),
                    ("longest_remote_wait_ns", self.longest_remote_wait_ns),
                ];
                write!(f, "workers {}", self.workers)?;
                for (name, number) in numbers {
                    write!(f, ", {} {number}", name.replace('_', " "))?;
                }
                #[cfg(feature = "groups")]
                for group in &self.groups {
                    write!(f, "; {group}")?;
                }
                Ok(())
            }
        }
    };
}

counters! {
    /// Tasks spawned.
    spawned,
    /// Tasks that have ended: completed, panicked, aborted or dropped.
    ended,
    /// Polls of tasks. The run that ends an aborted task counts as one.
    polls,
    /// Wakes of tasks by the worker, except those of a task in its own poll.
    local_schedules,
    /// Tasks run from the LIFO slot.
    lifo_hits,
    /// Those of them that ran in the budget and the time slice of the task before.
    inherited_slices,
    /// Tasks taken from the injector.
    injected,
    /// Batches stolen.
    steals,
    /// Tasks in the stolen batches.
    stolen,
    /// Tasks stolen from the LIFO slot of a worker whose poll was long.
    slots_stolen,
    /// Pushes that found the ring full.
    overflows,
    /// Searches through the other workers.
    searches,
    /// Operations that yielded: the first of a poll after its budget was exhausted, or because a
    /// nudge asked the worker to look at the injector.
    forced_yields,
    /// Polls in which an operation yielded because the time slice was over. Not among the
    /// [`forced_yields`](Self::forced_yields).
    preempted,
    /// Calls of [`syscall`](crate::syscall()) that the worker might have been handed over for.
    syscalls,
    /// Times that the monitor handed the worker over to another thread, in such a call.
    retaken,
    /// Time slices that a request ended. See [`Handle::preempt`](crate::Handle::preempt).
    slices_ended,
    /// Short waits before a sleep.
    backoffs,
    /// Short waits before a sleep that found work, so that the worker did not sleep.
    backoffs_that_found,
    /// Times that a worker went to sleep.
    parks,
    /// Sleeps that have ended.
    parks_ended,
    /// Sleeps that a notification ended.
    unparks,
    /// Wake-ups for nothing: the parker returned by itself, or the work was gone by then.
    false_wakes,
    /// 1 if the worker's thread could not be started. The runtime goes on without the worker.
    refused,
    /// Nanoseconds awake, up to the last sleep or the end, if
    /// [measured](crate::Builder::measure_busy). A driven worker is awake from its first tick on. A
    /// worker that [`block_in_place`](crate::block_in_place()) offers to other threads is not awake
    /// until a thread takes it.
    busy_ns,
}

impl Snapshot {
    /// Adds the counters that belong to no worker.
    fn add_shared(&mut self, shared: &Shared) {
        // Ordering: Relaxed, as a snapshot is approximate.
        self.spawned += shared.spawned_outside.load(Relaxed);
        // Ordering: as above.
        self.ended += shared.ended_outside.load(Relaxed);
        self.live = self.spawned.saturating_sub(self.ended);
        self.remote_schedules = shared.foreign.announced();
        self.injector_depth = shared.injector.len() as u64;
        #[cfg(feature = "groups")]
        {
            self.injector_depth += shared.groups.injector.len() as u64;
            self.groups = shared.groups.snapshots();
        }
        self.stalls = shared.monitor.stalls();
        self.monitor_refused = shared.monitor.is_refused().into();
        let pool = shared.blocking.counts();
        self.blocking_threads = pool.threads as u64;
        self.blocking_idle = pool.idle as u64;
        self.blocking_queue = pool.queue as u64;
    }
}
