//! Three groups that always have work divide the CPU by their shares: the first table of Seastar's
//! demonstration of its CPU scheduler.
//!
//! `cargo run --release -p selvedge --features groups --example group_shares -- [--seconds 10]
//! [--workers 1] [--sharded] [--svg FILE]` prints a line for each group, and then the runtime's
//! counters. The groups' runtimes are in the proportion of their shares: 100, 20 and 50. With one
//! worker, and with workers that do not steal, a run of whole seconds, and of five at least, fails
//! if a group's part of the time is 10 % off.
mod cli;
#[path = "groups/demo.rs"]
mod demo;

use demo::{Load, Options};
use std::{error::Error, process::ExitCode};

const HELP: &str = "\
Runs three groups whose shares are 100, 20 and 50, and shows the time that each gets.

Usage: group_shares [--seconds S] [--workers N] [--sharded] [--svg FILE]

--seconds S  how long it runs [10]
--workers N  the threads that run the groups [1]
--sharded    workers do not steal
--svg FILE   draws the picture into FILE";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| measure(&Options::parse(arguments)?))
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let load = |shares, concurrency, micros| Load {
        shares,
        part: f64::from(shares),
        concurrency,
        micros,
        duty: 100,
    };
    let loads = [load(100, 5, 1000), load(20, 3, 100), load(50, 2, 400)];
    demo::run("Three groups at full duty", options, &loads)?;
    Ok(())
}
