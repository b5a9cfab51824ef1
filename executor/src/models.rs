//! Models of whole runtimes of one and two workers. They are large, so each has a bound on
//! preemptions, which the report prints.
use crate::{Builder, Runtime, Tick, worker::park::ThreadPark};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    sync::{Arc, Condvar, Mutex},
    thread,
};
use task_header::JoinHandle;

fn pool(workers: usize) -> Runtime {
    Builder::new()
        .workers(workers)
        .ring_capacity(2)
        .build()
        .unwrap()
}

fn bounded(preemptions: usize) -> Model {
    Model::new().bound(preemptions).branches(20_000)
}

/// Waits for a task on a thread of the model.
fn wait<T>(mut task: JoinHandle<T>) -> Result<T, crate::JoinError> {
    crate::worker::park::block_on(
        &mut crate::worker::park::ThreadPark::new(),
        poll_fn(move |cx: &mut Context<'_>| Pin::new(&mut task).poll(cx)),
    )
}

/// A spawn from outside races a worker that goes to sleep: the spawned task runs.
///
/// Fails if a worker skips the last look before it sleeps.
#[test]
fn spawn_racing_a_sleep_runs() {
    bounded(2).check(|| {
        let runtime = pool(1);
        let task = runtime.spawn(async { 7 });
        assert_eq!(wait(task).unwrap(), 7);
        drop(runtime);
    });
}

/// A spawn from outside races a worker that waits a moment as a searcher and then goes to sleep.
/// The task runs, even if the spawn woke no worker.
///
/// Fails if a worker skips the last look before it sleeps.
#[test]
fn spawn_racing_a_wait_before_a_sleep_runs() {
    bounded(2).check(|| {
        let runtime = Builder::new()
            .workers(1)
            .ring_capacity(2)
            .eager()
            .build()
            .unwrap();
        let task = runtime.spawn(async { 7 });
        assert_eq!(wait(task).unwrap(), 7);
        drop(runtime);
    });
}

/// A spawn from outside races the runtime's end: the task runs or is cancelled, and the drop
/// returns.
///
/// Fails if the task of a refused spawn is forgotten, not dropped.
#[test]
fn spawn_racing_the_end_runs_or_is_cancelled() {
    bounded(2).check(|| {
        let runtime = pool(1);
        let handle = runtime.handle().clone();
        let other = thread::spawn(move || handle.spawn(async { 7 }));
        drop(runtime);
        let task = other.join().unwrap();
        match wait(task) {
            Ok(output) => assert_eq!(output, 7),
            Err(error) => assert!(error.is_cancelled()),
        }
    });
}

/// A wake from a thread that is not a worker races the runtime's end: the runtime is not freed
/// before the wake has notified it.
///
/// Fails if `Registry::wait` is skipped (a use after free of the runtime).
#[test]
fn last_wake_racing_the_end_is_no_use_after_free() {
    bounded(2).check(|| the_last_wake_against_the_end(pool(1)));
}

/// As above, with a second worker whose thread is unstarted or about to start. The worker that the
/// wake relies on looks for the task, and both workers end.
///
/// Fails if the runtime closes without unparking its workers.
#[test]
fn last_wake_racing_the_end_finds_one_of_two_workers() {
    bounded(1).check(|| the_last_wake_against_the_end(pool(2)));
}

fn the_last_wake_against_the_end(runtime: Runtime) {
    let slot = Arc::new(Mutex::new(None));
    let polls = Arc::new(AtomicUsize::new(0));
    let (waker, count) = (slot.clone(), polls.clone());
    let task = runtime.spawn(poll_fn(move |cx| {
        if count.fetch_add(1, Relaxed) == 1 {
            return Poll::Ready(());
        }
        *waker.lock() = Some(cx.waker().clone());
        Poll::Pending
    }));
    let other = thread::spawn(move || {
        let waker = slot.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        slot
    });
    drop(runtime);
    let slot = other.join().unwrap();
    drop(slot.lock().take());
    let ended = wait(task);
    assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
}

/// A spawn from outside races the end of two workers that `build` has started: one of them runs or
/// drops the task, and both end.
///
/// With two preemptions the model takes more than a minute.
/// [`many_threads`](crate::many_threads) runs more threads, in random orders.
///
/// Fails if the runtime closes without unparking its workers.
#[test]
fn spawn_racing_the_end_of_two_workers_ends() {
    bounded(1).check(|| {
        let two = Builder::new().workers(2).ring_capacity(2);
        let runtime = two.prestart().build().unwrap();
        let task = runtime.spawn(async { 7 });
        drop(runtime);
        match wait(task) {
            Ok(output) => assert_eq!(output, 7),
            Err(error) => assert!(error.is_cancelled()),
        }
    });
}

/// A task keeps its worker busy until a second task from outside has run. So one of two events must
/// start the second worker's thread: the push of that task, if it finds the first worker busy, or
/// the end of the first worker's search.
///
/// Fails if a push from outside, or the end of a search, notifies no worker.
#[test]
fn spawn_beside_a_busy_worker_starts_the_second() {
    bounded(0).check(|| {
        let runtime = pool(2);
        let ran = Arc::new((Mutex::new(false), Condvar::new()));
        let waits = ran.clone();
        let first = runtime.spawn(async move {
            let mut ran = waits.0.lock();
            while !*ran {
                ran = waits.1.wait(ran);
            }
        });
        let second = runtime.spawn(async move {
            *ran.0.lock() = true;
            ran.1.notify_one();
        });
        wait(first).unwrap();
        wait(second).unwrap();
        drop(runtime);
    });
}

/// Two workers, each in a thread of its own, are ticked a few times. A task on one of them spawns
/// tasks. Each of these runs once, on either worker.
///
/// Fails if the task that is displaced from the slot is dropped.
#[test]
fn tasks_spawned_by_one_of_two_workers_run_once() {
    bounded(2).check(|| {
        let parks = [ThreadPark::new(), ThreadPark::new()];
        let (runtime, workers) = Builder::new().ring_capacity(2).build_driven(parks);
        let [mut one, mut two] = <[_; 2]>::try_from(workers).unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let count = ran.clone();
        runtime.spawn_detached(async move {
            for _ in 0..2 {
                let count = count.clone();
                crate::spawn_detached(async move {
                    count.fetch_add(1, Relaxed);
                });
            }
        });
        let other = thread::spawn(move || {
            for _ in 0..2 {
                let _ = two.tick();
            }
            two
        });
        for _ in 0..2 {
            let _ = one.tick();
        }
        let mut two = other.join().unwrap();
        while two.tick() == Tick::Ran || one.tick() == Tick::Ran {}
        assert_eq!(ran.load(Relaxed), 2);
        drop(runtime);
        while two.tick() != Tick::Ended || one.tick() != Tick::Ended {}
    });
}

/// A task offers its worker's core, for a closure that returns at once. The task that it has
/// spawned runs, on either thread. The first task goes on, with or without its core. The runtime
/// ends.
#[test]
fn core_on_offer_racing_its_return_loses_no_task() {
    offer_a_core(1);
}

/// As above with one more preemption, which takes some minutes.
///
/// Fails if a task that is left without a core is dropped. One preemption does not show this.
#[test]
fn full_core_on_offer_racing_its_return_loses_no_task() {
    offer_a_core(2);
}

fn offer_a_core(preemptions: usize) {
    bounded(preemptions).check(|| {
        let runtime = pool(1);
        let task = runtime.spawn(async {
            let other = crate::spawn(async { 6 });
            let one = crate::block_in_place(|| 1);
            other.await.unwrap() + one
        });
        assert_eq!(wait(task).unwrap(), 7);
        drop(runtime);
    });
}

/// A task whose thread may have lost the core waits for the first time, and races the runtime's
/// end: the task is cancelled.
///
/// Fails if `Shared::take_in` notifies no worker. The model `requeue_racing_the_end_drops_the_task`
/// covers the check of the close in `take_in`.
#[test]
fn task_without_a_core_racing_the_end_is_cancelled() {
    bounded(2).check(|| {
        let runtime = pool(1);
        let task = runtime.spawn(async {
            crate::block_in_place(|| ());
            std::future::pending::<()>().await;
        });
        drop(runtime);
        assert!(wait(task).unwrap_err().is_cancelled());
    });
}
