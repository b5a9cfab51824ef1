//! The options of `cargo xtask bench`. `xtask` includes this file too. So `xtask` lists the names
//! of rows and runtimes, and refuses unknown names, without building `bench`.
use anyhow::{Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::{path::PathBuf, process::Command};

#[path = "../../names.rs"]
pub(crate) mod names;

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of rounds.
    #[arg(long, default_value_t = 5)]
    pub(crate) rounds: usize,
    /// Only checks that all rows work: takes one round of short samples, and keeps disturbed ones.
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measures only these rows.
    #[arg(long, value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Measures only these runtimes beside ours.
    #[arg(long, value_delimiter = ',')]
    pub(crate) peers: Vec<String>,
    /// Number of worker threads.
    #[arg(long, default_value_t = 2)]
    pub(crate) workers: u16,
    /// Keeps the samples whose processors exchange a cache line fast (near), those whose processors
    /// exchange it slowly (far), or all (any).
    #[arg(long, value_enum, default_value_t = Placement::Near)]
    pub(crate) placement: Placement,
    /// The part of the machine, in per cent, that other processes may use during a sample.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    pub(crate) disturbance: f64,
    /// How often a sample may be taken again. The retries of a row are at most three for each
    /// sample of the row, on average.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) retries: usize,
    /// Writes the machine, the versions, every sample and the table to a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draws the tables as bar charts (SVG) into a directory, and writes a page of figures.
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,
    /// Draws, for each row whose value is a p99, a chart (SVG) of the percentiles of its times into
    /// a directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) latencies: Option<PathBuf>,
    /// Measures nothing, and takes the tables from files that --json wrote on one machine.
    #[arg(long, value_name = "FILE", value_delimiter = ',', conflicts_with_all = ["quick", "rows", "peers", "list"])]
    pub(crate) from: Vec<PathBuf>,
    /// Measures our runtime without each of its optimisations in turn, and writes the table and a
    /// chart into a directory.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["quick", "peers", "json", "plot", "latencies", "from", "list", "counts"])]
    pub(crate) ablate: Option<PathBuf>,
    /// Lets all runtimes allocate with jemalloc, not with the system's allocator.
    #[arg(long)]
    pub(crate) jemalloc: bool,
    /// Uses a second set of connections, messages, rates and workers in the rows whose client is a
    /// separate process. Prints only the rows in which our runtime is behind.
    #[arg(long, conflicts_with_all = ["ablate", "json", "plot", "latencies", "from"])]
    pub(crate) second_set: bool,
    /// Lists the rows and the runtimes, and measures nothing.
    #[arg(long)]
    pub(crate) list: bool,
    /// Measures no time, and counts the instructions and system calls of hot paths, with valgrind
    /// and a tracepoint of the kernel. Fails if a count of ours has grown. With --json it writes
    /// the counts to the file, and does not fail.
    #[arg(long, conflicts_with_all = ["quick", "rows", "peers", "list", "plot", "latencies", "from"])]
    pub(crate) counts: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Placement {
    Near,
    Far,
    Any,
}

impl Options {
    /// Refuses options that cannot work, before the build and the measurement.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(self.rounds > 0, "--rounds is at least 1");
        ensure!(self.workers > 0, "--workers is at least 1");
        ensure!(
            self.disturbance >= 0.0,
            "--disturbance is a number from 0 on"
        );
        let all: Vec<_> = names::rows().map(|(name, _)| *name).collect();
        choose(&all, |name| name, &self.rows, "row")?;
        choose(names::RUNTIMES, |name| name, &self.peers, "peer")?;
        Ok(())
    }
}

/// Makes cargo build `bench` with jemalloc. The changed flags make cargo rebuild all crates.
pub(crate) fn use_jemalloc(cargo: &mut Command) {
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    cargo.env("RUSTFLAGS", flags + " --cfg selvedge_jemalloc");
}

/// Returns a text that lists the runtimes and the rows.
pub(crate) fn list() -> String {
    let mut text = "runtimes\n".to_owned();
    for name in names::RUNTIMES {
        text.push_str(&format!("  {name}\n"));
    }
    text.push_str("rows\n");
    for (name, what) in names::rows() {
        text.push_str(&format!("  {name:<24}{what}\n"));
    }
    text
}

/// Returns the items of `all` whose names are in `wanted`, or all items if `wanted` is empty.
///
/// # Errors
/// If `wanted` has an unknown name. The error calls an item a `kind`.
pub(crate) fn choose<T: Clone>(
    all: &[T],
    name: impl Fn(&T) -> &str,
    wanted: &[String],
    kind: &str,
) -> Result<Vec<T>> {
    if let Some(unknown) = wanted
        .iter()
        .find(|wanted| all.iter().all(|item| name(item) != **wanted))
    {
        let names: Vec<_> = all.iter().map(&name).collect();
        bail!("no {kind} {unknown}; there are {}", names.join(", "));
    }
    let chosen = all
        .iter()
        .filter(|item| wanted.is_empty() || wanted.iter().any(|wanted| *wanted == name(item)));
    Ok(chosen.cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_row_is_named_with_those_that_exist() {
        let all = ["a".to_owned(), "b".to_owned()];
        assert_eq!(choose(&all, |name| name, &[], "row").unwrap(), all);
        let error = choose(&all, |name| name, &["c".to_owned()], "row").unwrap_err();
        assert_eq!(error.to_string(), "no row c; there are a, b");
    }
}
