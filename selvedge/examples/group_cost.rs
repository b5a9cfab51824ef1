//! Measures what groups add to a poll: 1,000 tasks yield by turns on one worker, all in the main
//! group, or spread over 4, 100 or 1,000 groups.
//!
//! `cargo run --release -p selvedge --features groups --example group_cost` prints the nanoseconds
//! of a poll, and how many more they are than in the main group alone. Each figure is the median of
//! 11 samples. The program takes the first sample for each number of groups, then the second, and
//! so on. The worker stays with a group for 0.5 ms, so the cost of the change from one group to the
//! next is divided among many polls.
mod cli;

use selvedge::{Builder, Runtime, SchedulingGroup, spawn_in, yield_now};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

const HELP: &str = "\
Measures how much time groups add to each poll of a runtime.

Usage: group_cost";

const TASKS: u32 = 1_000;
const YIELDS: u32 = 200;
const SAMPLES: usize = 11;

/// Numbers of groups. 0 stands for the main group alone.
const GROUPS: [usize; 4] = [0, 4, 100, 1_000];

fn main() -> ExitCode {
    cli::demo(HELP, || {
        let mut rows = GROUPS.map(|groups| (Load::new(groups), Vec::new()));
        for _ in 0..SAMPLES {
            for (load, samples) in &mut rows {
                samples.push(load.sample());
            }
        }
        let medians = rows.map(|(load, mut samples)| {
            samples.sort_unstable();
            let poll = samples[SAMPLES / 2].as_secs_f64() * 1e9 / f64::from(TASKS * YIELDS);
            (load.groups.len(), poll)
        });
        println!("{:>6} {:>9} {:>9}", "groups", "ns a poll", "added");
        for (groups, poll) in medians {
            println!("{groups:>6} {poll:>9.1} {:>9.1}", poll - medians[0].1);
        }
    })
}

/// A runtime of one worker with its groups.
struct Load {
    runtime: Runtime,
    groups: Vec<SchedulingGroup>,
}

impl Load {
    fn new(groups: usize) -> Self {
        let runtime = Builder::new().workers(1).build().unwrap();
        let group = |number| runtime.group(format!("group {number}")).build().unwrap();
        let groups = (0..groups).map(group).collect();
        Self { runtime, groups }
    }

    /// Returns the time from the first spawn to the end of the last task.
    fn sample(&self) -> Duration {
        let groups = self.groups.clone();
        let all = self.runtime.spawn(async move {
            let begun = Instant::now();
            let task = |number: u32| {
                let work = async {
                    for _ in 1..YIELDS {
                        yield_now().await;
                    }
                };
                match groups.len() {
                    0 => selvedge::spawn(work),
                    count => spawn_in(&groups[number as usize % count], work).unwrap(),
                }
            };
            let tasks: Vec<_> = (0..TASKS).map(task).collect();
            for task in tasks {
                task.await.unwrap();
            }
            begun.elapsed()
        });
        self.runtime.block_on(all).unwrap()
    }
}
