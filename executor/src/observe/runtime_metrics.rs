//! `RuntimeMetrics`: a runtime's counters one by one, under tokio's names.
//!
//! Each method reads the counters that it needs, at the time of its call. A
//! [`Snapshot`](crate::Snapshot) reads all of them.
use crate::{Handle, Snapshot, worker::shared::Remote};
use std::{fmt, time::Duration};
use sync_shim::atomic::Ordering::Relaxed;

/// Counters of a runtime, which each method reads when it is called.
///
/// [`Handle::metrics`] returns this value. The value is cheap to clone, may outlive the
/// runtime, and does not keep the runtime running. The methods' names are tokio's. [`Snapshot`] has
/// more counters, under names of our own, and says what each counts. `worker` is an index, counted
/// from 0.
///
/// A counter of one worker costs a load. A number of the whole runtime costs a load for each
/// worker, except the depths of queues. The numbers about blocking threads take the lock of their
/// pool.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
/// let metrics = runtime.handle().metrics();
/// let task = runtime.spawn(std::future::pending::<()>());
/// assert_eq!((metrics.num_workers(), metrics.num_alive_tasks()), (1, 1));
/// assert_eq!((metrics.spawned_tasks_count(), metrics.global_queue_depth() <= 1), (1, true));
/// task.abort();
/// assert!(runtime.block_on(task).unwrap_err().is_cancelled());
/// while metrics.num_alive_tasks() > 0 {
///     std::thread::yield_now(); // Its worker counts the end soon.
/// }
/// assert!(metrics.remote_schedule_count() >= 1 && metrics.budget_forced_yield_count() == 0);
///
/// assert!(metrics.worker_poll_count(0) >= 1);
/// assert_eq!((metrics.worker_steal_count(0), metrics.worker_steal_operations(0)), (0, 0));
/// assert_eq!((metrics.worker_overflow_count(0), metrics.worker_local_queue_depth(0)), (0, 0));
/// assert_eq!(metrics.worker_local_schedule_count(0), 0);
/// assert!(metrics.worker_park_count(0) >= metrics.worker_noop_count(0));
/// assert!(metrics.worker_total_busy_duration(0).is_zero()); // It is not measured.
///
/// runtime.block_on(runtime.spawn_blocking(|| ())).unwrap();
/// assert_eq!((metrics.num_blocking_threads(), metrics.blocking_queue_depth()), (1, 0));
/// assert!(metrics.num_idle_blocking_threads() <= 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct RuntimeMetrics(Handle);

impl Handle {
    /// Returns the runtime's counters under tokio's names. Each is read when its method is called.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(3).build()?;
    /// assert_eq!(runtime.handle().metrics().num_workers(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> RuntimeMetrics {
        RuntimeMetrics::of(self)
    }
}

impl RuntimeMetrics {
    pub(crate) fn of(handle: &Handle) -> Self {
        Self(handle.clone())
    }

    #[track_caller]
    fn worker(&self, worker: usize) -> &Remote {
        let remotes = &self.0.shared().remotes;
        match remotes.get(worker) {
            Some(remote) => remote,
            None => panic!(
                "a runtime of {} workers has no worker {worker}",
                remotes.len()
            ),
        }
    }

    fn sum(&self, counter: impl Fn(&Remote) -> u64) -> u64 {
        self.0
            .shared()
            .remotes
            .iter()
            .map(|remote| counter(remote))
            .sum()
    }

    /// Returns all counters at once.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let metrics = runtime.handle().metrics();
    /// assert_eq!(metrics.snapshot().spawns, metrics.spawned_tasks_count());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    /// Returns the number of workers, including those without a thread.
    pub fn num_workers(&self) -> usize {
        self.0.shared().remotes.len()
    }

    /// Returns the number of tasks that were spawned and have not ended.
    pub fn num_alive_tasks(&self) -> usize {
        // The count of ends is read before that of spawns. So a task that is spawned between the
        // two reads counts as alive.
        let shared = self.0.shared();
        // Ordering: Relaxed, as the number is approximate.
        let outside = shared.ended_outside.load(Relaxed);
        let ended = outside + self.sum(|remote| remote.counters.ends.get());
        self.spawned_tasks_count().saturating_sub(ended) as usize
    }

    /// Returns the number of tasks that were spawned.
    pub fn spawned_tasks_count(&self) -> u64 {
        let shared = self.0.shared();
        shared.injector.spawned() + self.sum(|remote| remote.counters.spawns.get())
    }

    /// Returns the number of tasks in the injector. Takes the injector's lock for the count, and
    /// follows the links of the tasks that were pushed since a worker last looked.
    pub fn global_queue_depth(&self) -> usize {
        self.0.shared().count_injected()
    }

    /// Returns how often threads that are not workers have woken or spawned a task.
    pub fn remote_schedule_count(&self) -> u64 {
        let shared = self.0.shared();
        shared.announcements.announced() + shared.injector.spawned()
    }

    /// Returns the number of polls in which an operation yielded for one of two reasons: the budget
    /// was exhausted, or tasks came from outside while all workers were busy.
    pub fn budget_forced_yield_count(&self) -> u64 {
        self.sum(|remote| remote.counters.forced_yields.get())
    }

    /// Returns the number of threads for blocking closures.
    pub fn num_blocking_threads(&self) -> usize {
        self.0.shared().blocking.counts().threads
    }

    /// Returns the number of threads for blocking closures that wait for a closure.
    pub fn num_idle_blocking_threads(&self) -> usize {
        self.0.shared().blocking.counts().idle
    }

    /// Returns the number of blocking closures that wait for a thread.
    pub fn blocking_queue_depth(&self) -> usize {
        self.0.shared().blocking.counts().queue
    }
}

/// Counters of one worker.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(2).build()?;
/// runtime.block_on(runtime.spawn(async {})).unwrap();
/// let metrics = runtime.handle().metrics();
/// let polls: u64 = (0..metrics.num_workers()).map(|n| metrics.worker_poll_count(n)).sum();
/// assert_eq!(polls, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// If there is no worker of that index.
impl RuntimeMetrics {
    /// Returns how long the worker was awake, if that is
    /// [measured](crate::Builder::measure_busy), and otherwise zero.
    #[track_caller]
    pub fn worker_total_busy_duration(&self, worker: usize) -> Duration {
        self.worker(worker).counters.busy()
    }

    /// Returns how often the worker went to sleep.
    #[track_caller]
    pub fn worker_park_count(&self, worker: usize) -> u64 {
        self.worker(worker).counters.parks.get()
    }

    /// Returns how many of the worker's sleeps have begun, plus how many have ended. An odd number
    /// means that the worker sleeps.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
    /// let task = runtime.spawn(async {});
    /// runtime.block_on(task).unwrap();
    /// let metrics = runtime.handle().metrics();
    /// assert!(metrics.worker_park_unpark_count(0) >= metrics.worker_park_count(0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn worker_park_unpark_count(&self, worker: usize) -> u64 {
        let counters = &self.worker(worker).counters;
        // The count of ended sleeps is read first, so that it does not exceed that of begun sleeps.
        let ended = counters.ended_parks.get();
        ended + counters.parks.get().clamp(ended, ended + 1)
    }

    /// Returns how often the worker woke up for nothing.
    #[track_caller]
    pub fn worker_noop_count(&self, worker: usize) -> u64 {
        self.worker(worker).counters.false_wakes.get()
    }

    /// Returns the number of tasks that the worker stole.
    #[track_caller]
    pub fn worker_steal_count(&self, worker: usize) -> u64 {
        self.worker(worker).counters.stolen_tasks.get()
    }

    /// Returns the number of batches that the worker stole.
    #[track_caller]
    pub fn worker_steal_operations(&self, worker: usize) -> u64 {
        self.worker(worker).counters.steals.get()
    }

    /// Returns the number of polls by the worker.
    #[track_caller]
    pub fn worker_poll_count(&self, worker: usize) -> u64 {
        self.worker(worker).counters.polls.get()
    }

    /// Returns how often the worker has woken or spawned a task.
    #[track_caller]
    pub fn worker_local_schedule_count(&self, worker: usize) -> u64 {
        let counters = &self.worker(worker).counters;
        counters.local_wakes.get() + counters.spawns.get()
    }

    /// Returns how often a push found the worker's ring full.
    #[track_caller]
    pub fn worker_overflow_count(&self, worker: usize) -> u64 {
        self.worker(worker).counters.overflows.get()
    }

    /// Returns the number of tasks in the worker's ring.
    #[track_caller]
    pub fn worker_local_queue_depth(&self, worker: usize) -> usize {
        self.worker(worker).stealer.len()
    }
}

impl fmt::Debug for RuntimeMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RuntimeMetrics").field(&self.0).finish()
    }
}
