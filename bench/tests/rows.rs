//! Runs the program `bench` as `cargo xtask bench` does: each row once on each runtime.
//!
//! The program has no unit tests, because with them cargo would compile it twice. Some of its files
//! below have unit tests, which run as part of this test.
use serde_json::Value;
use std::{
    collections::HashSet,
    process::{Command, Output},
};

#[allow(dead_code)]
#[path = "../src/client/arrivals.rs"]
mod arrivals;
#[allow(dead_code)]
#[path = "../src/client/dialog.rs"]
mod dialog;
#[allow(dead_code)]
#[path = "../src/hello.rs"]
mod hello;
#[allow(dead_code)]
#[path = "../src/message.rs"]
mod message;
#[path = "../src/names.rs"]
mod names;
#[allow(dead_code)]
#[path = "../src/noise.rs"]
mod noise;
#[allow(dead_code)]
#[path = "../src/percentiles.rs"]
mod percentiles;
#[allow(dead_code)]
#[path = "../src/random.rs"]
mod random;
#[allow(dead_code)]
#[path = "../src/client/spec.rs"]
mod spec;

fn bench(arguments: &str) -> Output {
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bench"));
    bench.args(arguments.split(' ')).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sample(rt: &str, row: &str) -> Output {
    // A row that does not end must not hang the test forever.
    let limits = "--millis 0 --limit 3600 --json";
    bench(&format!("sample --rt {rt} --row {row} {limits}"))
}

fn names_of(list: &Value) -> Vec<&str> {
    let list = list.as_array().unwrap().iter();
    list.map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[test]
fn row_on_runtime_that_has_it_ends() {
    let list = json(&bench("list --json"));
    // The rows and the runtimes that have been refused. One refusal of each is enough, because the
    // program refuses all pairs in one place.
    let mut refused = HashSet::new();
    for row in list["rows"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let without = row["without"].as_array().unwrap();
        for rt in names::RUNTIMES {
            if without.iter().any(|lacking| lacking == rt) {
                if refused.insert(name) | refused.insert(rt) {
                    let status = sample(rt, name).status;
                    assert_eq!(status.code(), Some(2), "{rt} lacks {name}");
                }
                continue;
            }
            // `compare` takes a sample again that was disturbed. So does this test, which runs
            // beside those of the workspace.
            let taken = Some(sample(rt, name)).filter(|output| output.status.success());
            let sample = json(&taken.unwrap_or_else(|| sample(rt, name)));
            assert!(sample["operations"].as_u64() > Some(0), "{sample}");
            assert!(sample["value"].as_f64() > Some(0.0), "{sample}");
        }
    }
}

#[test]
fn our_runtime_has_every_row() {
    let list = json(&bench("list --json"));
    for row in list["rows"].as_array().unwrap() {
        let without = row["without"].as_array().unwrap();
        assert!(without.iter().all(|lacking| lacking != "selvedge"), "{row}");
    }
}

#[test]
fn rows_and_runtimes_are_listed_in_names() {
    let list = json(&bench("list --json"));
    let rows: Vec<_> = names::rows().map(|(name, _)| *name).collect();
    assert_eq!(names_of(&list["rows"]), rows);
    assert_eq!(names_of(&list["runtimes"]), names::RUNTIMES);
}

#[test]
fn unknown_row_is_refused_by_name() {
    let output = sample("selvedge", "nothing");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no row nothing"));
}
