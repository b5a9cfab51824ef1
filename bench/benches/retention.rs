//! The memory that a growable queue keeps after it was filled and emptied once.
//! `cargo bench -p bench --bench retention`, on Linux.
//!
//! A cycle pushes items of two words. Then the owner pops them, or a thief steals them, one by one
//! until the queue is empty. In both cases the owner's last pop finds the queue empty. Each figure
//! is the median of several processes, and each process measures one queue.
//!
//! - *held*: resident MiB after a cycle of 4,000,000 items, before the queue is dropped. The figure
//!   includes the process itself.
//! - *first*: milliseconds of a process's first cycle, of 500,000 items.
//!
//! crossbeam's deque retires its old buffers to an epoch. So a process that measures crossbeam's
//! deque first flushes that epoch: the figure leaves out memory that would be freed a moment later.
//!
//! The exit status is 1 if one of our queues holds more than 1.2 times as much as crossbeam's queue
//! of the same order.
use queue_spmc::{Steal, deque, fifo};
use std::{
    env, fs,
    hint::black_box,
    process::{Command, ExitCode},
    time::Instant,
};

/// The items of a cycle after which the memory is measured.
const ITEMS_HELD: u64 = 4_000_000;
/// The items of a cycle whose time is measured.
const ITEMS_TIMED: u64 = 500_000;
const ROUNDS: usize = 5;
/// Our queues may hold this many times as much memory as crossbeam's.
const LARGEST_RATIO: f64 = 1.2;

type Item = [u64; 2];

/// How the items of a cycle leave the queue.
#[derive(Clone, Copy)]
enum Emptying {
    Pops,
    Steals,
}

impl Emptying {
    const ALL: [Self; 2] = [Self::Pops, Self::Steals];

    /// The word for this in the table, and in the arguments of a process.
    fn word(self) -> &'static str {
        match self {
            Self::Pops => "pops",
            Self::Steals => "steals",
        }
    }
}

/// The figure that a process measures.
#[derive(Clone, Copy)]
enum Figure {
    Held,
    First,
}

impl Figure {
    const ALL: [Self; 2] = [Self::Held, Self::First];

    /// The word for this in the arguments of a process.
    fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::First => "first",
        }
    }
}

/// Runs a cycle, and calls `after` before the queue is dropped.
type Cycle = fn(items: u64, emptying: Emptying, after: &mut dyn FnMut());

macro_rules! ours {
    ($module:ident) => {
        |items, emptying, after| {
            let mut worker = $module::Worker::<Item>::new();
            (0..items).for_each(|item| worker.push(black_box([item; 2])));
            if let Emptying::Steals = emptying {
                let stealer = worker.stealer();
                while black_box(stealer.steal()) != Steal::Empty {}
            }
            while black_box(worker.pop()).is_some() {}
            after();
        }
    };
}

macro_rules! crossbeam {
    ($constructor:ident) => {
        |items, emptying, after| {
            let worker = crossbeam_deque::Worker::<Item>::$constructor();
            (0..items).for_each(|item| worker.push(black_box([item; 2])));
            if let Emptying::Steals = emptying {
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

/// Returns the resident memory of this process, in MiB.
fn resident_mib() -> f64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has this file");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kib: f64 = kib.and_then(|n| n.parse().ok()).expect("a number");
    kib / 1024.0
}

/// Runs one cycle in a new process, and returns the figure that the process prints.
fn measure(queue: usize, emptying: Emptying, figure: Figure) -> f64 {
    let program = env::current_exe().expect("a path");
    let queue = queue.to_string();
    let arguments = ["--cycle", &queue, emptying.word(), figure.word()];
    let output = Command::new(program).args(arguments).output();
    let printed = String::from_utf8(output.expect("it runs").stdout).expect("a number");
    printed.trim().parse().expect("a number")
}

/// Runs one cycle in this process, and prints the figure.
fn print_figure(queue: usize, emptying: Emptying, figure: Figure) {
    let cycle = QUEUES[queue].1;
    let value = match figure {
        Figure::Held => {
            let mut mib = 0.0;
            cycle(ITEMS_HELD, emptying, &mut || mib = resident_mib());
            mib
        }
        Figure::First => {
            let begun = Instant::now();
            cycle(ITEMS_TIMED, emptying, &mut || ());
            begun.elapsed().as_secs_f64() * 1e3
        }
    };
    println!("{value}");
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if let [flag, queue, emptying, figure] = &arguments[..]
        && flag == "--cycle"
    {
        let queue = queue.parse().expect("a number");
        let emptying = Emptying::ALL
            .into_iter()
            .find(|known| known.word() == emptying);
        let figure = Figure::ALL.into_iter().find(|known| known.word() == figure);
        print_figure(queue, emptying.expect("a word"), figure.expect("a word"));
        return ExitCode::SUCCESS;
    }
    println!("{:<24}{:>10}{:>10}", "", "held, MiB", "first, ms");
    let mut is_within = true;
    for emptying in Emptying::ALL {
        let mut figures = [const { (Vec::new(), Vec::new()) }; QUEUES.len()];
        for _ in 0..ROUNDS {
            for (queue, (held, first)) in figures.iter_mut().enumerate() {
                held.push(measure(queue, emptying, Figure::Held));
                first.push(measure(queue, emptying, Figure::First));
            }
        }
        let figures = figures.map(|(held, first)| (median(held), median(first)));
        for ((name, _), (held, first)) in QUEUES.iter().zip(figures) {
            let name = format!("{name}, {}", emptying.word());
            println!("{name:<24}{held:>10.1}{first:>10.1}");
        }
        let mut pairs = figures.chunks(2);
        is_within &= pairs.all(|pair| pair[0].0 <= LARGEST_RATIO * pair[1].0);
    }
    if is_within {
        ExitCode::SUCCESS
    } else {
        println!("a queue of ours holds more than {LARGEST_RATIO} times what crossbeam's holds");
        ExitCode::FAILURE
    }
}
