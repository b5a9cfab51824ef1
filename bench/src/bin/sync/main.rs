//! Measures `task-sync`, which is `selvedge::sync`, beside other crates of channels and locks.
//!
//! `cargo run --profile bench -p bench --bin sync` measures all rows and prints the page
//! `docs/benchmarks/sync.md`. One process runs all samples: in a round of a row, each peer takes
//! one sample on our runtime and one on tokio's, back to back, and the order rotates from round to
//! round. A round during which other processes used the machine, or whose processors were far from
//! each other, is given up and taken again. The rows take turns, so that a row's rounds are spread
//! over the whole time.
mod bytes;
mod names;
#[path = "../../noise.rs"]
#[expect(dead_code, reason = "it also has what other programs need")]
mod noise;
mod page;
mod peers;
mod rows;
mod runtimes;
mod workloads;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use noise::Window;
use page::{Report, Sample, Table};
use rows::Row;
use runtimes::{NAMES, Pair};
use std::{
    io,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

#[global_allocator]
static ALLOCATOR: bytes::Counting = bytes::Counting;

/// Compares task-sync with other crates of channels and locks.
#[derive(Parser)]
struct Options {
    /// Number of rounds.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// Measures only these rows.
    #[arg(long, value_delimiter = ',')]
    rows: Vec<String>,
    /// Operations of a sample, as a part of the usual ones.
    #[arg(long, default_value_t = 1.0)]
    size: f64,
    /// The part of the machine, in per cent, that other processes may use during a round.
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    disturbance: f64,
    /// The most seconds for all rounds.
    #[arg(long, default_value_t = 600)]
    seconds: u64,
    /// Takes the figures from a file that --json wrote, and measures nothing.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    /// Writes the figures to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Lists the rows.
    #[arg(long)]
    list: bool,
}

/// Two processors are near each other if a cache line's round trip between them takes less than
/// this many nanoseconds.
const NEAR_NS: f64 = 150.0;

fn main() -> Result<()> {
    let options = Options::parse();
    let rows = chosen(&options.rows)?;
    if options.list {
        for row in rows {
            println!("{:<24}{}", row.name, row.what);
        }
        return Ok(());
    }
    let report = match &options.from {
        Some(file) => {
            let json = std::fs::read(file).with_context(|| format!("{}", file.display()))?;
            serde_json::from_slice(&json)?
        }
        None => measure(&rows, &options)?,
    };
    if let Some(file) = &options.json {
        std::fs::write(file, serde_json::to_string(&report)? + "\n")?;
    }
    print!("{}", report.page());
    Ok(())
}

fn chosen(wanted: &[String]) -> Result<Vec<Row>> {
    let mut rows = rows::rows();
    for name in wanted {
        ensure!(rows.iter().any(|row| row.name == name), "no row {name}");
    }
    rows.retain(|row| wanted.is_empty() || wanted.iter().any(|name| name == row.name));
    Ok(rows)
}

/// Takes the rounds of all rows in turns, until each row has its rounds or the time is up.
fn measure(rows: &[Row], options: &Options) -> Result<Report> {
    // Before the runtimes' threads exist: they would count, too.
    let bytes = bytes::bytes();
    let most = rows.iter().map(|row| row.workers).max().unwrap_or(1);
    let pairs = (1..=most).map(Pair::new).collect::<io::Result<Vec<_>>>()?;
    let operations = |row: &Row| ((row.operations as f64 * options.size) as u64).max(1_000);
    let mut tables: Vec<_> = rows.iter().map(Table::new).collect();
    for row in rows {
        // This round warms up.
        round(row, &pairs[row.workers - 1], operations(row), 0);
    }
    let deadline = Instant::now() + Duration::from_secs(options.seconds);
    let is_over = |tables: &[Table]| tables.iter().all(|table| table.rounds() >= options.rounds);
    while !is_over(&tables) && Instant::now() < deadline {
        for (row, table) in rows.iter().zip(&mut tables) {
            if table.rounds() >= options.rounds {
                continue;
            }
            if !are_near() {
                thread::sleep(Duration::from_millis(20));
                continue;
            }
            let window = Window::open();
            let number = table.rounds();
            let samples = round(row, &pairs[row.workers - 1], operations(row), number);
            let others = 100.0 * window.close().others.unwrap_or(0.0);
            if others <= options.disturbance && are_near() {
                table.add(&samples);
            }
        }
    }
    Ok(Report {
        machine: page::machine(),
        rounds: options.rounds,
        tables,
        bytes,
    })
}

/// Returns whether the processors are near each other, as far as the machine says so.
fn are_near() -> bool {
    noise::round_trip().is_none_or(|trip| trip < NEAR_NS)
}

/// Takes one sample of each peer on each runtime: a list by peers, of a pair by runtimes.
fn round(row: &Row, pair: &Pair, operations: u64, number: usize) -> Vec<[Sample; 2]> {
    let count = row.entries.len();
    let mut samples = vec![[Sample::default(); 2]; count];
    for turn in 0..count * NAMES.len() {
        let turn = (turn + number) % (count * NAMES.len());
        let (peer, on) = (turn / NAMES.len(), turn % NAMES.len());
        let work = row.entries[peer].start[on](operations);
        let begun = Instant::now();
        let window = Window::open();
        pair.run(on, work);
        let (wall, spent) = (begun.elapsed(), window.close());
        samples[peer][on] = Sample {
            ns: wall.as_nanos() as f64 / operations as f64,
            cpu_ns: spent.cpu.as_nanos() as f64 / operations as f64,
        };
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_run_with_each_peer_on_both_runtimes() {
        for row in rows::rows() {
            let pair = Pair::new(row.workers).unwrap();
            for samples in round(&row, &pair, 2_000, 0) {
                assert!(samples.iter().all(|sample| sample.ns > 0.0), "{}", row.name);
            }
        }
    }
}
