//! Two groups: one always has work, the other only half of the time. This is the second table of
//! Seastar's demonstration of its CPU scheduler.
//!
//! `cargo run --release -p selvedge --features groups --example group_duty -- [--seconds 10]
//! [--workers 1] [--sharded] [--svg FILE]` prints a line for each group. The first group has half
//! of the second one's shares, and in the end twice its runtime. It has a third of the CPU while
//! the second group has work, and all of it while the second group rests. To rest earns no credit.
//!
//! This holds on each worker. If two workers steal, the ratio is 3 to 5: the worker that waits for
//! timers wakes the sleepers of both, and keeps them as long as the other worker has tasks of its
//! own. So the second group often has tasks on one worker only. With `--sharded` each task stays on
//! its worker. Then the example fails if a task has moved, or, in a run of whole seconds, and of
//! five at least, if a group's part of the time is 10 % off. The latter is also so with one worker.
//! Other programs must leave the workers most of the CPU.
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
    let load = |shares, part, duty, concurrency| Load {
        shares,
        part,
        concurrency,
        micros: 1000,
        duty,
    };
    let loads = [load(50, 2.0, 100, 5), load(100, 1.0, 50, 4)];
    let runtimes = demo::run("Full and half duty", options, &loads)?;
    println!("ratio {:.3}", runtimes[0] / runtimes[1]);
    Ok(())
}
