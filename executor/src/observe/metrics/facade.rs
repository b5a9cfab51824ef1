//! Passes a snapshot to the recorder of the crate `metrics`.
//!
//! The names follow OpenTelemetry's conventions: parts with dots between them, from the general to
//! the special; plurals for counters of events; `count` and `length` for numbers of things that
//! there are now; `time` for durations, in seconds, without the unit in the name.
use super::{Snapshot, WorkerSnapshot, counters::each_counter};
use ::metrics::{Label, Unit, counter, describe_counter, describe_gauge, gauge};
use std::time::Duration;

const RUNTIME: &str = "selvedge.runtime";
const WORKER: &str = "selvedge.worker";
#[cfg(feature = "groups")]
const GROUP: &str = "selvedge.group";

/// Makes the functions that record each counter of the list.
macro_rules! record {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {
        impl Snapshot {
            fn record_counters(&self, labels: &[Label]) {
                $(
                    counter!(concat!("selvedge.runtime.", stringify!($name)), labels.to_vec())
                        .absolute(self.$name);
                )*
            }

            fn describe_counters() {
                $(
                    let words = [$($doc.trim()),*].join(" ");
                    let name = concat!("selvedge.worker.", stringify!($name));
                    describe_counter!(name, Unit::Count, words.clone());
                    let name = concat!("selvedge.runtime.", stringify!($name));
                    describe_counter!(name, Unit::Count, words);
                )*
            }
        }

        impl WorkerSnapshot {
            fn record_counters(&self, labels: &[Label]) {
                $(
                    counter!(concat!("selvedge.worker.", stringify!($name)), labels.to_vec())
                        .absolute(self.$name);
                )*
            }
        }
    };
}

each_counter!(record);

/// Sets a gauge to a time in seconds. A counter of the facade is a whole number, so a time that
/// only grows is a gauge, too.
fn time(name: &'static str, labels: &[Label], time: Duration) {
    gauge!(name, labels.to_vec()).set(time.as_secs_f64());
}

fn number(name: &'static str, labels: &[Label], number: u64) {
    gauge!(name, labels.to_vec()).set(number as f64);
}

impl Snapshot {
    /// Records the counters by the facade of the crate `metrics`. Does nothing without a recorder.
    ///
    /// A program calls this from time to time, for example whenever a monitoring system asks for
    /// the metrics. The names follow OpenTelemetry's conventions; an exporter for Prometheus writes
    /// `_` for each dot. Each metric has the label `selvedge.runtime`. A metric of a worker also
    /// has the label `selvedge.worker`, the worker's index, and one of a group the label
    /// `selvedge.group`, the group's name. In the last column are the names of the same numbers in
    /// `tokio-metrics`.
    ///
    /// | metric | kind, unit | in `tokio-metrics` |
    /// |---|---|---|
    /// | `selvedge.runtime.polls`, and so on: the counters of the [`Snapshot`] | counter | `total_polls_count`, `total_noop_count` (`false_wakes`), `total_steal_count` (`stolen_tasks`), `total_steal_operations` (`steals`), `total_overflow_count` (`overflows`), `total_park_count` (`parks`), `budget_forced_yield_count` (`forced_yields`) |
    /// | `selvedge.worker.polls`, and so on: the counters of a [`WorkerSnapshot`] | counter | |
    /// | `selvedge.runtime.remote_wakes`, `.stalls` | counter | `num_remote_schedules` |
    /// | `selvedge.runtime.busy.time`, `selvedge.worker.busy.time` | gauge, s | `total_busy_duration` |
    /// | `selvedge.worker.count` | gauge | `workers_count` |
    /// | `selvedge.task.count` | gauge | `live_tasks_count` |
    /// | `selvedge.injector.length` | gauge | `global_queue_depth` |
    /// | `selvedge.injector.longest_wait.time` | gauge, s | |
    /// | `selvedge.worker.queue.length` | gauge | `total_local_queue_depth` |
    /// | `selvedge.blocking.thread.count`, `.idle_thread.count` | gauge | `blocking_threads_count`, `idle_blocking_threads_count` |
    /// | `selvedge.blocking.queue.length` | gauge | `blocking_queue_depth` |
    /// | `selvedge.monitor.refusals` | gauge | |
    /// | `selvedge.group.shares`, `.shares.got`, `.task.count` | gauge | |
    /// | `selvedge.group.queue.length`, for each worker | gauge | |
    /// | `selvedge.group.turns`, `.violations`, for each worker | counter | |
    /// | `selvedge.group.running.time`, `.waiting.time`, `.starving.time`, for each worker | gauge, s | |
    ///
    /// The histograms [`poll_times`](Snapshot::poll_times) and
    /// [`remote_waits`](Snapshot::remote_waits) are left out.
    ///
    /// A counter of a recorder never goes down. So a new runtime or group needs a label of its own:
    /// under the label of an earlier one, a counter does not change until the new number is greater
    /// than the old one. A recorder takes two groups of the same name for one group. A call costs
    /// the recorder's look-up of each metric, and takes no lock of the runtime.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
    /// runtime.block_on(runtime.spawn(async {})).unwrap();
    /// // A program installs a recorder first, such as that of `metrics-exporter-prometheus`.
    /// selvedge_executor::Snapshot::describe();
    /// runtime.snapshot().record("main");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record(&self, runtime: &str) {
        let runtime = Label::new(RUNTIME, runtime.to_owned());
        let labels = [runtime.clone()];
        self.record_counters(&labels);
        counter!("selvedge.runtime.remote_wakes", labels.to_vec()).absolute(self.remote_wakes);
        counter!("selvedge.runtime.stalls", labels.to_vec()).absolute(self.stalls);
        for (name, value) in [
            ("selvedge.worker.count", self.workers),
            ("selvedge.task.count", self.live_tasks),
            ("selvedge.injector.length", self.injector_depth),
            ("selvedge.blocking.thread.count", self.blocking_threads),
            (
                "selvedge.blocking.idle_thread.count",
                self.idle_blocking_threads,
            ),
            ("selvedge.blocking.queue.length", self.blocking_queue_depth),
            ("selvedge.monitor.refusals", self.monitor_refusals),
        ] {
            number(name, &labels, value);
        }
        time("selvedge.runtime.busy.time", &labels, self.busy_time);
        let longest = self.longest_remote_wait;
        time("selvedge.injector.longest_wait.time", &labels, longest);
        for (index, worker) in self.per_worker.iter().enumerate() {
            let labels = [runtime.clone(), Label::new(WORKER, index.to_string())];
            worker.record_counters(&labels);
            time("selvedge.worker.busy.time", &labels, worker.busy_time);
            number("selvedge.worker.queue.length", &labels, worker.ring_depth);
        }
        #[cfg(feature = "groups")]
        for group in &self.groups {
            group.record(&runtime);
        }
    }

    /// Describes the metrics of [`record`](Self::record) to the recorder: their units, and what
    /// they count. A program calls this once, after it has installed the recorder.
    ///
    /// ```
    /// selvedge_executor::Snapshot::describe(); // Does nothing without a recorder.
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn describe() {
        Self::describe_counters();
        for (name, words) in [
            (
                "selvedge.runtime.remote_wakes",
                "Wakes of tasks by other threads than workers.",
            ),
            (
                "selvedge.runtime.stalls",
                "Stalled polls that the monitor has seen.",
            ),
        ] {
            describe_counter!(name, Unit::Count, words);
        }
        for (name, words) in [
            (
                "selvedge.worker.count",
                "Workers, including those without a thread.",
            ),
            (
                "selvedge.task.count",
                "Tasks that were spawned and have not ended.",
            ),
            ("selvedge.injector.length", "Tasks in the injector."),
            (
                "selvedge.worker.queue.length",
                "Tasks in the worker's queue.",
            ),
            (
                "selvedge.blocking.thread.count",
                "Threads for blocking closures.",
            ),
            (
                "selvedge.blocking.idle_thread.count",
                "Those that wait for a closure.",
            ),
            (
                "selvedge.blocking.queue.length",
                "Blocking closures that wait for a thread.",
            ),
            (
                "selvedge.monitor.refusals",
                "1 if the monitor's thread could not be started.",
            ),
        ] {
            describe_gauge!(name, Unit::Count, words);
        }
        for (name, words) in [
            (
                "selvedge.runtime.busy.time",
                "How long the workers were awake.",
            ),
            (
                "selvedge.worker.busy.time",
                "How long the worker was awake.",
            ),
            (
                "selvedge.injector.longest_wait.time",
                "The longest wait of a task in the injector while all workers were busy.",
            ),
        ] {
            describe_gauge!(name, Unit::Seconds, words);
        }
        #[cfg(feature = "groups")]
        crate::GroupSnapshot::describe();
    }
}

#[cfg(feature = "groups")]
impl crate::GroupSnapshot {
    fn record(&self, runtime: &Label) {
        let labels = [runtime.clone(), Label::new(GROUP, self.name.clone())];
        number("selvedge.group.shares", &labels, self.shares.into());
        number("selvedge.group.shares.got", &labels, self.shares_got);
        number("selvedge.group.task.count", &labels, self.tasks);
        for (index, worker) in self.per_worker.iter().enumerate() {
            let [runtime, group] = labels.clone();
            let labels = [runtime, group, Label::new(WORKER, index.to_string())];
            number("selvedge.group.queue.length", &labels, worker.queued);
            counter!("selvedge.group.turns", labels.to_vec()).absolute(worker.turns);
            counter!("selvedge.group.violations", labels.to_vec()).absolute(worker.violations);
            time("selvedge.group.running.time", &labels, worker.runtime);
            time("selvedge.group.waiting.time", &labels, worker.waiting);
            time("selvedge.group.starving.time", &labels, worker.starving);
        }
    }

    fn describe() {
        for (name, words) in [
            ("selvedge.group.turns", "Turns for the group's own tasks."),
            (
                "selvedge.group.violations",
                "Turns of more than twice the quota.",
            ),
        ] {
            describe_counter!(name, Unit::Count, words);
        }
        for (name, words) in [
            (
                "selvedge.group.shares",
                "The shares that the group is to have.",
            ),
            (
                "selvedge.group.shares.got",
                "The shares that its time so far amounts to.",
            ),
            (
                "selvedge.group.task.count",
                "Tasks and children of the group.",
            ),
            (
                "selvedge.group.queue.length",
                "Tasks in the worker's list for the group.",
            ),
        ] {
            describe_gauge!(name, Unit::Count, words);
        }
        for (name, words) in [
            (
                "selvedge.group.running.time",
                "How long tasks of the group ran.",
            ),
            (
                "selvedge.group.waiting.time",
                "How long the group had no tasks to run.",
            ),
            (
                "selvedge.group.starving.time",
                "How long it had tasks to run, and did not run.",
            ),
        ] {
            describe_gauge!(name, Unit::Seconds, words);
        }
    }
}
