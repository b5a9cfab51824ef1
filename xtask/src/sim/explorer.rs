//! The processes of the explorer: each runs some seeds of one scenario.
use anyhow::{Context, Result, ensure};
use std::{path::Path, process::Command};

/// The seeds of one process, which runs one scenario: a crash of a simulated host leaks the stacks
/// of its threads, and a process may have only so many mappings of memory.
const SEEDS_OF_A_PROCESS: u64 = 1_000;

/// Divides seeds among processes: the first seed of each, and their number.
pub(super) fn parts(first: u64, seeds: u64) -> impl Iterator<Item = (u64, u64)> {
    let firsts = (0..seeds).step_by(SEEDS_OF_A_PROCESS as usize);
    firsts.map(move |at| (first + at, SEEDS_OF_A_PROCESS.min(seeds - at)))
}

/// The explorer's options for some seeds of a scenario.
pub(super) fn range(scenario: &str, first: u64, seeds: u64) -> [String; 6] {
    let (first, seeds) = (first.to_string(), seeds.to_string());
    ["--scenario", scenario, "--first", &first, "--seeds", &seeds].map(str::to_owned)
}

/// Returns the scenario that is chosen, or all, in the explorer's order.
pub(super) fn chosen(program: &Path, scenario: Option<&str>) -> Result<Vec<String>> {
    if let Some(scenario) = scenario {
        return Ok(vec![scenario.to_owned()]);
    }
    let output = Command::new(program).arg("--list").output();
    let text = output.context("running the explorer")?.stdout;
    let text = String::from_utf8_lossy(&text);
    let scenarios: Vec<_> = text.lines().map(str::to_owned).collect();
    ensure!(!scenarios.is_empty(), "the explorer lists no scenario");
    Ok(scenarios)
}
