//! Simulates the scheduler's protocols on 2 to 256 cores, by what their steps cost on two.
//!
//! `cargo run --release -p bench --bin simulate` prints the tables of `docs/benchmarks/scale.md`. A
//! run has no randomness but that of a generator with a fixed seed, so it prints the same each
//! time. The tests compare the simulation of two cores with what was measured there.
mod machine;
mod scheduler;

use machine::{Costs, Nanos};
use scheduler::{Producer, Scheduler, Task, Then};

/// Simulates outside threads, which spawn tasks with so much work: one each `every` nanoseconds.
fn spawn_from_outside(
    costs: Costs,
    size: (usize, usize),
    threads: usize,
    work: Nanos,
    every: Nanos,
) -> Scheduler {
    const TASKS: usize = 100_000;
    let left = TASKS / threads;
    let producer = |n| Producer {
        left,
        every,
        work,
        due: every * n as f64 / threads as f64,
    };
    let mut scheduler = Scheduler::new(costs, size, (0..threads).map(producer).collect());
    scheduler.run((left * threads) as u64);
    scheduler
}

/// Simulates one task that spawns others, with work between two times.
fn spawn_from_a_task(costs: Costs, workers: usize, tasks: u32, work: (Nanos, Nanos)) -> Scheduler {
    let mut scheduler = Scheduler::new(costs, (workers, 1), Vec::new());
    scheduler.spawn(Task {
        work: 0.0,
        core: 0,
        then: Then::Spawns(tasks, work.0, work.1),
    });
    scheduler.run(u64::from(tasks));
    scheduler
}

/// Simulates 50 connections for each worker. A request takes the worker 7 µs, and its client as
/// long as 20 such requests.
fn requests(costs: Costs, workers: usize) -> Scheduler {
    let mut scheduler = Scheduler::new(costs, (workers, 1), Vec::new());
    (0..50 * workers).for_each(|socket| scheduler.connect(7_000.0, 140_000.0, socket as f64));
    scheduler.run(1_000 * workers as u64);
    scheduler
}

fn table(costs: Costs) {
    const WORKERS: [usize; 6] = [2, 8, 32, 64, 128, 256];
    println!(
        "| row | workers | ns a task, all workers | efficiency | writes of the idle word, a task \
         | waits at the injector, % | at the idle word | at the poller |\n|---|---|---|---|---|---|---|---|"
    );
    let each = |name: &str, run: &dyn Fn(usize) -> Scheduler| {
        for workers in WORKERS {
            let of = run(workers);
            let part = |waited: Nanos| 100.0 * waited / (of.now * workers as f64);
            println!(
                "| {name} | {workers} | {:.1} | {:.0} % | {:.3} | {:.1} | {:.1} | {:.1} |",
                of.now / of.done as f64,
                100.0 * of.efficiency(),
                of.idle.writes as f64 / of.done as f64,
                part(of.waited_at_injector()),
                part(of.idle.waited),
                part(of.poller.waited),
            );
        }
    };
    // A thread for eight workers.
    let outside = |workers: usize, shards, work| {
        let threads = workers.div_ceil(8);
        spawn_from_outside(costs, (workers, shards), threads, work, 0.0)
    };
    each("1 µs from outside", &|workers| {
        outside(workers, 1, 1_000.0)
    });
    each("the same, 20 µs", &|workers| outside(workers, 1, 20_000.0));
    each("the same, a shard for 16 workers", &|workers| {
        outside(workers, workers.div_ceil(16), 20_000.0)
    });
    each("20 µs from outside, half of the workers busy", &|workers| {
        let threads = workers.div_ceil(32);
        let every = 40_000.0 * threads as f64 / workers as f64;
        spawn_from_outside(costs, (workers, 1), threads, 20_000.0, every)
    });
    each("20 µs from a task", &|workers| {
        spawn_from_a_task(costs, workers, 200 * workers as u32, (20_000.0, 20_000.0))
    });
    each("requests", &|workers| requests(costs, workers));
}

fn main() {
    println!("Near:\n");
    table(Costs::near());
    println!("\nFar:\n");
    table(Costs::far());
}

#[cfg(test)]
mod tests;
