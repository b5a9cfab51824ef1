//! `cargo xtask bench --counts`: counts the instructions of each hot path by valgrind's callgrind,
//! and the system calls of a runtime's paths by strace. Compares the counts with the *kept* ones in
//! `docs/benchmarks/counts.json`. Without `--json`, the command fails if a path of ours has grown by
//! more than [`GROWTH`] and the slack allow.
//!
//! A program runs each path N times, and 2N times. The difference of the two counts is the count of
//! N operations. With the same compiler and the same processor features, each run gives the same
//! counts. If the kept counts are of another compiler, the command prints them, but does not
//! compare.
use crate::print;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, Output},
};

/// A count may grow by this part of the kept count, and by the kind's slack in addition.
const GROWTH: f64 = 0.05;

/// Counts by row, each of an operation.
type Rows = BTreeMap<String, f64>;

/// What is counted.
struct Kind {
    name: &'static str,
    tool: &'static str,
    /// Arguments with which the tool succeeds where it can count.
    probe: &'static [&'static str],
    /// N: the number of operations in the shorter run.
    operations: u64,
    /// The count by which a row may grow in addition to [`GROWTH`].
    slack: f64,
    decimals: i32,
    is_counted: fn(row: &str) -> bool,
    /// Counts a run of a number of operations.
    count: fn(program: &Path, row: &str, operations: u64) -> Result<u64>,
}

const INSTRUCTIONS: Kind = Kind {
    name: "instructions",
    tool: "valgrind",
    probe: &["--version"],
    operations: 25_600,
    slack: 0.5,
    decimals: 1,
    is_counted: |_| true,
    count: instructions,
};

const SYSTEM_CALLS: Kind = Kind {
    name: "system calls",
    tool: "strace",
    // In a container it may be installed and yet not be allowed to trace.
    probe: &["--output=/dev/null", "true"],
    operations: 2_560,
    slack: 0.02,
    decimals: 2,
    is_counted: |row| row.starts_with("runtime-") || row.starts_with("tokio: "),
    count: system_calls,
};

#[derive(Deserialize, Serialize)]
struct Counts {
    rustc: String,
    instructions: Rows,
    system_calls: Rows,
}

/// Counts, and prints the counts beside the kept ones. Writes the counts to `json` if that file is
/// given; otherwise returns false if a count has grown.
pub(super) fn run(root: &Path, json: Option<&Path>) -> Result<bool> {
    let kept = read_kept(root)?;
    let rustc = rustc()?;
    if let Some(kept) = &kept
        && kept.rustc != rustc
    {
        let rustc = &kept.rustc;
        print(&format!(
            "The kept counts are of another compiler, {rustc}.\n"
        ));
    }
    let kept_instructions = kept.as_ref().map(|kept| &kept.instructions);
    let kept_calls = kept.as_ref().map(|kept| &kept.system_calls);
    let instructions = count_and_print(&INSTRUCTIONS, kept_instructions)?;
    let system_calls = count_and_print(&SYSTEM_CALLS, kept_calls)?;
    if let Some(file) = json {
        let counts = Counts {
            rustc,
            instructions: instructions.context("instructions were not counted")?,
            system_calls: system_calls.context("system calls were not counted")?,
        };
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
        return Ok(true);
    }
    let Some(kept) = kept.filter(|kept| kept.rustc == rustc) else {
        return Ok(true);
    };
    let grown = [
        grown(&INSTRUCTIONS, &kept.instructions, instructions),
        grown(&SYSTEM_CALLS, &kept.system_calls, system_calls),
    ]
    .concat();
    if !grown.is_empty() {
        print(&format!(
            "grown by more than {:.0} %: {}. If that is worth it: --counts --json docs/benchmarks/counts.json\n",
            100.0 * GROWTH,
            grown.join(", ")
        ));
    }
    Ok(grown.is_empty())
}

/// Counts all rows of a kind, and prints each beside the kept count. Counts nothing, and says so,
/// where the kind's tool does not work.
fn count_and_print(kind: &Kind, kept: Option<&Rows>) -> Result<Option<Rows>> {
    let Kind { name, tool, .. } = kind;
    let obstacle = match Command::new(tool).args(kind.probe).output() {
        Ok(probe) if probe.status.success() => None,
        Ok(_) => Some(format!("{tool} is not allowed to count here")),
        Err(_) => Some(format!(
            "{tool} is not installed (`apt-get install {tool}`)"
        )),
    };
    if let Some(obstacle) = obstacle {
        print(&format!("{name}: NOT counted, since {obstacle}\n"));
        return Ok(None);
    }
    print(&format!("{name} an operation ({tool}), and those kept\n"));
    let program = std::env::current_exe()?;
    let program = program.with_file_name("examples").join("counts");
    let list = Command::new(&program).output().context("naming the rows")?;
    let mut rows = Rows::new();
    for row in String::from_utf8_lossy(&list.stdout).lines() {
        if !(kind.is_counted)(row) {
            continue;
        }
        let count = |operations| (kind.count)(&program, row, operations);
        let (once, twice) = (count(kind.operations)?, count(2 * kind.operations)?);
        let each = twice.saturating_sub(once) as f64 / kind.operations as f64;
        let scale = 10_f64.powi(kind.decimals);
        let each = (scale * each).round() / scale;
        let before = kept.and_then(|kept| kept.get(row));
        let before = before.map_or("-".into(), |before| before.to_string());
        print(&format!("  {row:<24}{each:>10}{before:>10}\n"));
        rows.insert(row.to_owned(), each);
    }
    Ok(Some(rows))
}

/// Returns the rows that have grown too much.
fn grown(kind: &Kind, kept: &Rows, rows: Option<Rows>) -> Vec<String> {
    let rows = rows.into_iter().flatten();
    let grown = rows.filter(|(row, count)| {
        let before = kept.get(row);
        before.is_some_and(|before| has_grown(kind, row, *before, *count))
    });
    grown
        .map(|(row, _)| format!("{} of {row}", kind.name))
        .collect()
}

/// Returns whether the row's count has grown too much. A row whose name has a colon is a peer's,
/// and its count may grow.
fn has_grown(kind: &Kind, row: &str, before: f64, now: f64) -> bool {
    !row.contains(':') && now > before * (1.0 + GROWTH) + kind.slack
}

/// Reads the kept counts, if there are any.
fn read_kept(root: &Path) -> Result<Option<Counts>> {
    let file = root.join("docs/benchmarks/counts.json");
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let counts = serde_json::from_slice(&text).with_context(|| file.display().to_string())?;
    Ok(Some(counts))
}

/// Returns the compiler's name and version.
fn rustc() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output();
    let output = output.context("rustc --version")?.stdout;
    Ok(String::from_utf8_lossy(&output).trim().to_owned())
}

fn instructions(program: &Path, row: &str, operations: u64) -> Result<u64> {
    let options = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
    let output = run_under("valgrind", &options, program, row, operations)?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok())
        .with_context(|| format!("callgrind reports no count of {row}:\n{report}"))
}

fn system_calls(program: &Path, row: &str, operations: u64) -> Result<u64> {
    let options = ["--follow-forks", "--summary-only"];
    let output = run_under("strace", &options, program, row, operations)?;
    let report = String::from_utf8_lossy(&output.stderr);
    // The last line has the sums: the part, the seconds, those of a call, the calls, the errors.
    report
        .lines()
        .rfind(|line| line.ends_with(" total"))
        .and_then(|line| line.split_whitespace().nth(3)?.parse().ok())
        .with_context(|| format!("strace reports no count of {row}:\n{report}"))
}

/// Runs the program's row under a tool.
fn run_under(
    tool: &str,
    options: &[&str],
    program: &Path,
    row: &str,
    operations: u64,
) -> Result<Output> {
    let mut command = Command::new(tool);
    command.args(options).arg(program);
    let output = command.args([row, &operations.to_string()]).output();
    let output = output.with_context(|| tool.to_owned())?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{tool} failed on {row}:\n{report}");
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_ours_may_not_grow_by_more_than_a_twentieth() {
        assert!(!has_grown(&INSTRUCTIONS, "yield", 100.0, 105.0));
        assert!(has_grown(&INSTRUCTIONS, "yield", 100.0, 106.0));
        assert!(!has_grown(&INSTRUCTIONS, "yield", 100.0, 50.0));
        assert!(!has_grown(&INSTRUCTIONS, "pair", 4.0, 4.4));
    }

    #[test]
    fn row_of_a_peer_may_grow() {
        assert!(!has_grown(&INSTRUCTIONS, "tokio: yield", 100.0, 200.0));
    }
}
