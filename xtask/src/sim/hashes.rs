//! `cargo xtask sim --hashes`: runs the same seeds in several processes, each in another
//! surrounding, and compares the hashes of all events.
use anyhow::{Context, Result, ensure};
use project::say;
use std::{path::Path, process::Command};

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

/// A scenario that the explorer has run.
struct Explored {
    scenario: String,
    hash: String,
}

/// Explores `seeds` seeds from `first` of each scenario, or of one, in each of the surroundings.
/// Returns whether all hashes are equal.
pub(super) fn compare(
    program: &Path,
    first: u64,
    seeds: u64,
    scenario: Option<&str>,
) -> Result<bool> {
    let here = explore(program, &[], first, seeds, scenario)?;
    let mut equal = true;
    for (name, wrapper) in SURROUNDINGS {
        if let Some(tool) = wrapper.first()
            && Command::new(tool).arg("--version").output().is_err()
        {
            say!("{name}: not compared, as there is no `{tool}`");
            continue;
        }
        let there = explore(program, wrapper, first, seeds, scenario)?;
        ensure!(
            here.len() == there.len(),
            "{name}: not all scenarios have run"
        );
        let differ = |(here, there): &(&Explored, &Explored)| here.hash != there.hash;
        let differing: Vec<_> = here.iter().zip(&there).filter(differ).collect();
        say!(
            "{name}: {} of {} scenarios have equal hashes for {seeds} seeds",
            here.len() - differing.len(),
            here.len()
        );
        for (Explored { scenario, .. }, _) in differing {
            let seed = find_seed(program, wrapper, first, seeds, scenario)?;
            say!("  {scenario}: seed {seed} differs");
            equal = false;
        }
    }
    Ok(equal)
}

/// Finds a seed of the scenario whose hash differs, among these seeds.
fn find_seed(
    program: &Path,
    wrapper: &[&str],
    mut first: u64,
    mut seeds: u64,
    scenario: &str,
) -> Result<u64> {
    let hash = |wrapper: &[&str], first, seeds| -> Result<String> {
        let explored = explore(program, wrapper, first, seeds, Some(scenario))?;
        Ok(explored.into_iter().map(|explored| explored.hash).collect())
    };
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

fn explore(
    program: &Path,
    wrapper: &[&str],
    first: u64,
    seeds: u64,
    scenario: Option<&str>,
) -> Result<Vec<Explored>> {
    let mut explore = match wrapper {
        [] => Command::new(program),
        [tool, arguments @ ..] => {
            let mut command = Command::new(tool);
            command.args(arguments).arg(program);
            command
        }
    };
    explore.arg("--quiet");
    explore.args(["--first", &first.to_string(), "--seeds", &seeds.to_string()]);
    if let Some(scenario) = scenario {
        explore.args(["--scenario", scenario]);
    }
    let output = explore.output().context("running the explorer")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let explored: Vec<_> = text.lines().filter_map(parse).collect();
    ensure!(
        !explored.is_empty(),
        "the explorer prints no hash: {errors}"
    );
    Ok(explored)
}

/// Reads a line such as `ping 300 seeds, 3316 points, hash 0eca7fccbdb3af39: ok`.
fn parse(line: &str) -> Option<Explored> {
    let (_, hash) = line.split_once(", hash ")?;
    Some(Explored {
        scenario: line.split_whitespace().next()?.to_owned(),
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
            (&*explored.scenario, &*explored.hash),
            ("ping", "0eca7fccbdb3af39")
        );
        assert!(parse("seed 7 fails").is_none());
    }
}
