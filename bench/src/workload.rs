//! The workloads, over any runtime. Parameters are those that schedulers are compared by in the field.
use crate::{noise::Noise, rt::Rt};
use futures::channel::oneshot;
use serde::Serialize;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{self, Sender},
    },
    time::{Duration, Instant},
};

/// The rows by name.
pub(crate) const ROWS: &[&str] = &[
    "spawn_many_remote",
    "spawn_many_local",
    "yield_many",
    "ping_pong",
    "chained_spawn",
];

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Sample {
    operations: u64,
    wall_ns: f64,
    cpu_ns: f64,
    #[serde(flatten)]
    noise: Noise,
}

/// Tells the measuring thread when the last of `left` is done.
#[derive(Clone)]
struct Done {
    left: Arc<AtomicUsize>,
    sender: Sender<()>,
}

impl Done {
    fn one(self) {
        // The counter is Relaxed, as in the benchmark that schedulers share; the channel orders.
        if self.left.fetch_sub(1, Relaxed) == 1 {
            let _ = self.sender.send(());
        }
    }
}

/// Runs `row` until `millis` have passed, after a warm-up; `None` if there is no such row.
pub(crate) fn sample<R: Rt>(row: &str, workers: usize, millis: u64) -> Option<Sample> {
    let (operations, run): (u64, fn(&R, Done)) = match row {
        "spawn_many_remote" => (SPAWNS as u64, spawn_many_remote),
        "spawn_many_local" => (SPAWNS as u64, spawn_many_local),
        "yield_many" => (YIELDERS as u64 * YIELDS, yield_many),
        "ping_pong" => (PAIRS as u64, ping_pong),
        "chained_spawn" => (DEPTH as u64, chained_spawn),
        _ => return None,
    };
    let parties = match row {
        "spawn_many_remote" | "spawn_many_local" => SPAWNS,
        "yield_many" => YIELDERS,
        "ping_pong" => PAIRS,
        _ => 1,
    };
    let runtime = R::new(workers);
    let (sender, receiver) = mpsc::channel();
    let once = || {
        let done = Done {
            left: Arc::new(AtomicUsize::new(parties)),
            sender: sender.clone(),
        };
        run(&runtime, done);
        receiver.recv().expect("the workload ends");
    };
    (0..3).for_each(|_| once());
    let ((runs, wall, cpu), noise) = Noise::around(|| {
        let (begun, cpu) = (Instant::now(), crate::noise::cpu_time());
        let mut runs = 0;
        while begun.elapsed() < Duration::from_millis(millis) {
            once();
            runs += 1;
        }
        (runs, begun.elapsed(), crate::noise::cpu_time() - cpu)
    });
    let operations = operations * runs;
    Some(Sample {
        operations,
        wall_ns: wall.as_nanos() as f64 / operations as f64,
        cpu_ns: cpu.as_nanos() as f64 / operations as f64,
        noise,
    })
}

const SPAWNS: usize = 10_000;

/// 10,000 tasks spawned from outside.
fn spawn_many_remote<R: Rt>(runtime: &R, done: Done) {
    for _ in 0..SPAWNS {
        let done = done.clone();
        runtime.spawn_outside(async move { done.one() });
    }
}

/// 10,000 tasks spawned from a task.
fn spawn_many_local<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..SPAWNS {
            let done = done.clone();
            R::spawn(async move { done.one() });
        }
    });
}

const YIELDERS: usize = 200;
const YIELDS: u64 = 1_000;

/// 200 tasks that yield 1,000 times each.
fn yield_many<R: Rt>(runtime: &R, done: Done) {
    for _ in 0..YIELDERS {
        let done = done.clone();
        runtime.spawn_outside(async move {
            for _ in 0..YIELDS {
                R::yield_now().await;
            }
            done.one();
        });
    }
}

const PAIRS: usize = 1_000;

/// 1,000 pairs that exchange a message each way.
fn ping_pong<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..PAIRS {
            let done = done.clone();
            R::spawn(async move {
                let (ping, pinged) = oneshot::channel();
                let (pong, ponged) = oneshot::channel();
                R::spawn(async move {
                    let _ = pinged.await;
                    let _ = pong.send(());
                });
                let _ = ping.send(());
                let _ = ponged.await;
                done.one();
            });
        }
    });
}

const DEPTH: usize = 1_000;

/// A task that spawns one that spawns one, 1,000 deep.
fn chained_spawn<R: Rt>(runtime: &R, done: Done) {
    fn link<R: Rt>(left: usize, done: Done) {
        if left == 0 {
            return done.one();
        }
        R::spawn(async move { link::<R>(left - 1, done) });
    }
    runtime.spawn_outside(async move { link::<R>(DEPTH, done) });
}
