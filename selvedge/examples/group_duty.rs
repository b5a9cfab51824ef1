//! Two groups: one always has work, the other only half of the time. This is the second table of
//! Seastar's demonstration of its CPU scheduler.
//!
//! ```sh
//! cargo run --release -p selvedge --features groups --example group_duty -- \
//!     [--seconds 10] [--workers 1] [--sharded] [--svg FILE]
//! ```
//!
//! The example prints a line for each group. The first group has half of the second one's shares,
//! but in the end twice its runtime: it gets a third of the CPU while the second group has work,
//! and all of it while the second group rests. A group that rests earns no credit for later.
//!
//! This holds on each worker. If two workers steal, the ratio is 3 to 5: the worker that waits for
//! timers wakes the sleeping tasks of both, and keeps these tasks as long as the other worker has
//! tasks of its own. So the second group often has tasks on one worker only. With `--sharded` each
//! task stays on its worker, and the example fails if a task has moved.
//!
//! With `--sharded` or with one worker the example also fails if a group's part of the time is 10 %
//! off, but only in a run of whole seconds, five at least. Other programs must leave the workers
//! most of the CPU.
mod cli;
#[path = "groups/demo.rs"]
mod demo;

use demo::{Load, Options};
use std::{error::Error, process::ExitCode};

const HELP: &str = "\
Runs a group that always has work beside one that has it half of the time.

Usage: group_duty [--seconds S] [--workers N] [--sharded] [--svg FILE]

--seconds S  how long it runs [10]
--workers N  the threads that run the groups [1]
--sharded    workers do not steal
--svg FILE   draws the picture into FILE";

fn main() -> ExitCode {
    cli::run(HELP, |arguments| measure(&Options::parse(arguments)?))
}

fn measure(options: &Options) -> Result<(), Box<dyn Error>> {
    let always = Load {
        shares: 50,
        part: 2.0,
        concurrency: 5,
        micros: 1000,
        duty: 100,
    };
    let half_of_the_time = Load {
        shares: 100,
        part: 1.0,
        concurrency: 4,
        micros: 1000,
        duty: 50,
    };
    let loads = [always, half_of_the_time];
    let runtimes = demo::run("Full and half duty", options, &loads)?;
    println!("ratio {:.3}", runtimes[0] / runtimes[1]);
    Ok(())
}
