//! `cargo xtask bench --counts`: counts the instructions of each hot path by valgrind's callgrind,
//! and the system calls of a runtime's paths by a tracepoint of the kernel. Unlike strace, a
//! tracepoint hardly slows a path down, so the polls that a busy worker makes by the clock, and the
//! yields before a park, stay as frequent as they are. Compares the counts with the *kept* ones in
//! `docs/benchmarks/counts.json`. Without `--json`, the command fails if a path of ours has grown
//! by more than [`GROWTH`] and the slack allow.
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

/// A kind of count: what is counted, and how.
struct Kind {
    name: &'static str,
    /// The number of operations in the shorter run.
    operations: u64,
    /// The count by which a row may grow in addition to [`GROWTH`].
    slack: f64,
    decimals: i32,
    is_counted: fn(row: &str) -> bool,
    /// Returns why nothing can be counted on this machine.
    obstacle: fn(program: &Path) -> Result<Option<String>>,
    /// Counts a run of a number of operations.
    count: fn(program: &Path, row: &str, operations: u64) -> Result<u64>,
}

const INSTRUCTIONS: Kind = Kind {
    name: "instructions",
    operations: 25_600,
    slack: 0.5,
    decimals: 1,
    is_counted: |_| true,
    obstacle: |_| {
        let missing = Command::new("valgrind").arg("--version").output().is_err();
        Ok(missing.then(|| "valgrind is not installed (`apt-get install valgrind`)".into()))
    },
    count: instructions,
};

const SYSTEM_CALLS: Kind = Kind {
    name: "system calls",
    operations: 25_600,
    // A poll by the clock, or a wait that another process has made longer.
    slack: 0.1,
    decimals: 2,
    is_counted: |row| row.starts_with("runtime-") || row.starts_with("tokio: "),
    obstacle: |program| {
        let mut probe = Command::new(program);
        let probe = probe.args(["runtime-spawn", "1", "calls"]).output()?;
        let obstacle = String::from_utf8_lossy(&probe.stderr).trim().to_owned();
        Ok((!probe.status.success()).then_some(obstacle))
    },
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
/// where the machine does not allow it.
fn count_and_print(kind: &Kind, kept: Option<&Rows>) -> Result<Option<Rows>> {
    let name = kind.name;
    let program = std::env::current_exe()?;
    let program = program.with_file_name("examples").join("counts");
    if let Some(obstacle) = (kind.obstacle)(&program)? {
        print(&format!("{name}: NOT counted, since {obstacle}\n"));
        return Ok(None);
    }
    print(&format!("{name} an operation, and those kept\n"));
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
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(program).args([row, &operations.to_string()]);
    let output = succeed(&mut command)?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok())
        .with_context(|| format!("callgrind reports no count of {row}:\n{report}"))
}

fn system_calls(program: &Path, row: &str, operations: u64) -> Result<u64> {
    let mut command = Command::new(program);
    command.args([row, &operations.to_string(), "calls"]);
    let output = succeed(&mut command)?;
    let count = String::from_utf8_lossy(&output.stdout);
    let count = count.trim().parse();
    count.with_context(|| format!("the program reports no count of {row}"))
}

/// Runs a command. Fails if the command does.
fn succeed(command: &mut Command) -> Result<Output> {
    let output = command.output();
    let output = output.with_context(|| format!("{command:?}"))?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed:\n{report}");
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
