//! A test that a snapshot of the runtime's metrics reaches a recorder of the crate `metrics`. The
//! test's recorder keeps each value that it gets.
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
use selvedge_executor::{Builder, Snapshot, spawn_in};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

/// The values of the metrics, by the metrics' names and labels.
type Values = Arc<Mutex<BTreeMap<String, f64>>>;

#[derive(Default)]
struct Keeper(Values, Mutex<BTreeMap<String, Unit>>);

/// A metric of a keeper.
struct Kept(Values, String);

impl Kept {
    fn set(&self, value: f64) {
        self.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

impl CounterFn for Kept {
    fn increment(&self, _: u64) {
        panic!("a snapshot has absolute counters");
    }

    fn absolute(&self, value: u64) {
        self.set(value as f64);
    }
}

impl GaugeFn for Kept {
    fn increment(&self, _: f64) {
        panic!("a snapshot sets gauges");
    }

    fn decrement(&self, _: f64) {
        panic!("a snapshot sets gauges");
    }

    fn set(&self, value: f64) {
        self.set(value);
    }
}

impl Keeper {
    fn describe(&self, name: KeyName, unit: Option<Unit>, words: SharedString) {
        assert!(words.ends_with('.'), "{}: {words}", name.as_str());
        let before = (self.1.lock().unwrap()).insert(name.as_str().to_owned(), unit.unwrap());
        assert_eq!(before, None, "{}", name.as_str());
    }

    fn kept(&self, key: &Key) -> Arc<Kept> {
        let labels = key
            .labels()
            .map(|label| format!(" {}={}", label.key(), label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::new(Kept(self.0.clone(), name))
    }
}

impl Recorder for Keeper {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, words: SharedString) {
        self.describe(name, unit, words);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, words: SharedString) {
        self.describe(name, unit, words);
    }

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.kept(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.kept(key))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("a snapshot has no histogram");
    }
}

/// Fails if a field of the snapshot gets the name or the labels of another field.
#[test]
fn recorder_gets_the_numbers_of_a_snapshot() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let batch = runtime.group("batch").shares(50).build().unwrap();
    for _ in 0..10 {
        let task = spawn_in(&batch, selvedge_executor::yield_now()).unwrap();
        runtime.block_on(task).unwrap();
    }
    let mut snapshot = runtime.snapshot();
    snapshot.monitor_refusals = 1;
    snapshot.longest_remote_wait = Duration::from_micros(3);
    let keeper = Keeper::default();
    metrics::with_local_recorder(&keeper, || snapshot.record("test"));
    let values = keeper.0.lock().unwrap();
    let value = |name: &str| {
        let value = values.get(name);
        *value.unwrap_or_else(|| panic!("{name} is not among {:?}", values.keys()))
    };
    assert_eq!(value("selvedge.runtime.spawns selvedge.runtime=test"), 10.0);
    assert_eq!(
        value("selvedge.runtime.polls selvedge.runtime=test"),
        snapshot.polls as f64
    );
    assert_eq!(value("selvedge.worker.count selvedge.runtime=test"), 2.0);
    assert_eq!(
        value("selvedge.monitor.refusals selvedge.runtime=test"),
        1.0
    );
    let longest = value("selvedge.injector.longest_wait.time selvedge.runtime=test");
    assert_eq!(longest, 3e-6);
    let sum = |name: &str, group: &str| -> f64 {
        (0..2)
            .map(|worker| {
                value(&format!(
                    "{name} selvedge.runtime=test{group} selvedge.worker={worker}"
                ))
            })
            .sum()
    };
    assert_eq!(sum("selvedge.worker.polls", ""), snapshot.polls as f64);
    assert_eq!(
        value("selvedge.group.shares selvedge.runtime=test selvedge.group=batch"),
        50.0
    );
    assert_eq!(
        value("selvedge.group.shares selvedge.runtime=test selvedge.group=main"),
        1000.0
    );
    let group = snapshot
        .groups
        .iter()
        .find(|group| group.name == "batch")
        .unwrap();
    let sum = |name| sum(name, " selvedge.group=batch");
    let is_near = |one: f64, other: Duration| (one - other.as_secs_f64()).abs() < 1e-9;
    assert!(is_near(sum("selvedge.group.running.time"), group.runtime));
    assert!(is_near(sum("selvedge.group.waiting.time"), group.waiting));
    assert_eq!(sum("selvedge.group.queue.length"), group.queued as f64);
    assert!(sum("selvedge.group.turns") > 0.0);
    let got = "selvedge.group.shares.got selvedge.runtime=test selvedge.group=batch";
    assert_eq!(value(got), group.shares_got as f64);
    // Each metric has a description, and there is none of a metric that is not recorded.
    metrics::with_local_recorder(&keeper, Snapshot::describe);
    let names: BTreeSet<_> = values
        .keys()
        .map(|key| key.split(' ').next().unwrap())
        .collect();
    let described = keeper.1.lock().unwrap();
    let described_names: BTreeSet<_> = described.keys().map(String::as_str).collect();
    assert_eq!(names, described_names);
    for (name, unit) in described.iter() {
        assert_eq!(*unit == Unit::Seconds, name.ends_with(".time"), "{name}");
    }
}
