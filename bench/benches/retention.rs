//! The memory that a growable queue keeps after it was filled and emptied once.
//! `cargo bench -p bench --bench retention`, on Linux.
//!
//! A cycle pushes items of two words. Then the owner pops them, or a thief steals them, one by one
//! until the queue is empty. In both cases the owner's last pop finds the queue empty. Each figure
//! is the median of several processes; the queues take turns.
//!
//! - *held*: resident MiB after a cycle of 4,000,000 items, before the queue is dropped. The figure
//!   includes the process itself.
//! - *first*: milliseconds of a process's first cycle, of 500,000 items.
//!
//! crossbeam's deque retires its old buffers to an epoch. So a process that measures crossbeam's
//! deque first flushes that epoch: the figure leaves out memory that would be freed a moment later.
//!
//! The exit status is 1 if the *held* figure of one of our queues is more than 1.2 times that of
//! crossbeam's queue of the same order.
use queue_spmc::{Steal, deque, fifo};
use std::{
    env, fs,
    hint::black_box,
    process::{Command, ExitCode},
    time::Instant,
};

const HELD: u64 = 4_000_000;
const FIRST: u64 = 500_000;
const ROUNDS: usize = 5;
const MOST: f64 = 1.2;

type Item = [u64; 2];

/// Runs a cycle, and calls `after` before the queue is dropped.
type Cycle = fn(items: u64, steal: bool, after: &mut dyn FnMut());

macro_rules! ours {
    ($of:ident) => {
        |items, steal, after| {
            let mut worker = $of::Worker::<Item>::new();
            (0..items).for_each(|item| worker.push(black_box([item; 2])));
            if steal {
                let stealer = worker.stealer();
                while black_box(stealer.steal()) != Steal::Empty {}
            }
            while black_box(worker.pop()).is_some() {}
            after();
        }
    };
}

macro_rules! crossbeam {
    ($new:ident) => {
        |items, steal, after| {
            let worker = crossbeam_deque::Worker::<Item>::$new();
            (0..items).for_each(|item| worker.push(black_box([item; 2])));
            if steal {
                let stealer = worker.stealer();
                while !black_box(stealer.steal()).is_empty() {}
            }
            while black_box(worker.pop()).is_some() {}
            // Each flush advances the epoch by one at most. Buffers two epochs old are freed.
            (0..3).for_each(|_| crossbeam_epoch::pin().flush());
            after();
        }
    };
}

/// Each of our queues, and after it crossbeam's queue of the same order.
const QUEUES: [(&str, Cycle); 4] = [
    ("deque", ours!(deque)),
    ("crossbeam lifo", crossbeam!(new_lifo)),
    ("fifo", ours!(fifo)),
    ("crossbeam fifo", crossbeam!(new_fifo)),
];

fn resident() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells what is resident");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: f64 = kilobytes.and_then(|n| n.parse().ok()).expect("a number");
    kilobytes / 1024.0
}

/// Runs one cycle in a new process, and returns the figure that the process prints.
fn measure(queue: usize, steal: bool, held: bool) -> f64 {
    let own = env::current_exe().expect("a path");
    let words = [queue.to_string(), steal.to_string(), held.to_string()];
    let out = Command::new(own).arg("--cycle").args(words).output();
    let out = String::from_utf8(out.expect("it runs").stdout).expect("a number");
    out.trim().parse().expect("a number")
}

fn cycle(queue: usize, steal: bool, held: bool) {
    let cycle = QUEUES[queue].1;
    let mut figure = 0.0;
    if held {
        cycle(HELD, steal, &mut || figure = resident());
    } else {
        let begun = Instant::now();
        cycle(FIRST, steal, &mut || ());
        figure = begun.elapsed().as_secs_f64() * 1e3;
    }
    println!("{figure}");
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if let [flag, queue, steal, held] = &arguments[..]
        && flag == "--cycle"
    {
        let queue = queue.parse().expect("a number");
        cycle(queue, steal == "true", held == "true");
        return ExitCode::SUCCESS;
    }
    println!("{:<24}{:>10}{:>10}", "", "held, MiB", "first, ms");
    let mut within = true;
    for steal in [false, true] {
        let mut figures = [const { (Vec::new(), Vec::new()) }; QUEUES.len()];
        for _ in 0..ROUNDS {
            for (queue, (held, first)) in figures.iter_mut().enumerate() {
                held.push(measure(queue, steal, true));
                first.push(measure(queue, steal, false));
            }
        }
        let figures = figures.map(|(held, first)| (median(held), median(first)));
        for ((name, _), (held, first)) in QUEUES.iter().zip(figures) {
            let how = if steal { "steals" } else { "pops" };
            println!("{:<24}{held:>10.1}{first:>10.1}", format!("{name}, {how}"));
        }
        within &= figures.chunks(2).all(|pair| pair[0].0 <= MOST * pair[1].0);
    }
    if within {
        ExitCode::SUCCESS
    } else {
        println!("more than {MOST} times what crossbeam's holds");
        ExitCode::FAILURE
    }
}
