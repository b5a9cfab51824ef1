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
//! looks up eight keys. The latency of a read is the time from the spawn to the end of its task.
//!
//! Without groups a read waits until the task of each tablet has run one step. With groups the
//! reads run in a group of 1,000 shares, and compaction in one of 100. The reads' group has a goal
//! for its latency, so a read waits for about one step. A *controller* gives compaction more shares
//! as the backlog of compaction grows, so that compaction does not fall behind.
//!
//! With two processors, the operating system sometimes runs the client on the worker's processor.
//! Then, with each of the three schedulers, reads also wait until the system runs the worker again.
#[path = "../cli/mod.rs"]
mod cli;
mod client;
#[path = "../latencies/picture.rs"]
mod latencies;
mod picture;
mod store;

use cli::Usage;
use client::{Client, Outcome};
use indicatif::{ProgressBar, ProgressStyle};
use std::{error::Error, path::PathBuf, process::ExitCode, time::Duration};

/// Runs the client on one of the schedulers.
type Run = fn(&Client, usize) -> Result<Outcome, Box<dyn Error>>;

/// The options of the command line.
struct Options {
    seconds: f64,
    workers: usize,
    svg: Option<PathBuf>,
}

const HELP: &str = "\
Measures reads beside compactions: with groups, without, and on tokio.

Usage: compaction [--seconds S] [--workers N] [--svg FILE]

--seconds S  how long each of the three runs takes [5]
--workers N  the threads of each runtime [1]
--svg FILE   draws the latencies into FILE";

impl Options {
    fn parse(words: Vec<String>) -> Result<Self, Usage> {
        let mut options = Self {
            seconds: 5.0,
            workers: 1,
            svg: None,
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(Usage(format!("{word} needs a value")));
            match &*word {
                "--seconds" => options.seconds = cli::parse(&word, &value()?)?,
                "--workers" => options.workers = cli::parse(&word, &value()?)?,
                "--svg" => options.svg = Some(value()?.into()),
                _ => return Err(Usage(format!("no option {word}"))),
            }
        }
        if !(0.1..=3600.0).contains(&options.seconds) || !(1..=1024).contains(&options.workers) {
            let limits = "from 0.1 to 3600 seconds, from 1 to 1024 workers";
            return Err(Usage(limits.to_owned()));
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    cli::run(HELP, |arguments| measure(&Options::parse(arguments)?))
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
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
    // The bar is drawn on standard error, and only if that is a terminal.
    let bar = ProgressBar::new(3).with_style(ProgressStyle::with_template("{bar:30} {msg}")?);
    let runs: [(_, Run); 3] = [
        ("with groups", with_groups),
        ("without groups", without_groups),
        ("on tokio", on_tokio),
    ];
    for (name, run) in runs {
        bar.set_message(name);
        let outcome = run(&client, options.workers)?;
        bar.inc(1);
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
    bar.finish_and_clear();
    if let Some(path) = &options.svg {
        picture::draw(&outcomes, path)?;
    }
    Ok(())
}

/// The longest turn of compaction while a read waits.
const GOAL: Duration = Duration::from_micros(100);

fn with_groups(client: &Client, workers: usize) -> Result<Outcome, Box<dyn Error>> {
    let runtime = selvedge::Builder::new().workers(workers).build()?;
    let reads = runtime.group("reads").shares(1000).latency(GOAL).build()?;
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
