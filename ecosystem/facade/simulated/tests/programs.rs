//! The seeds of the scenarios pass, and repeat in another process.
#![cfg(selvedge_sim)]

use std::process::{Command, Stdio};

/// Runs the scenarios with so many seeds. Returns the lines that are printed.
fn run(seeds: &str, scenario: Option<&str>, env: &[(&str, &str)]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_simulated"));
    command.args(["--seeds", seeds]);
    if let Some(scenario) = scenario {
        command.args(["--scenario", scenario]);
    }
    let done = command
        .envs(env.iter().copied())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}");
    said
}

#[test]
fn axum_and_reqwest_count_each_order_once() {
    run("200", Some("web"), &[]);
}

#[test]
fn greeter_prints_its_lines_over_a_lossy_network() {
    run("200", Some("greeter"), &[]);
}

#[test]
fn kv_counts_each_command_once_or_not_at_all() {
    run("200", Some("kv"), &[]);
}

#[test]
fn journal_keeps_what_it_has_acknowledged() {
    run("200", Some("journal"), &[]);
}

/// Each process has its own addresses; the second has another environment, too.
#[test]
fn runs_in_two_processes_have_equal_hashes() {
    let one = run("100", None, &[]);
    let other = run("100", None, &[("LANG", "C"), ("MANY", &"x".repeat(5_000))]);
    assert_eq!(one, other);
}
