//! `cargo xtask soak`: the tests on real threads, made long.
//!
//! They are the integration tests named `threads`; each takes `SELVEDGE_ITEMS` items and counts every one. Rounds go on until the time is
//! up; each is of all crates chosen.
use crate::{
    test::succeeds,
    workspace::{self, cargo},
};
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// Options of `soak`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// For so many minutes; one round at least.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Items a test and round.
    #[arg(long, default_value_t = 100_000_000)]
    items: u64,
    /// Only these crates.
    #[arg(long = "crate")]
    crates: Vec<String>,
}

/// Runs rounds; false when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(
        options.minutes >= 0.0 && options.minutes.is_finite(),
        "minutes are a number from 0 on"
    );
    let soaked: Vec<_> = workspace::load()?
        .0
        .into_iter()
        .filter(|package| package.has_test("threads"))
        .map(|package| package.name)
        .collect();
    for name in &options.crates {
        ensure!(
            soaked.contains(name),
            "{name} has no test `threads`; there are those of {}",
            soaked.join(", ")
        );
    }
    let chosen = soaked
        .iter()
        .filter(|name| options.crates.is_empty() || options.crates.contains(name));
    let chosen: Vec<_> = chosen.collect();
    let begun = Instant::now();
    let limit = Duration::from_secs_f64(options.minutes * 60.0);
    for round in 1.. {
        for name in &chosen {
            let from = Instant::now();
            let mut test = cargo();
            test.args(["test", "--quiet", "--release", "--all-features"])
                .args(["--package", name, "--test", "threads"])
                .env("SELVEDGE_ITEMS", options.items.to_string());
            let passed = succeeds(&mut test)?;
            let word = if passed { "ok" } else { "FAILED" };
            println!(
                "soak: round {round}, {name}: {} items a test, {:.0} s, {word}",
                options.items,
                from.elapsed().as_secs_f64()
            );
            if !passed {
                return Ok(false);
            }
        }
        if begun.elapsed() >= limit {
            break;
        }
    }
    Ok(true)
}
