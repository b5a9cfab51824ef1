//! `cargo xtask chaos`: runs random programs on the runtime and on `process-scheduler`.
//!
//! The driver is the test `chaos` of `selvedge`: its front page says what a round does and
//! checks. This command builds it with debug assertions, or for AddressSanitizer, and runs its
//! rounds in one process. Each round has the next seed. If a round fails, or ends the process, this
//! command prints the command that repeats the round.
use crate::sanitize::{Cells, Tool};
use anyhow::{Context, Result, ensure};
use project::{say, workspace};
use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

/// Options of `chaos`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of rounds.
    #[arg(long, default_value_t = 1_000)]
    rounds: u64,
    /// The first round's seed; the seed of a failed round repeats its plan.
    #[arg(long)]
    seed: Option<u64>,
    /// Runs the rounds under AddressSanitizer.
    #[arg(long)]
    asan: bool,
}

/// Runs rounds; returns `false` when one failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    ensure!(options.rounds > 0, "--rounds is at least 1");
    let (_, root) = workspace::load()?;
    let first = options.seed.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.as_secs()
    });
    let mut cargo = if options.asan {
        Tool::Address.cargo(&root, "test", Cells::Allocated)?
    } else {
        let mut cargo = workspace::cargo();
        cargo.current_dir(&root).arg("test");
        cargo
    };
    cargo
        .args(["--quiet", "--package", "selvedge", "--all-features"])
        .args(["--test", "chaos", "--"])
        .args(["--exact", "rounds", "--ignored", "--nocapture"])
        .env("SELVEDGE_ROUNDS", options.rounds.to_string())
        .env("SELVEDGE_SEED", first.to_string());
    let (passed, last) = watch(&mut cargo)?;
    if !passed && let Some(seed) = last {
        let asan = if options.asan { " --asan" } else { "" };
        say!(
            "chaos: FAILED; this repeats the plan: cargo xtask chaos --seed {seed} --rounds 1{asan}"
        );
    }
    Ok(passed)
}

/// Runs the command, and prints what it prints, but for the line of each seed. Returns whether the
/// command has succeeded, and the last seed.
fn watch(command: &mut Command) -> Result<(bool, Option<u64>)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("running cargo")?;
    let mut last = None;
    let out = child.stdout.take().context("the output is a pipe")?;
    for line in BufReader::new(out).lines() {
        let line = line.context("reading the output")?;
        match line.strip_prefix("seed ").map(str::parse) {
            Some(Ok(seed)) => last = Some(seed),
            _ => say!("{line}"),
        }
    }
    Ok((child.wait().context("running cargo")?.success(), last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_seed_is_that_of_the_round_that_ended_the_process() {
        let run = |script: &str| watch(Command::new("sh").args(["-c", script])).unwrap();
        assert_eq!(run("echo seed 7; echo seed 8; exit 1"), (false, Some(8)));
        assert_eq!(run("echo seed 7; kill -9 $$"), (false, Some(7)));
        assert_eq!(run("echo no seed"), (true, None));
    }
}
