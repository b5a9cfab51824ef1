//! Each example of `task-sync` runs under tokio, smol and selvedge.
//!
//! The examples themselves cannot name selvedge, as it depends on their crate.
#[path = "../../task-sync/examples/jobs.rs"]
mod jobs;
#[path = "../../task-sync/examples/rooms.rs"]
mod rooms;

use std::{fs, path::Path};

/// The names of the examples below.
const EXAMPLES: [&str; 2] = ["jobs", "rooms"];

fn check_jobs(sum: u64) {
    assert_eq!(sum, 338_350);
}

fn check_rooms(heard: &[String]) {
    let of_each = ["Ada: hello", "Bob: hello", "Cy: hello"].map(|words| [words; 3]);
    assert_eq!(heard, of_each.concat());
}

#[test]
fn examples_run_under_tokio() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    check_jobs(runtime.block_on(jobs::run(|task| drop(tokio::spawn(task)))));
    check_rooms(&runtime.block_on(rooms::run(|task| drop(tokio::spawn(task)))));
}

#[test]
fn examples_run_under_smol() {
    check_jobs(smol::block_on(jobs::run(|task| smol::spawn(task).detach())));
    check_rooms(&smol::block_on(rooms::run(|task| {
        smol::spawn(task).detach()
    })));
}

#[test]
fn examples_run_under_selvedge() {
    let runtime = selvedge::Builder::new().workers(2).build().unwrap();
    check_jobs(runtime.block_on(jobs::run(|task| drop(selvedge::spawn(task)))));
    check_rooms(&runtime.block_on(rooms::run(|task| drop(selvedge::spawn(task)))));
}

#[test]
fn all_examples_of_the_crate_are_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../task-sync/examples");
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            entry
                .unwrap()
                .path()
                .file_stem()
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, EXAMPLES);
}
