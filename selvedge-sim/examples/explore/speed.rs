//! `--speed`: how fast the simulator is, in runs of a ping and in ticks of workers.
use crate::scenarios::{all, ping};
use selvedge_executor::{spawn, yield_now};
use selvedge_sim::{Polls, Sim, explore};
use std::time::Instant;

const PINGS: u64 = 5_000;
const TASKS: u64 = 16;
const YIELDS: u64 = 10_000;
const LONG_RUNS: u64 = 10;

/// Two workers poll tasks that only yield. Each order of threads is among the seeds.
fn ticks(sim: Sim) -> selvedge_sim::Run {
    let sim = sim.polls(Polls::Instant).steps(u64::MAX);
    sim.workers(2).run(|| async {
        let tasks = (0..TASKS).map(|_| {
            spawn(async {
                for _ in 0..YIELDS {
                    yield_now().await;
                }
            })
        });
        all(tasks.collect::<Vec<_>>()).await;
    })
}

/// Prints both figures.
pub fn measure() {
    let begun = Instant::now();
    let explored = explore(0..PINGS, ping);
    let seconds = begun.elapsed().as_secs_f64();
    println!("ping: {:.0} runs/s", explored.runs as f64 / seconds);
    // No seed runs twice.
    let begun = Instant::now();
    let explored = explore(1..1 + LONG_RUNS, ticks);
    let seconds = begun.elapsed().as_secs_f64();
    println!("ticks: {:.0} ticks/s", explored.points as f64 / seconds);
    assert!(explored.found.is_none(), "a run fails");
}
