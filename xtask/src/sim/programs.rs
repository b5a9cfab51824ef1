//! `cargo xtask sim --programs`: mistakes of programs, each behind a flag of its scenario.
use super::explorer::parts;
use anyhow::{Context, Result, ensure};
use project::say;
use std::{
    collections::BTreeSet,
    path::Path,
    process::{Command, Output},
};

/// A mistake that the explorer can plant.
struct Mistake {
    scenario: String,
    name: String,
}

fn explore(program: &Path, options: &[&str]) -> Result<Output> {
    let output = Command::new(program).args(options).output();
    output.context("running the explorer")
}

fn mistakes(program: &Path) -> Result<Vec<Mistake>> {
    let output = explore(program, &["--mistakes"])?;
    let text = String::from_utf8_lossy(&output.stdout);
    let all = text.lines().map(|line| {
        let (scenario, name) = line.split_once(' ')?;
        let (scenario, name) = (scenario.to_owned(), name.to_owned());
        Some(Mistake { scenario, name })
    });
    let all: Option<Vec<_>> = all.collect();
    all.context("the explorer lists its mistakes in another way")
}

/// Runs a scenario with so many seeds. Returns the first one that fails, and the kind of the
/// failure.
fn first_failure(program: &Path, seeds: u64, chosen: [&str; 2]) -> Result<Option<(u64, String)>> {
    for (first, count) in parts(0, seeds) {
        let (from, count_text) = (first.to_string(), count.to_string());
        let [option, name] = chosen;
        let fixed = ["--quiet", "--stop", option, name];
        let range = ["--first", &from, "--seeds", &count_text];
        let output = explore(program, &[&fixed[..], &range[..]].concat())?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if let Some((head, kind)) = text.trim().split_once(" fails: ") {
            let seed = head.rsplit(' ').next().and_then(|seed| seed.parse().ok());
            let seed = seed.context("the explorer names no seed")?;
            return Ok(Some((seed, kind.to_owned())));
        }
        ensure!(output.status.success(), "the explorer has failed: {name}");
    }
    Ok(None)
}

/// Plants each mistake, and says with which seed its scenario fails. Then runs the scenarios
/// without a mistake. Returns whether at least nine in ten mistakes were found, and no scenario
/// fails without one.
pub(super) fn try_all(program: &Path, seeds: u64) -> Result<bool> {
    let mistakes = mistakes(program)?;
    let mut found = 0;
    say!("| mistake of a program | found by | with seed | as |\n|---|---|---|---|");
    for Mistake { scenario, name } in &mistakes {
        match first_failure(program, seeds, ["--mistake", name])? {
            Some((seed, kind)) => {
                found += 1;
                say!("| {name} | `{scenario}` | {seed} | {kind} |");
            }
            None => say!("| {name} | `{scenario}` | - | not found |"),
        }
    }
    let all = mistakes.len();
    say!("\n{found} of {all} were found within {seeds} seeds");
    let scenarios: BTreeSet<_> = mistakes.iter().map(|one| one.scenario.as_str()).collect();
    let mut passed = 10 * found >= 9 * all;
    for scenario in &scenarios {
        if let Some((seed, kind)) = first_failure(program, seeds, ["--scenario", scenario])? {
            passed = false;
            say!("`{scenario}` fails without a mistake, with seed {seed}: {kind}");
        }
    }
    let count = scenarios.len();
    say!("without a mistake, {count} scenarios have run with {seeds} seeds each");
    Ok(passed)
}

/// Checks that the README's table has a row for each mistake, and for no other one.
pub(super) fn check_table(root: &Path, program: &Path) -> Result<()> {
    let readme = std::fs::read_to_string(root.join("selvedge-sim/README.md"))?;
    let (_, table) = readme
        .split_once("| mistake of a program |")
        .context("selvedge-sim/README.md has no table of the programs' mistakes")?;
    let rows = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let rows: BTreeSet<_> = cells
        .filter_map(|cells| Some(((*cells.get(1)?).to_owned(), cells.get(2)?.replace('`', ""))))
        .collect();
    let known = mistakes(program)?.into_iter();
    let known: BTreeSet<_> = known.map(|one| (one.name, one.scenario)).collect();
    let differ: Vec<_> = rows.symmetric_difference(&known).collect();
    ensure!(
        differ.is_empty(),
        "the table of the programs' mistakes in selvedge-sim/README.md differs from `explore \
         --mistakes`: {differ:?}"
    );
    Ok(())
}
