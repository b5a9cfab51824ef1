//! Counters of a runtime, and snapshots of them. A worker writes only its own counters, with plain
//! stores to its own cache lines ([`counters`]).
//!
//! The name of a count of events or things is a plural noun: `polls`, `stolen_tasks`. That of a
//! queue's length ends with `_depth`, and that of a span with `_time` or `_wait`.
use crate::worker::shared::Shared;
use counters::each_counter;
use std::{fmt, time::Duration};
use sync_shim::atomic::Ordering::Relaxed;

mod counter;
mod counters;
#[cfg(feature = "metrics")]
mod facade;
mod times;

pub(crate) use counters::Counters;
pub use times::PollTimes;
pub(crate) use times::Times;

/// Makes the snapshots out of the list of counters.
macro_rules! snapshots {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// Counters of one worker so far.
        ///
        /// ```
        /// let runtime = selvedge_executor::Builder::new().workers(2).build()?;
        /// runtime.block_on(runtime.spawn(async {})).unwrap();
        /// let metrics = runtime.snapshot();
        /// let polls: Vec<u64> = metrics.per_worker.iter().map(|worker| worker.polls).collect();
        /// assert_eq!((polls.len(), polls.iter().sum()), (2, 1));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "metrics", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct WorkerSnapshot {
            $($(#[$doc])* pub $name: u64,)*
            /// How long the worker was awake, if [measured](crate::Builder::measure_busy). The
            /// worker adds to this number at the end of an interval, when it goes to sleep, and
            /// when it ends. A driven worker is awake from its first tick on. A worker that
            /// [`block_in_place`](crate::block_in_place()) offers to other threads is not awake
            /// until a thread takes it.
            pub busy_time: Duration,
            /// Tasks in the worker's ring and, with groups, in the worker's lists and inbox.
            pub ring_depth: u64,
        }

        /// Counters of a runtime so far: the sums over its workers and other threads, and the
        /// counters of each worker.
        ///
        /// A snapshot adds nothing to the cost of a poll. It takes three locks: that of the
        /// blocking threads, which [`block_in_place`](crate::block_in_place()) takes too; one that
        /// a thread takes when it first wakes a task of the runtime; and the injector's. Under the
        /// injector's lock it counts the tasks that were pushed since a worker last looked. Once a
        /// scheduling group was built, a snapshot also takes the locks of the groups and of each
        /// worker's turns. While the runtime runs, the counters may not quite agree with each
        /// other. `Display` writes one line of words and numbers.
        ///
        /// ```
        /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
        /// runtime.block_on(runtime.spawn(async {})).unwrap();
        /// let metrics = runtime.snapshot();
        /// assert_eq!((metrics.spawns, metrics.polls), (1, 1));
        /// assert!(metrics.to_string().starts_with("workers 1, spawns 1"));
        /// # Ok::<(), std::io::Error>(())
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "metrics", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct Snapshot {
            /// Workers, including those without a thread.
            pub workers: u64,
            $($(#[$doc])* pub $name: u64,)*
            /// How long the workers were awake: the sum of [`WorkerSnapshot::busy_time`].
            pub busy_time: Duration,
            /// Tasks that were spawned and have not ended.
            pub live_tasks: u64,
            /// Wakes of tasks by threads that are not workers.
            pub remote_wakes: u64,
            /// Tasks in the injector.
            pub injector_depth: u64,
            /// Threads for blocking closures, whether they run one or wait for one.
            pub blocking_threads: u64,
            /// Threads of the blocking pool that wait for a closure.
            pub idle_blocking_threads: u64,
            /// Blocking closures that wait for a thread.
            pub blocking_queue_depth: u64,
            /// Durations of polls, if [measured](crate::Builder::measure_polls). Polls in which
            /// another thread took the worker over are left out.
            pub poll_times: PollTimes,
            /// How long tasks from outside waited for a worker while all were busy.
            ///
            /// A busy worker that finds tasks in the injector records one time. The time counts
            /// from the push that nudged the worker, or from the worker's last reading of the clock
            /// at a look, whichever is later. So a time is exact or too long, except for tasks that
            /// a look leaves for the next look. Driven workers record no times.
            pub remote_waits: PollTimes,
            /// Stalled polls that the monitor has reported, and those whose reports it held back.
            pub stalls: u64,
            /// 1 if the thread of the monitor could not be started. The runtime goes on without a
            /// monitor.
            pub monitor_refusals: u64,
            /// The longest of the [`remote_waits`](Self::remote_waits).
            pub longest_remote_wait: Duration,
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
                        busy_time: counters.busy(),
                        ring_depth: remote.stealer.len() as u64,
                    };
                    own.lifo_hits += own.inherited_slices;
                    $(sum.$name += own.$name;)*
                    sum.remote_waits.add(&counters.waits);
                    sum.busy_time += own.busy_time;
                    let longest = counters.longest_wait();
                    sum.longest_remote_wait = sum.longest_remote_wait.max(longest);
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
                    ("live_tasks", self.live_tasks),
                    ("remote_wakes", self.remote_wakes),
                    ("injector_depth", self.injector_depth),
                    ("blocking_threads", self.blocking_threads),
                    ("idle_blocking_threads", self.idle_blocking_threads),
                    ("blocking_queue_depth", self.blocking_queue_depth),
                    ("stalls", self.stalls),
                    ("monitor_refusals", self.monitor_refusals),
                ];
                write!(f, "workers {}", self.workers)?;
                for (name, number) in numbers {
                    write!(f, ", {} {number}", name.replace('_', " "))?;
                }
                let (busy, longest) = (self.busy_time, self.longest_remote_wait);
                write!(f, ", busy time {busy:?}, longest remote wait {longest:?}")?;
                #[cfg(feature = "groups")]
                for group in &self.groups {
                    write!(f, "; {group}")?;
                }
                Ok(())
            }
        }
    };
}

each_counter!(snapshots);

impl Snapshot {
    /// Adds the counters that belong to no worker.
    fn add_shared(&mut self, shared: &Shared) {
        self.spawns += shared.injector.spawned();
        // Ordering: Relaxed, as a snapshot is approximate.
        self.ends += shared.ended_outside.load(Relaxed);
        self.live_tasks = self.spawns.saturating_sub(self.ends);
        self.remote_wakes = shared.announcements.announced();
        self.injector_depth = shared.count_injected() as u64;
        #[cfg(feature = "groups")]
        {
            self.groups = shared.groups.snapshots();
        }
        self.stalls = shared.monitor.stalls();
        self.monitor_refusals = shared.monitor.is_refused().into();
        let pool = shared.blocking.counts();
        self.blocking_threads = pool.threads as u64;
        self.idle_blocking_threads = pool.idle as u64;
        self.blocking_queue_depth = pool.queue as u64;
    }
}

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
