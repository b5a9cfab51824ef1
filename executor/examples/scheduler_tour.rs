//! Shows the scheduler from outside: the order of five spawns, fairness at 61 ticks, overflow, and
//! stealing.
mod cli;

use selvedge::{Builder, Tick, park::ThreadPark, spawn, spawn_detached, yield_now};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering::SeqCst},
};

fn main() -> std::process::ExitCode {
    cli::demo(
        "Shows the order of spawns, fairness, overflow and stealing.\n\nUsage: scheduler_tour",
        demo,
    )
}

fn demo() {
    last_first_then_in_order();
    fair_at_61();
    overflow();
    stealing();
}

/// The task that is spawned last stays in the LIFO slot. Each earlier task was displaced from the
/// slot to the ring by the next spawn.
fn last_first_then_in_order() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let parent = runtime.spawn(async move {
        let children: Vec<_> = (1..=5)
            .map(|i| {
                let order = order.clone();
                spawn(async move { order.lock().unwrap().push(i) })
            })
            .collect();
        for child in children {
            child.await.unwrap();
        }
    });
    runtime.block_on(parent).unwrap();
    let order = seen.lock().unwrap();
    println!("five spawns of one task run as {order:?}");
    assert_eq!(*order, [5, 1, 2, 3, 4]);
}

/// A worker with work of its own looks at the injector at every 61st tick.
fn fair_at_61() {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    runtime.spawn_detached(async {
        loop {
            yield_now().await;
        }
    });
    assert_eq!(worker.tick(), Tick::Ran);
    let task = runtime.spawn(async {});
    let ticks = (1..).find(|_| worker.tick() == Tick::Ran && task.is_finished());
    let ticks = ticks.expect("it runs");
    println!("a task from outside ran after {ticks} ticks of a worker that always has work");
    assert!(ticks <= 61);
}

/// A full ring moves half of its tasks to the injector.
fn overflow() {
    let (runtime, mut workers) = Builder::new()
        .ring_capacity(16)
        .build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    runtime.spawn_detached(async {
        for _ in 0..100 {
            spawn_detached(async {});
        }
    });
    assert_eq!(worker.tick(), Tick::Ran);
    let ring = runtime.metrics().per_worker[0].ring_depth;
    while worker.tick() == Tick::Ran {}
    let metrics = runtime.metrics();
    println!(
        "a ring of 16 under 100 spawns: {} overflows, {ring} stayed in the ring, {} came back from the injector",
        metrics.overflows, metrics.injected
    );
    assert!(ring <= 16 && metrics.overflows > 0 && metrics.injected > 84);
    drop(runtime);
    worker.run();
}

/// One worker has all tasks. The other workers search one after the other. Each steals half of the
/// first ring in which it finds tasks, and that may be the ring of an earlier thief.
fn stealing() {
    let (runtime, mut workers) = Builder::new().build_driven([(); 4].map(|()| ThreadPark::new()));
    let go = Arc::new(AtomicBool::new(false));
    let set = go.clone();
    runtime.spawn_detached(async move {
        for _ in 0..64 {
            spawn_detached(async {});
        }
        set.store(true, SeqCst);
    });
    while !go.load(SeqCst) {
        let _ = workers[0].tick();
    }
    print!("of 64 tasks of one worker, the others took:");
    for worker in &mut workers[1..] {
        let before = runtime.metrics().stolen;
        let _ = worker.tick();
        print!(" {}", runtime.metrics().stolen - before);
    }
    let metrics = runtime.metrics();
    println!(", in {} steals", metrics.steals);
    assert!(metrics.steals >= 2 && metrics.stolen >= 32, "{metrics}");
    drop(runtime);
    while workers
        .iter_mut()
        .map(|worker| worker.tick())
        .filter(|tick| *tick != Tick::Ended)
        .count()
        > 0
    {}
}
