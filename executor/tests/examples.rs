//! Runs the examples that check themselves.
use std::process::Command;

fn run(example: &str) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "run",
        "--quiet",
        "--package",
        "selvedge",
        "--example",
        example,
    ]);
    // The flags of a sanitizer are for these tests, and not for the examples that they build.
    cargo.env_remove("RUSTFLAGS");
    let output = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!output.stdout.is_empty(), "it shows nothing");
}

#[test]
fn executor_of_parts_runs() {
    run("assemble");
}

#[test]
fn executor_of_parts_that_steals_runs() {
    run("assemble_stealing");
}

#[test]
fn executor_of_two_classes_runs() {
    run("assemble_priority");
}

#[test]
fn worker_with_a_priority_queue_runs() {
    run("assemble_run_queue");
}

#[test]
fn worker_with_a_timer_heap_runs() {
    run("assemble_park");
}

#[test]
fn tour_of_the_scheduler_runs() {
    run("scheduler_tour");
}

#[test]
fn processes_with_async_handlers_run() {
    run("process_handlers");
}
