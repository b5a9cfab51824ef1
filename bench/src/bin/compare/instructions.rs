//! `cargo xtask bench --instructions`: counts the instructions of each hot path by valgrind's
//! callgrind, and compares the counts with the *kept* ones in `docs/benchmarks/instructions.json`.
//! Without `--json`, the command fails if a path of ours has grown by more than [`GROWTH`] and
//! [`SLACK`] allow.
//!
//! A program runs each path N times, and 2N times. The difference of the two counts is the count of
//! N operations. With the same compiler and the same processor features, each run gives the same
//! counts. If the kept counts are of another compiler, the command prints them, but does not
//! compare.
use crate::print;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, fs, path::Path, process::Command};

/// N: the number of operations in the shorter run.
const OPERATIONS: u64 = 25_600;

/// A count may grow by this part of the kept count, and by [`SLACK`] in addition.
const GROWTH: f64 = 0.05;

/// The number of instructions by which a count may grow in addition to [`GROWTH`].
const SLACK: f64 = 0.5;

#[derive(Deserialize, Serialize)]
struct Counts {
    rustc: String,
    /// The instructions of an operation, by row.
    rows: BTreeMap<String, f64>,
}

/// Counts the instructions of all rows, and prints the counts beside the kept ones. Writes the
/// counts to `json` if that file is given; otherwise returns false if a count has grown.
pub(super) fn run(root: &Path, json: Option<&Path>) -> Result<bool> {
    let counts = count_all()?;
    let kept = read_kept(root)?;
    let comparable = kept.as_ref().is_some_and(|kept| kept.rustc == counts.rustc);
    print(&format!(
        "instructions an operation (callgrind){}\n",
        match &kept {
            None => "; none are kept to compare with".into(),
            Some(_) if comparable => String::new(),
            Some(kept) => format!("; those kept are of another compiler, {}", kept.rustc),
        }
    ));
    let mut grown = Vec::new();
    for (row, count) in &counts.rows {
        let before = kept.as_ref().and_then(|kept| kept.rows.get(row));
        let before_text = before.map_or("-".into(), |before| format!("{before:.1}"));
        print(&format!("  {row:<24}{count:>10.1}{before_text:>10}\n"));
        if let Some(before) = before
            && comparable
            && has_grown(row, *before, *count)
        {
            grown.push(row.as_str());
        }
    }
    if let Some(file) = json {
        let text = serde_json::to_string_pretty(&counts)? + "\n";
        fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
        return Ok(true);
    }
    if !grown.is_empty() {
        print(&format!(
            "grown by more than {:.0} %: {}. If that is worth it: --instructions --json docs/benchmarks/instructions.json\n",
            100.0 * GROWTH,
            grown.join(", ")
        ));
    }
    Ok(grown.is_empty())
}

/// Returns whether the row's count has grown too much. A row whose name has a colon is a peer's,
/// and its count may grow.
fn has_grown(row: &str, before: f64, now: f64) -> bool {
    !row.contains(':') && now > before * (1.0 + GROWTH) + SLACK
}

/// Reads the kept counts, if there are any.
fn read_kept(root: &Path) -> Result<Option<Counts>> {
    let file = root.join("docs/benchmarks/instructions.json");
    if !file.exists() {
        return Ok(None);
    }
    let text = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
    let counts = serde_json::from_slice(&text).with_context(|| file.display().to_string())?;
    Ok(Some(counts))
}

fn count_all() -> Result<Counts> {
    let binary = std::env::current_exe()?;
    let binary = binary.with_file_name("examples").join("instructions");
    let list = Command::new(&binary).output().context("naming the rows")?;
    let mut rows = BTreeMap::new();
    for row in String::from_utf8_lossy(&list.stdout).lines() {
        let (once, twice) = (
            count(&binary, row, OPERATIONS)?,
            count(&binary, row, 2 * OPERATIONS)?,
        );
        let each = twice.saturating_sub(once) as f64 / OPERATIONS as f64;
        rows.insert(row.to_owned(), (10.0 * each).round() / 10.0);
    }
    let rustc = Command::new("rustc").arg("--version").output();
    let rustc = rustc.context("rustc --version")?.stdout;
    let rustc = String::from_utf8_lossy(&rustc).trim().to_owned();
    Ok(Counts { rustc, rows })
}

/// Counts the instructions of a run of `n` operations.
fn count(binary: &Path, row: &str, n: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary)
        .args([row, &n.to_string()])
        .output()
        .context("valgrind")?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "valgrind failed on {row}:\n{report}"
    );
    report
        .lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok())
        .with_context(|| format!("callgrind reports no count of {row}:\n{report}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_ours_may_not_grow_by_more_than_a_twentieth() {
        assert!(!has_grown("yield", 100.0, 105.0));
        assert!(has_grown("yield", 100.0, 106.0));
        assert!(!has_grown("yield", 100.0, 50.0));
        assert!(!has_grown("pair", 4.0, 4.4));
    }

    #[test]
    fn row_of_a_peer_may_grow() {
        assert!(!has_grown("tokio: yield", 100.0, 200.0));
    }
}
