//! Shows how workers choose, move and steal tasks.
//!
//! A *worker* runs tasks. Its *LIFO slot* holds the one task that it runs next. Its *ring* is a
//! bounded queue of further tasks. The *injector* is the queue that all workers share: for tasks
//! that other threads spawn, and for tasks that a full ring has no room for.
//!
//! In a *tick* a worker takes one task and runs it, and then runs up to three more tasks that come
//! through its slot. A *driven* worker has no thread of the runtime: this program calls its `tick`.
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
    order_of_spawns();
    fairness();
    overflow();
    stealing();
}

/// A task spawns five tasks. Each spawn puts the new task into the LIFO slot, and moves the task
/// that was in the slot into the ring. So the last task runs first, and then the others run in the
/// order of their spawns.
fn order_of_spawns() {
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
    println!("five tasks that one task spawned ran in the order {order:?}");
    assert_eq!(*order, [5, 1, 2, 3, 4]);
}

/// A driven worker that always has a task in its ring looks at the injector at every 61st tick. So
/// a task from outside waits for at most 61 ticks.
///
/// Two rules of the scheduler do not matter here. A worker with a thread of its own looks earlier
/// if its polls are long. And a push from outside may *nudge* a busy worker to look at the injector
/// after its poll. But a worker whose last look found a task ignores nudges, because it will look
/// again soon, at the end of its interval. The last look of this worker found the yielding task.
fn fairness() {
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
    let ticks = ticks.expect("the task from outside never ran");
    println!("a task from outside ran after {ticks} ticks of a worker that always has work");
    assert!(ticks <= 61);
}

/// A task spawns 100 tasks, and the ring has room for 16. Each spawn moves the task in the slot
/// into the ring. If the ring is full, the task from the slot goes to the injector, together with
/// the older half of the ring.
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
    let ring = runtime.snapshot().per_worker[0].ring_depth;
    while worker.tick() == Tick::Ran {}
    let metrics = runtime.snapshot();
    // The parent also came from the injector, and is left out. The last child ran from the slot.
    println!(
        "100 spawns and a ring of 16: {} overflows, {ring} tasks stayed in the ring, {} went \
         through the injector",
        metrics.overflows,
        metrics.injected_tasks - 1
    );
    assert!(ring <= 16 && metrics.overflows > 0 && metrics.injected_tasks > 84);
    drop(runtime);
    worker.run(); // Returns when the runtime has ended.
}

/// A task of the first worker spawns 64 tasks. The last of them runs from the slot, and the others
/// wait in the worker's ring. Then the other workers search for tasks, one worker after the other.
/// Each steals half of the first ring in which it finds tasks: the first worker's ring, or the ring
/// of a worker that has stolen before.
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
    print!("of 64 tasks of one worker, the others stole:");
    for worker in &mut workers[1..] {
        let before = runtime.snapshot().stolen_tasks;
        let _ = worker.tick();
        print!(" {}", runtime.snapshot().stolen_tasks - before);
    }
    let metrics = runtime.snapshot();
    println!(", in {} steals", metrics.steals);
    assert!(
        metrics.steals >= 2 && metrics.stolen_tasks >= 32,
        "{metrics}"
    );
    drop(runtime);
    // Ticks all workers until the runtime has ended on each.
    while workers
        .iter_mut()
        .map(|worker| worker.tick())
        .filter(|tick| *tick != Tick::Ended)
        .count()
        > 0
    {}
}
