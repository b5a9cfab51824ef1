//! Workloads whose tasks have something to do, so that a second processor helps, and what it could help at most.
use super::{Done, Measured, runs};
use crate::{
    noise::{pin, processors},
    rt::Rt,
};
use std::{
    hint::black_box,
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// Steps in a unit of work, some 40 ns.
const STEPS: u32 = 24;

/// Works off so many units: a chain of shifts that no compiler shortens, and that touches no memory.
#[inline(never)]
pub(super) fn work(units: u64) {
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..units {
        for _ in 0..STEPS {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        x = black_box(x);
    }
}

/// Units by which the pace is taken, some 4 ms.
const PACE: u64 = super::size(100_000) as u64;

/// Nanoseconds that a unit takes when so many threads work at once, each on its processor, and nothing else does: processors that share a core are slower together.
/// The least of several, as two threads that have just begun may share a processor where they can't be pinned.
fn pace(threads: usize) -> f64 {
    (0..5).map(|_| pace_once(threads)).fold(f64::MAX, f64::min)
}

fn pace_once(threads: usize) -> f64 {
    let start = Barrier::new(threads);
    let processors = processors().filter(|processors| processors.len() == threads);
    let times: Vec<(Instant, Instant)> = thread::scope(|scope| {
        let working = |index: usize| {
            let (start, processors) = (&start, processors);
            scope.spawn(move || {
                processors.map(|processors| pin(processors[index]));
                start.wait();
                let begun = Instant::now();
                work(PACE);
                (begun, Instant::now())
            })
        };
        let threads: Vec<_> = (0..threads).map(working).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("it doesn't panic"))
            .collect()
    });
    let took: Duration = times.iter().map(|(begun, ended)| *ended - *begun).sum();
    took.as_nanos() as f64 / (threads as u64 * PACE) as f64
}

/// What rows with work measure: `operations` in a run, with so many units of work in all.
fn efficiency<R: Rt>(
    operations: usize,
    units: u64,
    pause: Duration,
    run: fn(&R, Done),
) -> impl Fn(&R, usize, Duration) -> Option<Measured> {
    move |runtime, workers, at_least| {
        let before = pace(workers);
        let measured = runs(runtime, at_least, pause, operations, run).each(operations);
        let pace = f64::midpoint(before, pace(workers));
        let ideal = pace * units as f64 / (workers * operations) as f64;
        Some(Measured {
            efficiency: Some(ideal / measured.value),
            ..measured
        })
    }
}

const SKEWED: usize = super::size(512);

/// Units of a task: 1, 2, 4 to 64 microseconds, in turn.
fn share(task: usize) -> u64 {
    25 << (task % 7)
}

/// A task that spawns others of very different lengths, all on its own worker to begin with.
pub(super) fn skew<R: Rt>() -> impl Fn(&R, usize, Duration) -> Option<Measured> {
    let units = (0..SKEWED).map(share).sum();
    efficiency(SKEWED, units, Duration::ZERO, |runtime: &R, done| {
        runtime.spawn_outside(async move {
            for task in 0..SKEWED {
                R::spawn(async move {
                    work(share(task));
                    done.one();
                });
            }
        });
    })
}

const BURST: usize = 64;

/// Units of each of a burst's tasks, 2 microseconds.
const SPARK: u64 = 50;

/// Long enough for every worker to be asleep.
const PAUSE: Duration = Duration::from_micros(300);

/// Short tasks from outside, all at once, after some time without any.
pub(super) fn bursty<R: Rt>() -> impl Fn(&R, usize, Duration) -> Option<Measured> {
    let units = BURST as u64 * SPARK;
    efficiency(BURST, units, PAUSE, |runtime: &R, done| {
        for _ in 0..BURST {
            runtime.spawn_outside(async move {
                work(SPARK);
                done.one();
            });
        }
    })
}
