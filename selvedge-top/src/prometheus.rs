//! The text format of Prometheus, version 0.0.4.
//!
//! The metrics are those that [`Snapshot::record`](selvedge::Snapshot::record) gives to a recorder
//! of the crate `metrics`, and those of the schedulers of processes. Their names are the same ones
//! after an exporter's rules: `_` for each dot, and the ends `_total` and `_seconds`.
use crate::site::Site;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit, with_local_recorder,
};
use selvedge::Snapshot;
use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The content type of the text.
pub(crate) const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A recorder that makes the text of what one request records.
#[derive(Default)]
struct Text(Mutex<BTreeMap<String, Metric>>);

/// A metric of this name, in the facade's spelling.
#[derive(Default)]
struct Metric {
    is_counter: bool,
    unit: Option<Unit>,
    help: SharedString,
    samples: Vec<Sample>,
}

struct Sample {
    /// As they stand in the text, with their braces.
    labels: String,
    value: Arc<Value>,
}

/// A number that is recorded. A counter loses digits above 2^53, as in Prometheus itself.
#[derive(Default)]
struct Value(Mutex<f64>);

impl Value {
    fn lock(&self) -> MutexGuard<'_, f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CounterFn for Value {
    fn increment(&self, by: u64) {
        *self.lock() += by as f64;
    }

    fn absolute(&self, value: u64) {
        *self.lock() = value as f64;
    }
}

impl GaugeFn for Value {
    fn increment(&self, by: f64) {
        *self.lock() += by;
    }

    fn decrement(&self, by: f64) {
        *self.lock() -= by;
    }

    fn set(&self, value: f64) {
        *self.lock() = value;
    }
}

impl Text {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Metric>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn describe(&self, name: &KeyName, unit: Option<Unit>, help: SharedString) {
        let mut metrics = self.lock();
        let metric = metrics.entry(name.as_str().to_owned()).or_default();
        (metric.unit, metric.help) = (unit, help);
    }

    fn add(&self, key: &Key, is_counter: bool) -> Arc<Value> {
        let mut labels = String::new();
        for label in key.labels() {
            labels.push(if labels.is_empty() { '{' } else { ',' });
            let _ = write!(labels, "{}=\"", label.key().replace('.', "_"));
            let _ = write!(Escaped(&mut labels), "{}", label.value());
            labels.push('"');
        }
        if !labels.is_empty() {
            labels.push('}');
        }
        let value = Arc::<Value>::default();
        let mut metrics = self.lock();
        let metric = metrics.entry(key.name().to_owned()).or_default();
        metric.is_counter = is_counter;
        metric.samples.push(Sample {
            labels,
            value: value.clone(),
        });
        value
    }

    fn finish(&self) -> String {
        let mut text = String::new();
        for (name, metric) in &*self.lock() {
            // A description of what this runtime does not have.
            if metric.samples.is_empty() {
                continue;
            }
            let end = match (metric.is_counter, metric.unit) {
                (true, _) => "_total",
                (false, Some(Unit::Seconds)) => "_seconds",
                (false, _) => "",
            };
            let name = format!("{}{end}", name.replace('.', "_"));
            if !metric.help.is_empty() {
                let _ = writeln!(text, "# HELP {name} {}", metric.help);
            }
            let kind = if metric.is_counter {
                "counter"
            } else {
                "gauge"
            };
            let _ = writeln!(text, "# TYPE {name} {kind}");
            for Sample { labels, value } in &metric.samples {
                let _ = writeln!(text, "{name}{labels} {}", *value.lock());
            }
        }
        text
    }
}

impl Recorder for Text {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(&name, unit, help);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, help: SharedString) {
        self.describe(&name, unit, help);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.add(key, true))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.add(key, false))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
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

/// Returns the metrics of a page's runtime and schedulers.
pub(crate) fn text(site: &Site) -> String {
    let text = Text::default();
    with_local_recorder(&text, || {
        record(site.runtime_name(), site.handle().snapshot());
        #[cfg(feature = "processes")]
        for scheduler in site.schedulers() {
            scheduler.record();
        }
    });
    text.finish()
}

fn record(runtime: &str, #[allow(unused_mut)] mut metrics: Snapshot) {
    // No two samples may have the same labels.
    #[cfg(feature = "groups")]
    {
        let names = crate::names::distinct(metrics.groups.iter().map(|group| &*group.name));
        for (group, name) in metrics.groups.iter_mut().zip(names) {
            group.name = name;
        }
    }
    Snapshot::describe();
    metrics.record(runtime);
}

#[cfg(test)]
mod tests;
