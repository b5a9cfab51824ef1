//! `cargo xtask bench`: runtimes side by side, each sample a process of its own.
//!
//! In each round every runtime takes every row once, in an order that rotates. A sample that others disturbed, or
//! whose processors lay elsewhere than the rest's, is taken again, a few times. What counts is the median of the rounds' ratios.
use crate::workspace::{self, cargo};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Options of `cargo xtask bench`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// One round of short samples: to see that all works.
    #[arg(long)]
    quick: bool,
    /// Only these rows.
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Only these runtimes beside ours.
    #[arg(long, value_delimiter = ',')]
    peers: Vec<String>,
    /// Worker threads.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Which samples count: those whose processors were near each other, far, or any.
    #[arg(long, value_enum, default_value_t = Placement::Near)]
    placement: Placement,
    /// Writes every sample to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Placement {
    Near,
    Far,
    Any,
}

/// Round trips from here on are far.
const FAR_NS: f64 = 150.0;

/// The part of the machine that others may have during a sample.
const DISTURBED: f64 = 0.05;

/// Samples taken for one that counts, at most.
const TRIES: usize = 6;

#[derive(Deserialize)]
struct Listing {
    runtimes: Vec<String>,
    rows: Vec<String>,
}

#[derive(Clone, Deserialize, Serialize)]
struct Sample {
    operations: u64,
    wall_ns: f64,
    cpu_ns: f64,
    round_trip_ns: f64,
    others: f64,
}

#[derive(Serialize)]
struct Row {
    row: String,
    runtime: String,
    round: usize,
    counts: bool,
    #[serde(flatten)]
    sample: Sample,
}

impl Options {
    fn counts(&self, sample: &Sample) -> bool {
        let near = sample.round_trip_ns < FAR_NS;
        let placed = match self.placement {
            Placement::Near => near,
            Placement::Far => !near,
            Placement::Any => true,
        };
        placed && sample.others < DISTURBED
    }
}

/// Measures and prints the table.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.rounds > 0, "--rounds is at least 1");
    let (_, root) = workspace::load()?;
    let build = [
        "build",
        "--profile",
        "bench",
        "--package",
        "bench",
        "--bin",
        "bench",
        "--target-dir",
        "target",
    ];
    ensure!(
        cargo().current_dir(&root).args(build).status()?.success(),
        "bench does not build"
    );
    let bench = root.join("target/release/bench");
    let listing: Listing = serde_json::from_slice(&output(&bench, &["list"])?)?;
    let rows = choose(&listing.rows, &options.rows, "row")?;
    let (ours, others) = listing
        .runtimes
        .split_first()
        .context("bench knows no runtime")?;
    let mut runtimes = vec![ours.clone()];
    runtimes.extend(choose(others, &options.peers, "runtime")?);
    let (rounds, millis) = if options.quick {
        (1, "50")
    } else {
        (options.rounds, "200")
    };
    let mut samples = Vec::new();
    for row in &rows {
        for round in 0..rounds {
            for i in 0..runtimes.len() {
                let runtime = &runtimes[(i + round) % runtimes.len()];
                let workers = options.workers.to_string();
                let arguments = [
                    "sample",
                    "--rt",
                    runtime,
                    "--row",
                    row,
                    "--workers",
                    &workers,
                    "--millis",
                    millis,
                ];
                let tries = if options.quick { 1 } else { TRIES };
                for left in (0..tries).rev() {
                    let sample: Sample = serde_json::from_slice(&output(&bench, &arguments)?)?;
                    let counts = options.counts(&sample);
                    let (row, runtime) = (row.clone(), runtime.clone());
                    samples.push(Row {
                        row,
                        runtime,
                        round,
                        counts: counts || left == 0,
                        sample,
                    });
                    if counts {
                        break;
                    }
                }
            }
        }
        print(&table(row, &runtimes, &samples, options));
    }
    if let Some(file) = &options.json {
        let json = serde_json::to_string_pretty(&samples)?;
        std::fs::write(file, json).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(true)
}

fn choose(all: &[String], wanted: &[String], what: &str) -> Result<Vec<String>> {
    if let Some(name) = wanted.iter().find(|name| !all.contains(name)) {
        bail!("no {what} {name}; there are {}", all.join(", "));
    }
    let chosen = all
        .iter()
        .filter(|name| wanted.is_empty() || wanted.contains(name));
    Ok(chosen.cloned().collect())
}

fn output(bench: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(bench)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        output.status.success(),
        "bench {} failed: {}",
        arguments.join(" "),
        output.status
    );
    Ok(output.stdout)
}

/// A reader that has gone is no failure.
fn print(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn table(row: &str, runtimes: &[String], samples: &[Row], options: &Options) -> String {
    let of = |runtime: &str| -> Vec<&Row> {
        samples
            .iter()
            .filter(|s| s.row == row && s.runtime == runtime && s.counts)
            .collect()
    };
    let (ours, peers) = (of(&runtimes[0]), &runtimes[1..]);
    let mut text = format!("{row}\n");
    for runtime in runtimes {
        let theirs = of(runtime);
        let wall: Vec<f64> = theirs.iter().map(|s| s.sample.wall_ns).collect();
        let ratios: Vec<f64> = ours
            .iter()
            .filter_map(|our| {
                let their = theirs.iter().find(|their| their.round == our.round)?;
                Some(our.sample.wall_ns / their.sample.wall_ns)
            })
            .collect();
        let taken = samples
            .iter()
            .filter(|s| s.row == row && s.runtime == *runtime)
            .count();
        let bad = theirs.iter().filter(|s| !options.counts(&s.sample)).count();
        text.push_str(&format!(
            "  {runtime:<16} {:>9.1} ns  ({:.1} to {:.1})  cpu {:>9.1} ns  {}  {} of {taken} samples{}\n",
            median(wall.clone()),
            wall.iter().copied().fold(f64::INFINITY, f64::min),
            wall.iter().copied().fold(0.0, f64::max),
            median(theirs.iter().map(|s| s.sample.cpu_ns).collect()),
            if peers.contains(runtime) {
                format!("ours is {:.2} x", median(ratios))
            } else {
                "             ".into()
            },
            theirs.len(),
            if bad > 0 { format!(", {bad} of them disturbed or placed otherwise") } else { String::new() },
        ));
    }
    text
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_or_between_the_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn an_unknown_row_is_named_with_those_that_exist() {
        let all = ["a".to_owned(), "b".to_owned()];
        assert_eq!(choose(&all, &[], "row").unwrap(), all);
        let error = choose(&all, &["c".to_owned()], "row").unwrap_err();
        assert_eq!(error.to_string(), "no row c; there are a, b");
    }
}
