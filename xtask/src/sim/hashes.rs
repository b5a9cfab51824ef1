//! `cargo xtask sim --hashes`: runs the same seeds in several surroundings, each time in new
//! processes, and compares the hashes of all events.
use super::explorer::{chosen, parts, range};
use anyhow::{Context, Result, ensure};
use project::say;
use std::{collections::BTreeMap, path::Path, process::Command};

/// Surroundings of a process that a run must not depend on: a name, and the command that starts the
/// process, if it is another one than the explorer.
const SURROUNDINGS: &[(&str, &[&str])] = &[
    ("a second process", &[]),
    (
        "another environment",
        &["env", ENVIRONMENT, "TZ=Asia/Tokyo", "RUST_BACKTRACE=0"],
    ),
    ("one processor", &["taskset", "--cpu-list", "0"]),
    (
        "addresses that are not random",
        &["setarch", "--addr-no-randomize"],
    ),
];

/// Moves the stack and the heap, as the environment lies there.
const ENVIRONMENT: &str = "SELVEDGE_SIM_FILLS_THE_ENVIRONMENT=0123456789012345678901234567890123456\
    789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

/// A scenario that the explorer has run in one process.
#[derive(Clone, PartialEq, Eq)]
struct Explored {
    scenario: String,
    runs: u64,
    hash: String,
}

/// The processes of each scenario: the first seed of each one, and what it has explored.
type Parts = BTreeMap<String, Vec<(u64, Explored)>>;

/// Explores `seeds` seeds from `first` of each scenario, or of one, in each of the surroundings.
/// Returns whether all hashes are equal, and all runs have passed.
pub(super) fn compare(
    program: &Path,
    first: u64,
    seeds: u64,
    scenario: Option<&str>,
) -> Result<bool> {
    let here = explore_all(program, &[], first, seeds, scenario)?;
    let mut passed = true;
    for (name, parts) in &here {
        let runs: u64 = parts.iter().map(|(_, explored)| explored.runs).sum();
        if runs < seeds {
            say!("{name}: only {runs} of {seeds} seeds have run, as one of them fails");
            passed = false;
        }
    }
    for (name, wrapper) in SURROUNDINGS {
        if let Some(tool) = wrapper.first()
            && Command::new(tool).arg("--version").output().is_err()
        {
            say!("{name}: not compared, as there is no `{tool}`");
            continue;
        }
        let there = explore_all(program, wrapper, first, seeds, scenario)?;
        let mut equal = 0;
        for (scenario, parts) in &here {
            let others = there.get(scenario).context("a scenario has not run")?;
            ensure!(
                parts.len() == others.len(),
                "{scenario}: a process is missing"
            );
            let mut pairs = parts.iter().zip(others);
            match pairs.find(|(one, other)| one != other) {
                None => equal += 1,
                Some(((from, one), _)) => {
                    let seed = find_seed(program, wrapper, *from, one.runs, scenario)?;
                    say!("  {scenario}: seed {seed} differs");
                    passed = false;
                }
            }
        }
        let all = here.len();
        say!("{name}: {equal} of {all} scenarios have equal hashes for {seeds} seeds");
    }
    Ok(passed)
}

/// Finds a seed of the scenario whose hash differs, among these seeds.
fn find_seed(
    program: &Path,
    wrapper: &[&str],
    mut first: u64,
    mut seeds: u64,
    scenario: &str,
) -> Result<u64> {
    let hash = |wrapper: &[&str], first, seeds| explore(program, wrapper, first, seeds, scenario);
    while seeds > 1 {
        let half = seeds / 2;
        if hash(&[], first, half)? == hash(wrapper, first, half)? {
            first += half;
            seeds -= half;
        } else {
            seeds = half;
        }
    }
    Ok(first)
}

/// Explores the seeds in as many processes as they need.
fn explore_all(
    program: &Path,
    wrapper: &[&str],
    first: u64,
    seeds: u64,
    scenario: Option<&str>,
) -> Result<Parts> {
    let mut all = Parts::new();
    for scenario in chosen(program, scenario)? {
        for (from, count) in parts(first, seeds) {
            let explored = explore(program, wrapper, from, count, &scenario)?;
            let parts = all.entry(scenario.clone()).or_default();
            parts.push((from, explored));
        }
    }
    Ok(all)
}

fn explore(
    program: &Path,
    wrapper: &[&str],
    first: u64,
    seeds: u64,
    scenario: &str,
) -> Result<Explored> {
    let mut explore = match wrapper {
        [] => Command::new(program),
        [tool, arguments @ ..] => {
            let mut command = Command::new(tool);
            command.args(arguments).arg(program);
            command
        }
    };
    explore.arg("--quiet").args(range(scenario, first, seeds));
    let output = explore.output().context("running the explorer")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let explored = text.lines().find_map(parse);
    explored.with_context(|| format!("the explorer prints no hash: {errors}"))
}

/// Reads a line such as `ping 300 seeds, 3316 points, hash 0eca7fccbdb3af39: ok`.
fn parse(line: &str) -> Option<Explored> {
    let (_, hash) = line.split_once(", hash ")?;
    let mut words = line.split_whitespace();
    Some(Explored {
        scenario: words.next()?.to_owned(),
        runs: words.next()?.parse().ok()?,
        hash: hash.split(':').next()?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn line_of_the_explorer_is_read() {
        let line = "ping  300 seeds,  3316 points,  2409 seeds/s, hash 0eca7fccbdb3af39: ok";
        let explored = parse(line).unwrap();
        assert_eq!(
            (&*explored.scenario, explored.runs, &*explored.hash),
            ("ping", 300, "0eca7fccbdb3af39")
        );
        assert!(parse("seed 7 fails").is_none());
    }
}
