//! The workloads, generic over the runtime, and how their runs are measured.
//!
//! To add a workload, write a function, an entry in `workload/rows.rs`, and its name in `names.rs`.
use crate::{
    noise::{Spent, Window},
    percentiles::distribution,
    rt::Rt,
};
use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread::{self, Thread},
    time::{Duration, Instant},
};

mod coop;
mod fs;
mod http;
mod interval;
mod latency;
mod load;
mod memory;
mod net;
mod outside;
mod rows;
mod sample;
mod spawn;
mod time;
mod wake;

pub(crate) use outside::Settings;
pub(crate) use rows::rows;
pub(crate) use sample::{Sample, sample, serve_for_ever};

/// Unparks the measuring thread when the last party is done. A `Done` is one word to capture, and
/// counts nothing but the parties, so that the row measures the runtime.
#[derive(Clone, Copy)]
pub(crate) struct Done(&'static Parties);

struct Parties {
    left: AtomicUsize,
    waiter: Thread,
}

impl Done {
    /// Makes a `Done` for which this thread waits. Its `Parties` are leaked, as a sample makes only
    /// one.
    fn new() -> Self {
        Self(Box::leak(Box::new(Parties {
            left: AtomicUsize::new(0),
            waiter: thread::current(),
        })))
    }

    /// Makes [`wait`](Self::wait) return after this number of calls of [`one`](Self::one).
    fn expect(self, parties: usize) {
        // Ordering: Relaxed. The spawns that follow order this store before every `fetch_sub`.
        self.0.left.store(parties, Relaxed);
    }

    /// Counts one party as done. The last one unparks the waiter.
    pub(crate) fn one(self) {
        // Ordering: Relaxed. Only the number matters; no data is handed over.
        if self.0.left.fetch_sub(1, Relaxed) == 1 {
            self.0.waiter.unpark();
        }
    }

    fn wait(self) {
        // Ordering: Relaxed, as in `one`. A park that returns early leads to another look. An
        // `unpark` before the park leaves its token, which ends the park.
        while self.0.left.load(Relaxed) != 0 {
            thread::park();
        }
    }
}

/// The figures of a row.
pub(crate) struct Measured {
    operations: u64,
    /// The figure for one operation, in the row's unit.
    value: f64,
    p99: Option<f64>,
    latencies: Option<[f64; 4]>,
    efficiency: Option<f64>,
    threads: Option<usize>,
    outside: Option<outside::figures::Outside>,
    spent: Spent,
}

impl Measured {
    /// Makes the figures that each row has, and leaves out the others.
    fn of(operations: u64, value: f64, spent: Spent) -> Self {
        Self {
            operations,
            value,
            p99: None,
            latencies: None,
            efficiency: None,
            threads: None,
            outside: None,
            spent,
        }
    }
}

/// Returns the figures of a row whose value is the time that one operation in a hundred exceeds.
fn tail(took: Vec<u64>, spent: Spent) -> Option<Measured> {
    let operations = took.len() as u64;
    let latencies @ [_, _, p99, _] = distribution(took)?;
    Some(Measured {
        latencies: Some(latencies),
        ..Measured::of(operations, p99, spent)
    })
}

/// Whether the workloads are small. A build with debug assertions is for tests, which check that
/// each workload ends, not its time.
const SMALL: bool = cfg!(debug_assertions);

/// Returns a workload's size: `full`, or a twentieth of `full` if workloads are small.
const fn size(full: usize) -> usize {
    if SMALL { full.div_ceil(20) } else { full }
}

/// Measures one run after the other. A run is `operations` operations, and ends when `parties`
/// parties have called [`Done::one`].
fn repeat<R: Rt>(
    operations: usize,
    parties: usize,
    run: fn(&R, Done),
) -> impl Fn(&R, usize, Duration) -> Option<Measured> {
    move |runtime, _, at_least| {
        let runs = runs(runtime, at_least, Duration::ZERO, parties, run);
        Some(runs.each(operations))
    }
}

/// The time that a number of runs took.
struct Runs {
    count: u64,
    wall: Duration,
    spent: Spent,
}

impl Runs {
    /// Divides the time by the number of operations. Each run has `operations` of them.
    fn each(self, operations: usize) -> Measured {
        let operations = self.count * operations as u64;
        let value = self.wall.as_nanos() as f64 / operations as f64;
        Measured::of(operations, value, self.spent)
    }
}

/// Repeats the run for at least a time, after a warm-up of a quarter of that time. The wall time
/// leaves out the pause before each run; the processor time includes that pause.
fn runs<R: Rt>(
    runtime: &R,
    at_least: Duration,
    pause: Duration,
    parties: usize,
    run: impl Fn(&R, Done),
) -> Runs {
    let done = Done::new();
    let run_for = |limit: Duration| {
        let (begun, mut count, mut wall) = (Instant::now(), 0, Duration::ZERO);
        loop {
            if !pause.is_zero() {
                thread::sleep(pause);
            }
            let run_begun = Instant::now();
            done.expect(parties);
            run(runtime, done);
            runtime.drive();
            done.wait();
            wall += run_begun.elapsed();
            count += 1;
            if begun.elapsed() >= limit {
                return (count, wall);
            }
        }
    };
    run_for(at_least / 4);
    let window = Window::open();
    let (count, wall) = run_for(at_least);
    Runs {
        count,
        wall,
        spent: window.close(),
    }
}
