//! Workloads of many timers: intervals side by side, and a storm of sleeps.
use super::{Done, Measured, tail};
use crate::{noise::Window, random::Random, rt::Rt};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicU8,
            Ordering::{Acquire, Release},
        },
    },
    thread,
    time::{Duration, Instant},
};

/// The period of the intervals.
const PERIOD: Duration = Duration::from_millis(10);

/// The phases of a run. Only the ticks of the second one count.
const WARM_UP: u8 = 0;
const MEASURED: u8 = 1;
const ENDED: u8 = 2;

/// Runs a number of intervals at once, each in a task, and measures how late each tick is. The
/// value is the p99.
pub(super) fn intervals<R: Rt, const INTERVALS: usize>(
    runtime: &R,
    _: usize,
    at_least: Duration,
) -> Option<Measured> {
    let (phase, late) = (Arc::new(AtomicU8::new(WARM_UP)), Arc::default());
    let done = Done::new();
    done.expect(INTERVALS);
    // All tasks fill their lists at the same pace: if these grew, all would grow in the same
    // period, which would take longer than the period. So the lists have their size, and their
    // memory, before the first tick.
    let window = at_least.max(2 * PERIOD);
    let size = 2 * window.div_duration_f64(PERIOD) as usize;
    for _ in 0..INTERVALS {
        let (phase, all): (_, Arc<Mutex<Vec<u64>>>) = (phase.clone(), Arc::clone(&late));
        runtime.spawn_outside(async move {
            let mut own = vec![1; size];
            own.clear();
            std::hint::black_box(&own);
            let (start, mut due) = (Instant::now(), Duration::ZERO);
            R::interval(start, PERIOD, || {
                due += PERIOD;
                // Ordering: Acquire pairs with the stores below: a tick counts only in the window.
                match phase.load(Acquire) {
                    WARM_UP => true,
                    MEASURED => {
                        own.push(start.elapsed().saturating_sub(due).as_nanos() as u64);
                        true
                    }
                    _ => false,
                }
            })
            .await;
            all.lock().expect("no holder panics").append(&mut own);
            done.one();
        });
    }
    thread::sleep((at_least / 4).max(2 * PERIOD));
    let open = Window::open();
    // Ordering: Release, as above.
    phase.store(MEASURED, Release);
    thread::sleep(window);
    // Ordering: Release, as above.
    phase.store(ENDED, Release);
    let spent = open.close();
    done.wait();
    let late = std::mem::take(&mut *late.lock().expect("no holder panics"));
    tail(late, spent)
}

/// Number of sleeps in the storm.
const SLEEPS: usize = super::size(100_000);

/// Sleeps at once, each in a task, for 1 to 100 milliseconds, again and again. The value is the p99
/// of how late a sleep ends; the processor time is also that of the spawns.
pub(super) fn storm<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let (done, mut random) = (Done::new(), Random(1));
    let mut run = || {
        let late = Arc::new(Mutex::new(Vec::with_capacity(SLEEPS)));
        done.expect(SLEEPS);
        for _ in 0..SLEEPS {
            let (late, span) = (late.clone(), 1_000 + random.below(99_000));
            runtime.spawn_outside(async move {
                let (begun, span) = (Instant::now(), Duration::from_micros(span));
                R::sleep(span).await;
                let took = begun.elapsed();
                late.lock()
                    .expect("no holder panics")
                    .push(took.saturating_sub(span).as_nanos() as u64);
                done.one();
            });
        }
        done.wait();
        std::mem::take(&mut *late.lock().expect("no holder panics"))
    };
    run();
    let (window, begun, mut late) = (Window::open(), Instant::now(), Vec::new());
    while late.is_empty() || begun.elapsed() < at_least {
        late.append(&mut run());
    }
    tail(late, window.close())
}
