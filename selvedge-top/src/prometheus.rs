//! The text format of Prometheus, version 0.0.4.
//!
//! A metric has the name of its field in the `Snapshot` of `selvedge`, after `selvedge_`,
//! `selvedge_worker_` or `selvedge_group_`. Those of processes begin with `process_scheduler_`.
use crate::site::Site;
use selvedge::{Snapshot, WorkerSnapshot};
use std::{
    fmt::{self, Write},
    time::Duration,
};

/// The content type of the text.
pub(crate) const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Makes the list of counters that a runtime and each of its workers have.
macro_rules! counters {
    ($($name:ident),* $(,)?) => {
        fn of_runtime(metrics: &Snapshot) -> impl Iterator<Item = (&'static str, u64)> {
            [$((stringify!($name), metrics.$name)),*].into_iter()
        }

        fn of_worker(metrics: &WorkerSnapshot) -> impl Iterator<Item = (&'static str, u64)> {
            [$((stringify!($name), metrics.$name)),*].into_iter()
        }
    };
}

counters! {
    spawns, ends, polls, local_wakes, lifo_hits, inherited_slices, injected_tasks, steals,
    stolen_tasks, slot_steals, overflows, searches, forced_yields, preemptions, syscalls, retakes,
    ended_slices, backoffs, backoff_hits, parks, ended_parks, unparks, false_wakes,
    thread_refusals,
}

/// The text, in which all samples of a metric are together.
#[derive(Default)]
struct Text {
    /// The metrics in the order of their first samples: the name, the kind, and the samples.
    metrics: Vec<(String, &'static str, String)>,
}

/// A label: its name and its value.
type Label<'a> = (&'a str, &'a dyn fmt::Display);

impl Text {
    fn add(&mut self, name: impl Into<String>, kind: &'static str, labels: &[Label], value: u64) {
        let name = name.into();
        let at = match self.metrics.iter().position(|metric| metric.0 == name) {
            Some(at) => at,
            None => {
                self.metrics.push((name, kind, String::new()));
                self.metrics.len() - 1
            }
        };
        let (name, _, samples) = &mut self.metrics[at];
        samples.push_str(name);
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            let _ = write!(samples, "{before}{label}=\"");
            let _ = write!(Escaped(samples), "{value}");
            samples.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(samples, "{end} {value}");
    }

    fn counter(&mut self, name: impl Into<String>, labels: &[Label], value: u64) {
        self.add(name, "counter", labels, value);
    }

    fn gauge(&mut self, name: impl Into<String>, labels: &[Label], value: u64) {
        self.add(name, "gauge", labels, value);
    }

    fn finish(self) -> String {
        let mut text = String::new();
        for (name, kind, samples) in self.metrics {
            let _ = writeln!(text, "# TYPE {name} {kind}");
            text.push_str(&samples);
        }
        text
    }
}

/// Escapes the value of a label.
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
        Ok(())
    }
}

/// Returns the counters of a page's runtime and schedulers.
pub(crate) fn text(site: &Site) -> String {
    let mut text = Text::default();
    add_runtime(&mut text, site.runtime_name(), &site.handle().snapshot());
    #[cfg(feature = "processes")]
    for scheduler in site.schedulers() {
        let name = scheduler.name();
        let labels: [Label; 1] = [("scheduler", &name)];
        let (counters, gauges) = scheduler.counters();
        for (name, value) in counters {
            text.counter(format!("process_scheduler_{name}"), &labels, value);
        }
        for (name, value) in gauges {
            text.gauge(format!("process_scheduler_{name}"), &labels, value);
        }
    }
    text.finish()
}

fn add_runtime(text: &mut Text, runtime: &str, metrics: &Snapshot) {
    let runtime: Label = ("runtime", &runtime);
    let labels = [runtime];
    let own = [
        ("busy_time_nanoseconds", nanos(metrics.busy_time)),
        ("remote_wakes", metrics.remote_wakes),
        ("stalls", metrics.stalls),
    ];
    for (name, value) in of_runtime(metrics).chain(own) {
        text.counter(format!("selvedge_{name}"), &labels, value);
    }
    let gauges = [
        ("workers", metrics.workers),
        ("live_tasks", metrics.live_tasks),
        ("injector_depth", metrics.injector_depth),
        ("blocking_threads", metrics.blocking_threads),
        ("idle_blocking_threads", metrics.idle_blocking_threads),
        ("blocking_queue_depth", metrics.blocking_queue_depth),
        ("monitor_refusals", metrics.monitor_refusals),
        (
            "longest_remote_wait_nanoseconds",
            nanos(metrics.longest_remote_wait),
        ),
    ];
    for (name, value) in gauges {
        text.gauge(format!("selvedge_{name}"), &labels, value);
    }
    for (index, worker) in metrics.per_worker.iter().enumerate() {
        let labels: [Label; 2] = [runtime, ("worker", &index)];
        let busy = ("busy_time_nanoseconds", nanos(worker.busy_time));
        for (name, value) in of_worker(worker).chain([busy]) {
            text.counter(format!("selvedge_worker_{name}"), &labels, value);
        }
        text.gauge("selvedge_worker_ring_depth", &labels, worker.ring_depth);
    }
    #[cfg(feature = "groups")]
    {
        let names = crate::names::distinct(metrics.groups.iter().map(|group| &*group.name));
        for (group, name) in metrics.groups.iter().zip(names) {
            add_group(text, runtime, &name, group);
        }
    }
}

#[cfg(feature = "groups")]
fn add_group(text: &mut Text, runtime: Label, name: &str, group: &selvedge::GroupSnapshot) {
    let labels: [Label; 2] = [runtime, ("group", &name)];
    text.gauge("selvedge_group_shares", &labels, group.shares.into());
    text.gauge("selvedge_group_tasks", &labels, group.tasks);
    for (index, worker) in group.per_worker.iter().enumerate() {
        let labels: [Label; 3] = [labels[0], labels[1], ("worker", &index)];
        text.gauge("selvedge_group_queued", &labels, worker.queued);
        let counters = [
            ("turns", worker.turns),
            ("violations", worker.violations),
            ("runtime_nanoseconds", nanos(worker.runtime)),
            ("waiting_nanoseconds", nanos(worker.waiting)),
            ("starving_nanoseconds", nanos(worker.starving)),
        ];
        for (name, value) in counters {
            text.counter(format!("selvedge_group_{name}"), &labels, value);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
