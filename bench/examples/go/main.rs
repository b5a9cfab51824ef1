//! Go's goroutines beside our tasks, in rows of `cargo xtask bench`, if Go is installed:
//!
//! ```sh
//! cargo build --release -p bench --bins
//! cargo run --release -p bench --example go [ROW]
//! ```
//!
//! The samples of both take turns. A figure is the median of five samples, each in a process of its
//! own, on two processors: nanoseconds an operation, or resident bytes of a task that waits. Go's
//! messages go over channels with room for all of them.
use anyhow::{Context, Result, bail, ensure};
use std::{env, fs, path::Path, process::Command};

const ROUNDS: usize = 5;

const TIMED: [&str; 8] = [
    "spawn_many_local",
    "chained_spawn",
    "spawn_join",
    "yield_many",
    "yield_one",
    "ping_pong",
    "ring_100",
    "ring_1000",
];
const SIZED: [&str; 3] = ["idle_task", "sleepers_1m", "idle_conns"];

/// Runs a program, and returns what it prints.
fn output(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("starting {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{}: {}\n{}",
        command.get_program().display(),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Takes one sample of our runtime with the program `bench`. Its row `idle_conns` has no bytes.
fn ours(bench: &Path, row: &str) -> Result<f64> {
    let mut command = Command::new(bench);
    let sample = output(command.args(["sample", "--json", "--rt", "selvedge", "--row", row]))?;
    let sample: serde_json::Value = serde_json::from_str(&sample)?;
    sample["value"].as_f64().context("the sample has a value")
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

fn main() -> Result<()> {
    let rows = match env::args().nth(1) {
        None => TIMED.iter().chain(&SIZED[..2]).copied().collect(),
        Some(row) => match TIMED.iter().chain(&SIZED).find(|known| **known == row) {
            Some(row) => vec![*row],
            None => bail!("no row {row}; there are {TIMED:?} and {SIZED:?}"),
        },
    };
    let folder = tempfile::tempdir()?;
    let (source, go) = (folder.path().join("rows.go"), folder.path().join("rows"));
    fs::write(&source, include_str!("rows.go"))?;
    output(
        Command::new("go")
            .args(["build", "-o"])
            .arg(&go)
            .arg(&source),
    )
    .context("Go is needed (Debian: golang-go)")?;
    // This example is in the folder `examples` beside the program.
    let own = env::current_exe()?;
    let built = own.ancestors().nth(2).context("an example has a folder")?;
    let bench = built.join("bench");
    ensure!(
        bench.exists(),
        "first run `cargo build --release -p bench --bins`"
    );
    println!("{:<18} {:>9} {:>9} {:>6}", "row", "selvedge", "Go", "ratio");
    for row in rows {
        let (mut own, mut peer) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            if row != "idle_conns" {
                own.push(ours(&bench, row)?);
            }
            peer.push(output(Command::new(&go).arg(row))?.parse()?);
        }
        let peer = median(peer);
        match own.is_empty() {
            true => println!("{row:<18} {:>9} {peer:>9.1}", ""),
            false => {
                let own = median(own);
                println!("{row:<18} {own:>9.1} {peer:>9.1} {:>6.2}", own / peer);
            }
        }
    }
    Ok(())
}
