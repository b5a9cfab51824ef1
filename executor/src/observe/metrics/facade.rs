//! Passes a snapshot to the recorder of the crate `metrics`.
use super::{Snapshot, WorkerSnapshot, counters::each_counter};
use ::metrics::{Label, counter, gauge};
use std::time::Duration;

/// Makes the functions that record each counter of the list.
macro_rules! record {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        impl Snapshot {
            fn record_counters(&self, labels: &[Label]) {
                $(
                    counter!(concat!("selvedge_", stringify!($name)), labels.to_vec())
                        .absolute(self.$name);
                )*
            }
        }

        impl WorkerSnapshot {
            fn record_counters(&self, labels: &[Label]) {
                $(
                    counter!(concat!("selvedge_worker_", stringify!($name)), labels.to_vec())
                        .absolute(self.$name);
                )*
            }
        }
    };
}

each_counter!(record);

fn nanos(time: Duration) -> u64 {
    time.as_nanos().try_into().unwrap_or(u64::MAX)
}

impl Snapshot {
    /// Records the counters by the facade of the crate `metrics`. Does nothing without a recorder.
    ///
    /// A program calls this from time to time, for example whenever a monitoring system asks for
    /// the metrics. Each metric has the label `runtime`. A metric of a worker also has the label
    /// `worker`, with the worker's index. A metric of a group also has the label `group`, with the
    /// group's name. A metric of a group on one worker has all three labels:
    ///
    /// | metric | kind |
    /// |---|---|
    /// | `selvedge_polls`, and so on: the counters of the [`Snapshot`], under their names | counter |
    /// | `selvedge_worker_polls`, and so on: the counters of a [`WorkerSnapshot`] | counter |
    /// | `selvedge_busy_time_nanoseconds`, `selvedge_worker_busy_time_nanoseconds` | counter |
    /// | `selvedge_workers`, `_live_tasks`, `_injector_depth`, `_blocking_threads`, `_idle_blocking_threads`, `_blocking_queue_depth`, `_monitor_refusals` | gauge |
    /// | `selvedge_longest_remote_wait_nanoseconds` | gauge |
    /// | `selvedge_worker_ring_depth` | gauge |
    /// | `selvedge_group_shares`, `_tasks` | gauge |
    /// | `selvedge_group_queued`, for each worker | gauge |
    /// | `selvedge_group_turns`, `_violations`, `_runtime_nanoseconds`, `_waiting_nanoseconds`, `_starving_nanoseconds`, for each worker | counter |
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
    /// runtime.snapshot().record("main");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn record(&self, runtime: &str) {
        let runtime = Label::new("runtime", runtime.to_owned());
        let labels = [runtime.clone()];
        self.record_counters(&labels);
        let counters = [
            ("selvedge_busy_time_nanoseconds", nanos(self.busy_time)),
            ("selvedge_remote_wakes", self.remote_wakes),
            ("selvedge_stalls", self.stalls),
        ];
        for (name, number) in counters {
            counter!(name, labels.to_vec()).absolute(number);
        }
        let gauges = [
            ("selvedge_workers", self.workers),
            ("selvedge_live_tasks", self.live_tasks),
            ("selvedge_injector_depth", self.injector_depth),
            ("selvedge_blocking_threads", self.blocking_threads),
            ("selvedge_idle_blocking_threads", self.idle_blocking_threads),
            ("selvedge_blocking_queue_depth", self.blocking_queue_depth),
            ("selvedge_monitor_refusals", self.monitor_refusals),
            (
                "selvedge_longest_remote_wait_nanoseconds",
                nanos(self.longest_remote_wait),
            ),
        ];
        for (name, number) in gauges {
            gauge!(name, labels.to_vec()).set(number as f64);
        }
        for (index, worker) in self.per_worker.iter().enumerate() {
            let labels = [runtime.clone(), Label::new("worker", index.to_string())];
            worker.record_counters(&labels);
            counter!("selvedge_worker_busy_time_nanoseconds", labels.to_vec())
                .absolute(nanos(worker.busy_time));
            gauge!("selvedge_worker_ring_depth", labels.to_vec()).set(worker.ring_depth as f64);
        }
        #[cfg(feature = "groups")]
        for group in &self.groups {
            group.record(&runtime);
        }
    }
}

#[cfg(feature = "groups")]
impl crate::GroupSnapshot {
    fn record(&self, runtime: &Label) {
        let labels = [runtime.clone(), Label::new("group", self.name.clone())];
        gauge!("selvedge_group_shares", labels.to_vec()).set(self.shares);
        gauge!("selvedge_group_tasks", labels.to_vec()).set(self.tasks as f64);
        for (index, worker) in self.per_worker.iter().enumerate() {
            let [runtime, group] = labels.clone();
            let labels = [runtime, group, Label::new("worker", index.to_string())];
            gauge!("selvedge_group_queued", labels.to_vec()).set(worker.queued as f64);
            let counters = [
                ("selvedge_group_turns", worker.turns),
                ("selvedge_group_violations", worker.violations),
                ("selvedge_group_runtime_nanoseconds", nanos(worker.runtime)),
                ("selvedge_group_waiting_nanoseconds", nanos(worker.waiting)),
                (
                    "selvedge_group_starving_nanoseconds",
                    nanos(worker.starving),
                ),
            ];
            for (name, number) in counters {
                counter!(name, labels.to_vec()).absolute(number);
            }
        }
    }
}
