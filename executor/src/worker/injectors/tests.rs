//! Tests of an injector of several shards. The threads that push are new ones, so their numbers
//! differ.
use super::{LOOKS, shards_of};
use crate::{
    Builder, JoinHandle, Runtime, Tick, Worker,
    worker::{park::ThreadPark, scheduler::Scheduler},
    yield_now,
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
};

const SHARDS: usize = 3;

fn driven() -> (Runtime, Worker<ThreadPark>) {
    let (runtime, mut workers) = Builder::new()
        .injector_shards(SHARDS)
        .build_driven([ThreadPark::new()]);
    (runtime, workers.remove(0))
}

/// Runs `f` on `SHARDS` new threads, one after the other.
fn on_each_thread(f: impl Fn(usize) + Sync) {
    for n in 0..SHARDS {
        thread::scope(|scope| _ = scope.spawn(|| f(n)));
    }
}

#[test]
fn shards_follow_from_the_number_of_workers() {
    let shards = [1, 2, 16, 17, 64, 256].map(shards_of);
    assert_eq!(shards, [1, 1, 1, 2, 4, 16]);
}

#[test]
fn threads_push_into_different_shards() {
    let (runtime, mut worker) = driven();
    on_each_thread(|_| {
        for _ in 0..10 {
            runtime.spawn_detached(async {});
        }
    });
    let shards = &runtime.handle().shared().injector;
    assert!(shards.shards().all(|shard| shard.queue.count() == 10));
    assert_eq!((shards.count(), shards.spawned()), (30, 30));
    assert!(!shards.is_empty() && shards.len() >= SHARDS);
    while worker.tick() == Tick::Ran {}
    assert!(shards.is_empty());
    assert_eq!((shards.count(), shards.len()), (0, 0));
    drop(runtime);
    worker.run();
}

/// The worker's own shard always has tasks, and so has its ring.
#[test]
fn task_in_another_shard_waits_for_some_looks() {
    let (runtime, mut worker) = driven();
    for _ in 0..3 {
        runtime.spawn_detached(async {
            loop {
                yield_now().await;
            }
        });
    }
    while runtime.handle().shared().has_injected() {
        assert_eq!(worker.tick(), Tick::Ran);
    }
    let shared = runtime.handle().shared().clone();
    let tasks: Mutex<Vec<_>> = Mutex::default();
    on_each_thread(|_| tasks.lock().unwrap().push(runtime.spawn(async {})));
    let own = &shared.injector.first.queue;
    let bound = 61 * LOOKS * (SHARDS + 1);
    for ticks in 0.. {
        assert!(ticks < bound, "a task waits for {ticks} ticks");
        if own.is_empty() {
            let to = Scheduler::of(&shared);
            own.requeue(task_header::new_detached(async {}, to));
        }
        assert_eq!(worker.tick(), Tick::Ran);
        if tasks.lock().unwrap().iter().all(JoinHandle::is_finished) {
            break;
        }
    }
    drop(runtime);
    worker.run();
}

#[test]
fn shards_refuse_tasks_after_the_close() {
    let (runtime, mut worker) = driven();
    let handle = runtime.handle().clone();
    drop(runtime);
    on_each_thread(|_| {
        let ran = Arc::new(AtomicBool::new(false));
        let runs = ran.clone();
        let task = handle.spawn(async move { runs.store(true, SeqCst) });
        assert!(task.is_finished() && !ran.load(SeqCst));
        assert_eq!(Arc::strong_count(&ran), 1);
    });
    assert_eq!(worker.tick(), Tick::Ended);
}

#[test]
fn forty_workers_run_the_tasks_of_all_threads() {
    let runtime = Builder::new().workers(40).build().unwrap();
    assert_eq!(runtime.handle().shared().injector.shards().count(), 3);
    let sum = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let tasks: Vec<_> = (0..1_000)
                    .map(|n| {
                        let sum = sum.clone();
                        runtime.spawn(async move {
                            yield_now().await;
                            sum.fetch_add(n, SeqCst);
                        })
                    })
                    .collect();
                runtime.block_on(async {
                    for task in tasks {
                        task.await.unwrap();
                    }
                });
            });
        }
    });
    assert_eq!(sum.load(SeqCst), 8 * (0..1_000).sum::<usize>());
}
