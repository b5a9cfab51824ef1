//! A task that is always ready, and one beside it that wants its turn.
use super::{Done, Measured, latency::Bell, load::work, percentiles};
use crate::{noise::Window, rt::Rt};
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

/// Work of an operation, in units of some 40 ns.
const UNITS: u64 = 1;

/// Operations between two looks at whether to stop.
const STRETCH: u64 = 1_024;

/// Between two ticks.
const PAUSE: Duration = Duration::from_micros(100);

/// Counts what the always-ready task gets done.
#[derive(Default)]
struct Hog {
    operations: AtomicU64,
    stop: AtomicU64,
}

impl Hog {
    /// Works until it is told to stop, with the runtime's budget or without; gives operations a second.
    async fn run<R: Rt, const BUDGET: bool>(self: Arc<Self>) {
        // Ordering: the counter is read after the end, which `done` publishes to the measuring thread; `stop` hands nothing over.
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
            // Ordering: Release, the load in `pace`.
            self.operations.fetch_add(STRETCH, Release);
        }
    }

    /// Operations a second, while `meanwhile` runs.
    fn pace(&self, meanwhile: impl FnOnce()) -> f64 {
        // Ordering: Acquire, the addition in `run`.
        let count = || self.operations.load(Acquire);
        let (before, begun) = (count(), Instant::now());
        meanwhile();
        (count() - before) as f64 / begun.elapsed().as_secs_f64()
    }
}

/// Runs a hog on `runtime` as long as `meanwhile`, and gives its pace.
fn hog<R: Rt, const BUDGET: bool>(runtime: &R, meanwhile: impl FnOnce()) -> f64 {
    let (hog, done) = (Arc::new(Hog::default()), Done::new());
    done.expect(1);
    let task = hog.clone();
    runtime.spawn_outside(async move {
        task.run::<R, BUDGET>().await;
        done.one();
    });
    let pace = hog.pace(meanwhile);
    // Ordering: Relaxed, nothing is handed over.
    hog.stop.store(1, Relaxed);
    done.wait();
    pace
}

/// How late a task is polled that is woken beside a hog, and what the hog gives up for it.
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
        operations,
        value: median,
        p99: Some(p99),
        efficiency: (alone > 0.0).then(|| shared / alone),
        spent: spent?,
    })
}
