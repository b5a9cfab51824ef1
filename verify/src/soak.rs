//! `cargo xtask soak`: runs the tests on real threads for long.
//!
//! These are the integration tests named `threads`. Each test takes `SELVEDGE_ITEMS` items, mixes
//! its operations by `SELVEDGE_SEED`, and accounts for every item by a count and checksums. Rounds
//! repeat until the time is up. A round runs these tests of all chosen crates, and each round has
//! the next seed. The command samples the memory of each test. That memory must not grow.
use crate::{
    loom::{self, Build, Speed},
    results,
};
use anyhow::{Context, Result, ensure};
use project::{say, workspace};
use serde::{Deserialize, Serialize};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// Options of `soak`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Minutes to run; at least one round runs.
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// Items in each test and round.
    #[arg(long, default_value_t = 20_000_000)]
    items: u64,
    /// Only these crates.
    #[arg(long = "crate", value_name = "PACKAGE", value_delimiter = ',')]
    crates: Vec<String>,
    /// The first round's seed; the seed that a failed round printed repeats that round.
    #[arg(long)]
    seed: Option<u64>,
    /// Writes the result to a file; it covers all crates.
    #[arg(long, value_name = "FILE", conflicts_with = "crates")]
    json: Option<PathBuf>,
}

/// A finished soak.
#[derive(Serialize, Deserialize)]
pub(crate) struct Done {
    pub(crate) seed: u64,
    pub(crate) minutes: f64,
    pub(crate) items: u64,
    /// The least and the most memory, in KiB, that a process held at the end of its run.
    pub(crate) memory: (u64, u64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
}

/// Runs rounds; returns `false` when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(
        options.minutes >= 0.0 && options.minutes.is_finite(),
        "minutes are a number from 0 on"
    );
    ensure!(options.items > 0, "--items is at least 1");
    workspace::check_writable(options.json.as_deref())?;
    let (packages, root) = workspace::load()?;
    let commit = workspace::commit(&root);
    let soaked = packages
        .iter()
        .filter(|package| package.has_test("threads"));
    let soaked = workspace::chosen(soaked, &options.crates, "a test `threads`")?;
    let build = Build {
        speed: Speed::Full,
        root: &root,
        target: Path::new("target"),
        flags: "",
        of_members: false,
        targets: &["--test", "threads"],
    };
    let mut tests = Vec::new();
    for (package, binary) in build.binaries(&soaked)? {
        tests.extend(loom::tests(package, &binary)?);
    }
    let first = options.seed.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.as_secs()
    });
    let mut ran = Duration::ZERO;
    let limit = Duration::from_secs_f64(options.minutes * 60.0);
    let mut done = Done {
        seed: first,
        minutes: 0.0,
        items: 0,
        memory: (u64::MAX, 0),
        commit: Some(commit),
    };
    for round in 0.. {
        let seed = first.wrapping_add(round);
        for test in &tests {
            let mut command = Command::new(&test.binary);
            command
                .args(["--exact", &test.name, "--quiet"])
                .env("SELVEDGE_ITEMS", options.items.to_string())
                .env("SELVEDGE_SEED", seed.to_string())
                .stdout(std::process::Stdio::null());
            let (status, memory, time) = watch(&mut command)?;
            ran += time;
            let grew = grows(&memory);
            let last = memory.last().copied().unwrap_or(0);
            let word = match (status.success(), grew) {
                (false, _) => "FAILED",
                (true, true) => "FAILED: its memory grew",
                (true, false) => "ok",
            };
            say!(
                "soak: seed {seed}, {} {}: {:.0} s, {last} KiB, {word}",
                test.package,
                test.name,
                time.as_secs_f64()
            );
            if !status.success() || grew {
                say!("memory in KiB: {memory:?}");
                return Ok(false);
            }
            done.items += options.items;
            done.memory = (done.memory.0.min(last), done.memory.1.max(last));
        }
        if ran >= limit {
            break;
        }
    }
    done.minutes = ran.as_secs_f64() / 60.0;
    say!(
        "soak: {} items in {:.1} minutes, first seed {first}",
        done.items,
        done.minutes
    );
    if let Some(file) = &options.json {
        results::write_json(file, &done)?;
    }
    Ok(true)
}

/// Runs the command. Returns its status, samples of its memory in KiB (where the system reports
/// it), and its running time, without the time in which this process and the command were stopped.
fn watch(command: &mut Command) -> Result<(ExitStatus, Vec<u64>, Duration)> {
    let mut child = command.spawn().context("starting a test")?;
    let file = format!("/proc/{}/status", child.id());
    let (mut samples, mut ran, mut last) = (Vec::new(), Duration::ZERO, Instant::now());
    loop {
        ran += last.elapsed().min(Duration::from_secs(1));
        last = Instant::now();
        if let Some(status) = child.try_wait()? {
            return Ok((status, samples, ran));
        }
        samples.extend(fs::read_to_string(&file).ok().as_deref().and_then(resident));
        thread::sleep(Duration::from_millis(100));
    }
}

/// Parses the line `VmRSS: 1234 kB`.
fn resident(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns whether the memory has grown too much. The most memory in the second half of the samples
/// may exceed the most in the first half (without its beginning) by a quarter plus 16 MiB. A thread
/// that is preempted in a bad place keeps some memory from being freed, but less than that. A leak
/// of one byte an item is more than 16 MiB in a round of the default number of items.
fn grows(samples: &[u64]) -> bool {
    let (first, second) = samples.split_at(samples.len() / 2);
    let most = |samples: &[u64]| samples.iter().copied().max().unwrap_or(0);
    let before = most(&first[first.len() / 4..]);
    samples.len() >= 8 && most(second) > before + before / 4 + 16_384
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_memory_is_distinguished_from_varying_memory() {
        assert!(!grows(&[
            100, 5_000, 5_100, 5_050, 5_000, 5_100, 5_200, 5_000
        ]));
        let more: Vec<_> = (0..40).map(|n| 2_000 * n).collect();
        assert!(grows(&more));
        assert!(!grows(&[1, 100_000]));
    }

    #[test]
    fn resident_size_is_parsed_from_the_kernels_status() {
        assert_eq!(
            resident("Name:\tx\nVmRSS:\t    1234 kB\nThreads:\t1\n"),
            Some(1_234)
        );
        assert_eq!(resident("Name:\tx\n"), None);
    }
}
