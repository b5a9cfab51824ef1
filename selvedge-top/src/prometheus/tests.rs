use super::*;
use std::collections::BTreeSet;

fn text_of(metrics: &Snapshot, runtime: &str) -> String {
    let text = Text::default();
    with_local_recorder(&text, || record(runtime, metrics.clone()));
    text.finish()
}

/// Returns the metrics of a text, and fails if it is malformed: if a metric has no type, a second
/// one, or samples in two places.
fn metrics_of(text: &str) -> BTreeSet<String> {
    let mut metrics = BTreeSet::new();
    let mut current = "";
    for line in text.lines() {
        if line.starts_with("# HELP ") {
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert!(metrics.insert(name.to_owned()), "{name} has two types");
            current = name;
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let name = name.split('{').next().unwrap();
        assert_eq!(name, current, "{line}");
        let is_allowed = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_allowed), "{line}");
    }
    metrics
}

/// The names are those of an exporter for the facade of the crate `metrics`.
#[test]
fn names_are_those_of_the_facade() {
    let runtime = selvedge::Builder::new().workers(2).build().unwrap();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    let text = text_of(&runtime.snapshot(), "main");
    let known = metrics_of(&text);
    for name in [
        "selvedge_runtime_polls_total",
        "selvedge_worker_busy_time_seconds",
        "selvedge_task_count",
    ] {
        assert!(known.contains(name), "{name}");
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
    }
    let sample = "selvedge_runtime_spawns_total{selvedge_runtime=\"main\"} 1\n";
    assert!(text.contains(sample), "{text}");
    let sample = "selvedge_worker_polls_total{selvedge_runtime=\"main\",selvedge_worker=\"1\"} ";
    assert!(text.contains(sample), "{text}");
    assert!(text.ends_with('\n'));
}

/// The snapshots are serialised with all their fields: so a new counter is not forgotten.
#[test]
fn each_number_of_a_snapshot_is_a_metric() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let group = runtime.group("batch").build().unwrap();
    let metrics = runtime.snapshot();
    let known = metrics_of(&text_of(&metrics, "main"));
    let value = serde_json::to_value(&metrics).unwrap();
    let expect = |prefix: &str, value: &serde_json::Value| {
        for (field, value) in value.as_object().unwrap() {
            let name = match &**field {
                "workers" => "selvedge_worker_count",
                "live_tasks" => "selvedge_task_count",
                "injector_depth" => "selvedge_injector_length",
                "blocking_threads" => "selvedge_blocking_thread_count",
                "idle_blocking_threads" => "selvedge_blocking_idle_thread_count",
                "blocking_queue_depth" => "selvedge_blocking_queue_length",
                "monitor_refusals" => "selvedge_monitor_refusals",
                "longest_remote_wait" => "selvedge_injector_longest_wait_time_seconds",
                "ring_depth" => "selvedge_worker_queue_length",
                "queued" => "selvedge_group_queue_length",
                // The virtual runtime only orders the groups of a worker.
                "vruntime" => continue,
                _ if value.is_u64() => &format!("{prefix}_{field}_total"),
                // A span is an object of seconds and nanoseconds.
                _ if value.get("nanos").is_some() => {
                    let time = field
                        .trim_end_matches("_time")
                        .replace("runtime", "running");
                    &format!("{prefix}_{time}_time_seconds")
                }
                _ => continue,
            };
            assert!(known.contains(name), "{name}");
        }
    };
    expect("selvedge_runtime", &value);
    expect("selvedge_worker", &value["per_worker"][0]);
    expect("selvedge_group", &value["groups"][0]["per_worker"][0]);
    drop(group);
}

#[test]
fn labels_are_escaped() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let text = text_of(&runtime.snapshot(), "a\\b\"c\nd");
    let sample = "selvedge_worker_count{selvedge_runtime=\"a\\\\b\\\"c\\nd\"} 1\n";
    assert!(text.contains(sample), "{text}");
    metrics_of(&text);
}

#[cfg(feature = "groups")]
#[test]
fn groups_of_one_name_have_samples_of_their_own() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let groups = [1, 2].map(|shares| runtime.group("same").shares(shares).build().unwrap());
    let text = text_of(&runtime.snapshot(), "main");
    let mut samples: Vec<_> = text
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .collect();
    let all = samples.len();
    samples.sort_unstable();
    samples.dedup_by_key(|(name, _)| *name);
    assert_eq!(samples.len(), all, "{text}");
    drop(groups);
}
