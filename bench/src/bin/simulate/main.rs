//! Simulates the scheduler's protocols with 2 to 256 workers, each on a core of its own. A step of
//! a protocol takes the time that was measured on two cores.
//!
//! `cargo run --release -p bench --bin simulate` prints the tables of `docs/benchmarks/scale.md`.
//! All randomness comes from a generator with a fixed seed, so each run prints the same. The tests
//! compare the simulation of one and two workers with measurements on two cores.
mod machine;
mod scheduler;

use machine::{Costs, Nanos};
use scheduler::{Outcome, Producer, Scheduler, Task};

/// Simulates outside threads. Each of them spawns a task every `every` nanoseconds, or as fast as
/// it can if a spawn takes longer. `shards` is the number of the injector's shards. `work` is the
/// work of each task.
fn spawn_from_outside(
    costs: Costs,
    workers: usize,
    shards: usize,
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
    let producers = (0..threads).map(producer).collect();
    let mut scheduler = Scheduler::new(costs, workers, shards, producers);
    scheduler.run((left * threads) as u64);
    scheduler
}

/// Simulates one task that spawns `tasks` others. The work of each is between the two times.
fn spawn_from_a_task(costs: Costs, workers: usize, tasks: u32, work: (Nanos, Nanos)) -> Scheduler {
    let mut scheduler = Scheduler::new(costs, workers, 1, Vec::new());
    scheduler.spawn(Task {
        work: 0.0,
        core: 0,
        outcome: Outcome::Spawns(tasks, work.0, work.1),
    });
    scheduler.run(u64::from(tasks));
    scheduler
}

/// Simulates 50 connections for each worker. A request takes a worker 7 µs. The client sends the
/// next request of a connection 140 µs after the worker has served the one before.
fn requests(costs: Costs, workers: usize) -> Scheduler {
    let mut scheduler = Scheduler::new(costs, workers, 1, Vec::new());
    for socket in 0..50 * workers {
        let first_at = socket as f64;
        scheduler.connect(7_000.0, 140_000.0, first_at);
    }
    scheduler.run(1_000 * workers as u64);
    scheduler
}

const WORKERS: [usize; 6] = [2, 8, 32, 64, 128, 256];

/// Returns the number of shards that the executor has for so many workers.
fn shards(workers: usize) -> usize {
    workers.div_ceil(16)
}

type Simulate = fn(Costs, usize) -> Scheduler;

/// Simulates outside threads that spawn as fast as they can: one thread for every eight workers.
fn outside(costs: Costs, workers: usize, shards: usize, work: Nanos) -> Scheduler {
    spawn_from_outside(costs, workers, shards, workers.div_ceil(8), work, 0.0)
}

const ROWS: [(&str, Simulate); 7] = [
    ("1 µs from outside", |costs, workers| {
        outside(costs, workers, shards(workers), 1_000.0)
    }),
    ("1 µs from outside, one shard", |costs, workers| {
        outside(costs, workers, 1, 1_000.0)
    }),
    ("20 µs from outside", |costs, workers| {
        outside(costs, workers, shards(workers), 20_000.0)
    }),
    ("20 µs from outside, one shard", |costs, workers| {
        outside(costs, workers, 1, 20_000.0)
    }),
    ("20 µs, half of the workers busy", |costs, workers| {
        // One task per 40 µs and worker. At 20 µs of work each, half of the workers are busy.
        let threads = workers.div_ceil(32);
        let every = 40_000.0 * threads as f64 / workers as f64;
        spawn_from_outside(costs, workers, shards(workers), threads, 20_000.0, every)
    }),
    ("20 µs from a task", |costs, workers| {
        spawn_from_a_task(costs, workers, 200 * workers as u32, (20_000.0, 20_000.0))
    }),
    ("requests", requests),
];

/// Prints a table of one figure, by row and number of workers. Each entry has the figure for cores
/// near each other, and for cores far from each other.
fn print_table(what: &str, figure: fn(&Scheduler) -> f64) {
    println!(
        "\n{what}:\n\n| row | {} |",
        WORKERS.map(|n| n.to_string()).join(" | ")
    );
    println!("|---|{}", "---|".repeat(WORKERS.len()));
    for (name, simulate) in ROWS {
        let cell = |workers| {
            let [near, far] =
                [Costs::near(), Costs::far()].map(|costs| figure(&simulate(costs, workers)));
            format!("{near:.0} / {far:.0}")
        };
        println!("| {name} | {} |", WORKERS.map(cell).join(" | "));
    }
}

fn main() {
    print_table("The tasks' own work, % of all workers' time", |simulated| {
        100.0 * simulated.efficiency()
    });
    print_table(
        "Waits for the injector's cache lines, % of all workers' time",
        |simulated| simulated.percent_of_all_time(simulated.waited_at_injector()),
    );
    print_table("Waits for the idle word", |simulated| {
        simulated.percent_of_all_time(simulated.idle.waited)
    });
    print_table("Waits for the poller", |simulated| {
        simulated.percent_of_all_time(simulated.poller.waited)
    });
}

#[cfg(test)]
mod tests;
