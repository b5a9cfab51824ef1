//! Workloads whose tasks compute, so that a second processor helps; and a measurement of how much
//! that processor can help at most.
use super::{Done, Measured, runs};
use crate::{
    noise::{pin, processors},
    rt::Rt,
    work::work,
};
use std::{
    sync::Barrier,
    thread,
    time::{Duration, Instant},
};

/// Number of units by which the pace is measured: about 4 ms.
const PACE: u64 = super::size(100_000) as u64;

/// Measures how many nanoseconds a unit takes while this number of threads work at once, each on
/// its own processor, and nothing else runs. Processors that share a core are slower together.
///
/// Returns the least of five measurements, because two threads that have just begun may share a
/// processor where they cannot be pinned.
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

/// Measures a row whose tasks compute. A run has `operations` operations, with `units` units of
/// work in all.
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

/// Units of work of a task: 1, 2, 4 to 64 microseconds, in turn.
fn share(task: usize) -> u64 {
    25 << (task % 7)
}

/// Runs a task that spawns tasks of 1 to 64 microseconds. The spawned tasks are pushed to the queue
/// of the spawning task's worker.
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

/// Units of work of each task of a burst: 2 microseconds.
const SPARK: u64 = 50;

/// The pause before a burst: long enough for every worker to sleep.
const PAUSE: Duration = Duration::from_micros(300);

/// Spawns short tasks from an outside thread, all at once, after a pause.
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
