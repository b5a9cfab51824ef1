//! Workloads about latency: of a wake, a spawn, a blocking closure, and a runtime's start and drop.
use super::{Done, Measured, spawn};
use crate::{noise::Window, percentiles::percentiles, rt::Rt, work::work};
use futures::task::AtomicWaker;
use std::{
    future::poll_fn,
    hint::black_box,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc,
    },
    task::Poll,
    thread,
    time::{Duration, Instant},
};

/// A bell: an outside thread rings it, and a task answers.
pub(super) struct Bell {
    made: Instant,
    /// The time of the last ring, in nanoseconds since `made`. 0 means that nothing rang yet, and
    /// `END` ends the task.
    rung: AtomicU64,
    /// The nanoseconds from the last ring to the task's poll. 0 means that there is no new answer.
    took: AtomicU64,
    waker: AtomicWaker,
}

const END: u64 = u64::MAX;

impl Bell {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            made: Instant::now(),
            rung: AtomicU64::new(0),
            took: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        })
    }

    fn now(&self) -> u64 {
        self.made.elapsed().as_nanos() as u64
    }

    /// Answers each ring, until [`end`](Self::end). The task runs this.
    pub(super) async fn answer(&self) {
        let mut last = 0;
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            // Ordering: Acquire pairs with the store in `ring`.
            match self.rung.load(Acquire) {
                END => return Poll::Ready(()),
                rung if rung != last => {
                    last = rung;
                    // Ordering: Release pairs with the swap in `ring`.
                    self.took.store((self.now() - rung).max(1), Release);
                }
                _ => {}
            }
            Poll::Pending
        })
        .await;
    }

    /// Rings again and again for at least a time, each time after a pause. After each ring it
    /// pauses until the answer is there. Returns how long each answer took.
    pub(super) fn ring(&self, at_least: Duration, pause: Duration) -> Vec<u64> {
        let (begun, mut answers) = (Instant::now(), Vec::new());
        loop {
            thread::sleep(pause);
            // Ordering: Release pairs with the load in `answer`.
            self.rung.store(self.now(), Release);
            self.waker.wake();
            loop {
                thread::sleep(pause);
                // Ordering: Acquire pairs with the store in `answer`.
                match self.took.swap(0, Acquire) {
                    0 => {}
                    took => break answers.push(took),
                }
            }
            if begun.elapsed() >= at_least {
                return answers;
            }
        }
    }

    pub(super) fn end(&self) {
        // Ordering: Relaxed. No data is handed over, and the wake that follows publishes `END`.
        self.rung.store(END, Relaxed);
        self.waker.wake();
    }
}

/// The pause before each wake in `idle_wake`, for which the runtime is idle. In `busy_spawn`, the
/// pause between two spawns.
const PAUSE: Duration = Duration::from_micros(100);

/// Wakes the one task of an idle runtime from an outside thread.
pub(super) fn idle_wake<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let bell = Bell::new();
    let done = Done::new();
    done.expect(1);
    let task = bell.clone();
    runtime.spawn_outside(async move {
        task.answer().await;
        done.one();
    });
    bell.ring(at_least / 4, PAUSE);
    let window = Window::open();
    let answers = bell.ring(at_least, PAUSE);
    let spent = window.close();
    bell.end();
    done.wait();
    let operations = answers.len() as u64;
    let (median, p99) = percentiles(answers)?;
    Some(Measured {
        p99: Some(p99),
        ..Measured::of(operations, median, spent)
    })
}

/// Spawns one task after another from an outside thread, while tasks whose polls take about 100
/// microseconds keep all workers busy.
pub(super) fn busy_spawn<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let (done, ends) = (Done::new(), Arc::new(AtomicBool::new(false)));
    done.expect(spawn::BUSY);
    for _ in 0..spawn::BUSY {
        let (done, ends) = (done, ends.clone());
        runtime.spawn_outside(async move {
            // Ordering: Relaxed. No data is handed over.
            while !ends.load(Relaxed) {
                work(100 * spawn::MICRO);
                R::yield_now().await;
            }
            done.one();
        });
    }
    let spawns = |at_least: Duration| {
        let (begun, mut answers) = (Instant::now(), Vec::new());
        loop {
            let (answer, answered) = mpsc::channel();
            let spawned = Instant::now();
            runtime.spawn_outside(async move {
                let _ = answer.send(spawned.elapsed());
            });
            answers.extend(answered.recv().map(|took| took.as_nanos() as u64));
            if begun.elapsed() >= at_least {
                break answers;
            }
            thread::sleep(PAUSE);
        }
    };
    spawns(at_least / 4);
    let window = Window::open();
    let answers = spawns(at_least);
    let spent = window.close();
    // Ordering: Relaxed, as in the tasks.
    ends.store(true, Relaxed);
    done.wait();
    let operations = answers.len() as u64;
    let (median, p99) = percentiles(answers)?;
    Some(Measured {
        p99: Some(p99),
        ..Measured::of(operations, median, spent)
    })
}

/// Number of closures that the task of `spawn_blocking` hands over.
pub(super) const ROUND_TRIPS: usize = super::size(100);

/// Runs a task that hands closures to blocking threads, one after the other, and awaits each.
pub(super) fn blocking<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for i in 0..ROUND_TRIPS {
            assert_eq!(R::blocking(move || black_box(i)).await, i);
        }
        done.one();
    });
}

/// Starts a runtime of two workers, runs one task on it, and drops it.
pub(super) fn new_drop<R: Rt>(_: &R, done: Done) {
    let runtime = R::start(2).expect("it starts");
    runtime.spawn_outside(async move { done.one() });
    runtime.drive();
    done.wait();
}
