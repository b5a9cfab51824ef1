//! A test that a snapshot of the runtime's metrics reaches a recorder of the crate `metrics`. The
//! test's recorder keeps each value that it gets.
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, Key, KeyName, Metadata, Recorder, SharedString,
    Unit,
};
use selvedge_executor::{Builder, spawn_in};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// The values of the metrics, by the metrics' names and labels.
type Values = Arc<Mutex<BTreeMap<String, f64>>>;

#[derive(Default)]
struct Keeper(Values);

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
    fn kept(&self, key: &Key) -> Arc<Kept> {
        let labels = key
            .labels()
            .map(|label| format!(" {}={}", label.key(), label.value()));
        let name = format!("{}{}", key.name(), labels.collect::<String>());
        Arc::new(Kept(self.0.clone(), name))
    }
}

impl Recorder for Keeper {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
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
    assert_eq!(value("selvedge_spawns runtime=test"), 10.0);
    assert_eq!(value("selvedge_polls runtime=test"), snapshot.polls as f64);
    assert_eq!(value("selvedge_workers runtime=test"), 2.0);
    assert_eq!(value("selvedge_monitor_refusals runtime=test"), 1.0);
    let longest = value("selvedge_longest_remote_wait_nanoseconds runtime=test");
    assert_eq!(longest, 3_000.0);
    let sum = |name: &str, group: &str| -> f64 {
        (0..2)
            .map(|worker| value(&format!("{name} runtime=test{group} worker={worker}")))
            .sum()
    };
    assert_eq!(sum("selvedge_worker_polls", ""), snapshot.polls as f64);
    assert_eq!(
        value("selvedge_group_shares runtime=test group=batch"),
        50.0
    );
    assert_eq!(
        value("selvedge_group_shares runtime=test group=main"),
        1000.0
    );
    let group = snapshot
        .groups
        .iter()
        .find(|group| group.name == "batch")
        .unwrap();
    let sum = |name| sum(name, " group=batch");
    assert_eq!(
        sum("selvedge_group_runtime_nanoseconds"),
        group.runtime.as_nanos() as f64
    );
    assert_eq!(
        sum("selvedge_group_waiting_nanoseconds"),
        group.waiting.as_nanos() as f64
    );
    assert_eq!(sum("selvedge_group_queued"), group.queued as f64);
    assert!(sum("selvedge_group_turns") > 0.0);
}
