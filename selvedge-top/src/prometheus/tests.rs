use super::*;
use std::collections::BTreeSet;

fn text_of(metrics: &Snapshot, runtime: &str) -> String {
    let mut text = Text::default();
    add_runtime(&mut text, runtime, metrics);
    text.finish()
}

/// Returns the metrics of a text, and fails if it is malformed: if a metric has no type, a second
/// one, or samples in two places.
fn metrics_of(text: &str) -> BTreeSet<String> {
    let mut metrics = BTreeSet::new();
    let mut current = "";
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert!(metrics.insert(name.to_owned()), "{name} has two types");
            current = name;
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<u64>().is_ok(), "{line}");
        let name = name.split('{').next().unwrap();
        assert_eq!(name, current, "{line}");
        let is_allowed = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_allowed), "{line}");
    }
    metrics
}

/// The snapshots are serialised with all their fields: so a new counter is not forgotten.
#[test]
fn each_number_of_a_snapshot_is_a_metric() {
    let runtime = selvedge::Builder::new().workers(2).build().unwrap();
    let group = runtime.group("batch").build().unwrap();
    let task = selvedge::spawn_in(&group, async {}).unwrap();
    runtime.block_on(task).unwrap();
    let metrics = runtime.snapshot();
    let known = metrics_of(&text_of(&metrics, "main"));
    let value = serde_json::to_value(&metrics).unwrap();
    let expect = |prefix: &str, value: &serde_json::Value| {
        for (field, value) in value.as_object().unwrap() {
            // A span is an object of seconds and nanoseconds.
            let is_span = value.get("nanos").is_some();
            if !value.is_u64() && !is_span {
                continue;
            }
            // The virtual runtime only orders the groups of a worker.
            if field == "vruntime" {
                continue;
            }
            let end = if is_span { "_nanoseconds" } else { "" };
            let name = format!("{prefix}_{field}{end}");
            assert!(known.contains(&name), "{name}");
        }
    };
    expect("selvedge", &value);
    expect("selvedge_worker", &value["per_worker"][0]);
    expect("selvedge_group", &value["groups"][0]["per_worker"][0]);
    assert!(known.contains("selvedge_group_shares"));
}

#[test]
fn labels_are_escaped() {
    let runtime = selvedge::Builder::new().workers(1).build().unwrap();
    let text = text_of(&runtime.snapshot(), "a\\b\"c\nd");
    let sample = "selvedge_workers{runtime=\"a\\\\b\\\"c\\nd\"} 1\n";
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
