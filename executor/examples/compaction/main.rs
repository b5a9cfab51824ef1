//! A key-value store whose reads share the workers with compaction, on three schedulers: with
//! groups, without groups, and on tokio.
//!
//! `cargo run --release -p selvedge --features groups --example compaction -- [--seconds 5]
//! [--workers 1] [--svg FILE]` prints the latencies of the reads, and when compaction was done.
//! Each run does the same compaction. `--svg` draws the latencies.
//!
//! The store has 64 *tablets*: see `store.rs`. Once a period all of them get new entries, and each
//! is compacted by a task of its own, in steps of about 0.1 ms. The period is such that compaction
//! takes 60 % of the workers' time. Meanwhile the client sends a read every 200 µs: a task that
//! looks up eight keys. Its latency is the time from the spawn to the end of the task.
//!
//! Without groups a read waits until each tablet has had its step. With groups the reads run in a
//! group of 1,000 shares, and compaction in one of 100: a read waits for the rest of a turn. So
//! that compaction does not fall behind, a *controller* gives it more shares as its backlog grows.
mod client;
#[path = "../latencies/picture.rs"]
mod latencies;
mod picture;
mod store;

use client::{Client, Outcome};
use std::{error::Error, path::PathBuf};

/// The options of the command line.
struct Options {
    seconds: f64,
    workers: usize,
    svg: Option<PathBuf>,
}

const USAGE: &str = "usage: compaction [--seconds 5] [--workers 1] [--svg FILE]";

impl Options {
    /// Returns `None` if the user asks for help.
    fn parse() -> Result<Option<Self>, Box<dyn Error>> {
        let mut options = Self {
            seconds: 5.0,
            workers: 1,
            svg: None,
        };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value; {USAGE}"));
            match &*word {
                "--seconds" => options.seconds = value()?.parse()?,
                "--workers" => options.workers = value()?.parse()?,
                "--svg" => options.svg = Some(value()?.into()),
                "--help" => return Ok(None),
                _ => return Err(format!("unknown option {word}; {USAGE}").into()),
            }
        }
        if !(0.1..=3600.0).contains(&options.seconds) || options.workers == 0 {
            return Err(format!("from 0.1 to 3600 seconds, 1 worker or more; {USAGE}").into());
        }
        Ok(Some(options))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::parse()? else {
        println!("{USAGE}");
        return Ok(());
    };
    let client = Client::new(options.seconds, options.workers);
    println!(
        "{} bursts of 64 compactions of {:.2} ms, one every {:.1} ms",
        client.bursts,
        client.work.as_secs_f64() * 1e3,
        client.period.as_secs_f64() * 1e3
    );
    println!(
        "{:16} {:>8} {:>8} {:>8} {:>9} {:>8} {:>9}  (latencies in ms)",
        "", "reads", "p50", "p99", "longest", "merged", "done in s"
    );
    let mut outcomes = Vec::new();
    for run in [with_groups, without_groups, on_tokio] {
        let outcome = run(&client, options.workers)?;
        println!(
            "{:16} {:>8} {:>8.3} {:>8.3} {:>9.3} {:>7}M {:>9.2}",
            outcome.name,
            outcome.latencies.len(),
            outcome.latency(0.5),
            outcome.latency(0.99),
            outcome.latency(1.0),
            outcome.merged / 1_000_000,
            outcome.seconds
        );
        outcomes.push(outcome);
    }
    if let Some(path) = &options.svg {
        picture::draw(&outcomes, path)?;
    }
    Ok(())
}

fn with_groups(client: &Client, workers: usize) -> Result<Outcome, Box<dyn Error>> {
    let runtime = selvedge::Builder::new().workers(workers).build()?;
    let reads = runtime.group("reads").shares(1000).build()?;
    let compaction = runtime.group("compaction").shares(100).build()?;
    let outcome = client.run(
        "groups",
        |read| drop(selvedge::spawn_in(&reads, read).expect("the group is there")),
        |merge| drop(selvedge::spawn_in(&compaction, merge).expect("the group is there")),
        || Box::pin(selvedge::yield_now()),
        |backlog| {
            let shares = 100 + u32::try_from(backlog).unwrap_or(u32::MAX).min(900);
            compaction.set_shares(shares).expect("it is not 0");
        },
    );
    Ok(outcome)
}

fn without_groups(client: &Client, workers: usize) -> Result<Outcome, Box<dyn Error>> {
    let runtime = selvedge::Builder::new().workers(workers).build()?;
    Ok(client.run(
        "without groups",
        |read| runtime.spawn_detached(read),
        |merge| runtime.spawn_detached(merge),
        || Box::pin(selvedge::yield_now()),
        |_| (),
    ))
}

fn on_tokio(client: &Client, workers: usize) -> Result<Outcome, Box<dyn Error>> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(workers).build()?;
    Ok(client.run(
        "tokio",
        |read| drop(runtime.spawn(read)),
        |merge| drop(runtime.spawn(merge)),
        || Box::pin(tokio::task::yield_now()),
        |_| (),
    ))
}
