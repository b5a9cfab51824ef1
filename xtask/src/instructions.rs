//! `cargo xtask bench --instructions`: instructions an operation of the single-threaded hot paths, by valgrind's callgrind.
//!
//! Each path runs so many times and twice so many; the difference is what the operations took. It repeats exactly for one compiler and one processor's features.
use crate::workspace::cargo;
use anyhow::{Context, Result, bail, ensure};
use std::{path::Path, process::Command};

const OPERATIONS: u64 = 25_600;

/// Counts and prints all rows.
pub(crate) fn run(root: &Path) -> Result<bool> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        bail!(
            "valgrind is not installed: it is a package of that name (`apt-get install valgrind`)"
        );
    }
    let built = cargo()
        .current_dir(root)
        .args(["build", "--quiet", "--profile", "bench"])
        .args(["--package", "bench", "--example", "instructions"])
        .status()
        .context("cargo build")?;
    ensure!(built.success(), "the example `instructions` doesn't build");
    let binary = root.join("target/release/examples/instructions");
    let listed = Command::new(&binary).output().context("naming the rows")?;
    println!("instructions an operation (callgrind)");
    for row in String::from_utf8_lossy(&listed.stdout).lines() {
        let (once, twice) = (
            count(&binary, row, OPERATIONS)?,
            count(&binary, row, 2 * OPERATIONS)?,
        );
        let each = twice.saturating_sub(once) as f64 / OPERATIONS as f64;
        println!("  {row:<24}{each:>8.1}");
    }
    Ok(true)
}

fn count(binary: &Path, row: &str, n: u64) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(binary)
        .args([row, &n.to_string()])
        .output()
        .context("valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed on {row}:\n{said}");
    said.lines()
        .find_map(|line| line.split("Collected :").nth(1)?.trim().parse().ok())
        .with_context(|| format!("callgrind tells no count of {row}:\n{said}"))
}
