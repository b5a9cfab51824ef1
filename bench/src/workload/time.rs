//! Workloads of timeouts and sleeps.
use super::{Done, Measured};
use crate::{
    noise::{Window, resident},
    percentiles::percentiles,
    rt::Rt,
};
use std::{
    future::{Future, poll_fn, ready},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

/// A limit that is never reached.
const LIMIT: Duration = Duration::from_secs(1);

/// Number of timeouts of a task.
pub(super) const TIMEOUTS: usize = super::size(10_000);

/// Runs a task that limits futures which are ready at once.
pub(super) fn timeout_ready<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..TIMEOUTS {
            assert!(R::timeout(LIMIT, ready(())).await);
        }
        done.one();
    });
}

/// Returns a future that wakes its task at the first poll, and is ready at the second one.
fn pending_once() -> impl Future<Output = ()> + Send {
    let mut polled = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Runs tasks that limit futures which are pending once.
pub(super) fn timeout_pending<R: Rt, const TASKS: usize>(runtime: &R, done: Done) {
    for _ in 0..TASKS {
        runtime.spawn_outside(async move {
            for _ in 0..TIMEOUTS {
                assert!(R::timeout(LIMIT, pending_once()).await);
            }
            done.one();
        });
    }
}

/// Runs a task that sleeps again and again, at least 200 times, and measures how late each sleep
/// ends.
pub(super) fn sleep<R: Rt, const MICROS: u64>(
    runtime: &R,
    _: usize,
    at_least: Duration,
) -> Option<Measured> {
    let span = Duration::from_micros(MICROS);
    let late = Arc::new(Mutex::new(Vec::new()));
    let done = Done::new();
    let run = |sleeps: usize, until: Duration| {
        let late = late.clone();
        done.expect(1);
        runtime.spawn_outside(async move {
            let (begun, mut count) = (Instant::now(), 0);
            while count < sleeps || begun.elapsed() < until {
                let begun = Instant::now();
                R::sleep(span).await;
                let took = begun.elapsed();
                assert!(took >= span, "it has slept for {took:?} only");
                late.lock()
                    .expect("no holder of the lock panics")
                    .push((took - span).as_nanos() as u64);
                count += 1;
            }
            done.one();
        });
        runtime.drive();
        done.wait();
    };
    run(20, at_least / 4);
    late.lock().expect("no holder of the lock panics").clear();
    let window = Window::open();
    run(super::size(200), at_least);
    let spent = window.close();
    let late = std::mem::take(&mut *late.lock().expect("no holder of the lock panics"));
    let operations = late.len() as u64;
    let (median, p99) = percentiles(late)?;
    Some(Measured {
        p99: Some(p99),
        ..Measured::of(operations, median, spent)
    })
}

/// Number of tasks that sleep.
const SLEEPERS: usize = super::size(1_000_000);

/// Number of tasks in a batch. A batch is spawned when the batch before it has been polled, so no
/// queue grows.
const BATCH: usize = 1_000;

/// Spawns a million tasks that sleep, or one batch if the time is zero. The million sleeps end one
/// after the other, between 5 and 15 seconds after the first spawn. The value is the memory of a
/// task. The processor time is that of the spawns, the sleeps and the ends.
pub(super) fn sleepers<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let (tasks, first, period) = if at_least.is_zero() {
        (BATCH, Duration::ZERO, Duration::from_millis(20))
    } else {
        // The first sleep ends after 5 seconds, so that all tasks are spawned before.
        (SLEEPERS, Duration::from_secs(5), Duration::from_secs(10))
    };
    let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let spawn = |tasks: usize, span: &dyn Fn(usize) -> Duration| {
        for batch in 0..tasks / BATCH {
            // Ordering: Relaxed. Only the number matters.
            let before = begun.load(Relaxed);
            for n in 0..BATCH {
                let span = span(batch * BATCH + n);
                let (begun, ended) = (begun.clone(), ended.clone());
                runtime.spawn_outside(async move {
                    let sleep = R::sleep(span);
                    // Ordering: Relaxed, as above.
                    begun.fetch_add(1, Relaxed);
                    sleep.await;
                    ended.fetch_add(1, Relaxed);
                });
            }
            // Ordering: Relaxed, as above.
            while begun.load(Relaxed) < before + BATCH {
                thread::yield_now();
            }
        }
    };
    // This first batch lets queues, wheels and the allocator grow to their first size.
    spawn(BATCH, &|_| Duration::from_millis(1));
    let window = Window::open();
    let before = resident()?;
    let start = Instant::now();
    let spread = |n: usize| {
        let end = first + period.mul_f64(n as f64 / tasks as f64);
        end.saturating_sub(start.elapsed())
    };
    spawn(tasks, &spread);
    let after = resident()?;
    // Ordering: Relaxed, as above.
    while ended.load(Relaxed) < BATCH + tasks {
        thread::sleep(Duration::from_millis(20));
    }
    let bytes = after.saturating_sub(before).max(1);
    let value = bytes as f64 / tasks as f64;
    Some(Measured::of(tasks as u64, value, window.close()))
}
