//! A workload of a task that is always ready, and a task beside it that wants its turn.
use super::{Done, Measured, latency::Bell};
use crate::{noise::Window, percentiles::percentiles, rt::Rt, work::work};
use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
    task::{Poll, ready},
    thread,
    time::{Duration, Instant},
};

/// Work of one operation, in units of about 40 ns.
const UNITS: u64 = 1;

/// Number of operations between two checks of `stop`.
const STRETCH: u64 = 1_024;

/// The pause before each ring of the bell, and before each look for its answer.
const PAUSE: Duration = Duration::from_micros(100);

/// The state of the *hog*, the task that is always ready: its count of operations, and its stop
/// flag.
#[derive(Default)]
struct Hog {
    operations: AtomicU64,
    stop: AtomicU64,
}

impl Hog {
    /// Works until `stop` is set, with the runtime's budget or without.
    async fn run<R: Rt, const BUDGET: bool>(self: Arc<Self>) {
        // Ordering: Relaxed. `stop` hands no data over.
        while self.stop.load(Relaxed) == 0 {
            for _ in 0..STRETCH {
                poll_fn(|cx| {
                    if BUDGET {
                        ready!(R::proceed(cx));
                    }
                    work(UNITS);
                    Poll::Ready(())
                })
                .await;
            }
            // Ordering: Release pairs with the load in `pace`.
            self.operations.fetch_add(STRETCH, Release);
        }
    }

    /// Returns the number of the hog's operations a second while `meanwhile` runs.
    fn pace(&self, meanwhile: impl FnOnce()) -> f64 {
        // Ordering: Acquire pairs with the addition in `run`.
        let count = || self.operations.load(Acquire);
        let (before, begun) = (count(), Instant::now());
        meanwhile();
        (count() - before) as f64 / begun.elapsed().as_secs_f64()
    }
}

/// Runs a hog on `runtime` while `meanwhile` runs, and returns the hog's pace.
fn hog<R: Rt, const BUDGET: bool>(runtime: &R, meanwhile: impl FnOnce()) -> f64 {
    let (hog, done) = (Arc::new(Hog::default()), Done::new());
    done.expect(1);
    let task = hog.clone();
    runtime.spawn_outside(async move {
        task.run::<R, BUDGET>().await;
        done.one();
    });
    let pace = hog.pace(meanwhile);
    // Ordering: Relaxed. `stop` hands no data over.
    hog.stop.store(1, Relaxed);
    done.wait();
    pace
}

/// Measures how late a woken task is polled beside a hog, and which part of its pace alone the hog
/// keeps.
pub(super) fn coop<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let bell = Bell::new();
    let done = Done::new();
    done.expect(1);
    let task = bell.clone();
    runtime.spawn_outside(async move {
        task.answer().await;
        done.one();
    });
    let alone = || hog::<R, false>(runtime, || thread::sleep(at_least / 4));
    let before = alone();
    let (mut answers, mut spent) = (Vec::new(), None);
    let shared = hog::<R, true>(runtime, || {
        let window = Window::open();
        answers = bell.ring(at_least, PAUSE);
        spent = Some(window.close());
    });
    let alone = f64::midpoint(before, alone());
    bell.end();
    done.wait();
    let operations = answers.len() as u64;
    let (median, p99) = percentiles(answers)?;
    Some(Measured {
        p99: Some(p99),
        efficiency: (alone > 0.0).then(|| shared / alone),
        ..Measured::of(operations, median, spent?)
    })
}
