//! Whole runtimes of one and two workers under the model checker. They are large: each states its
//! bound, which the report prints.
use crate::{Builder, Runtime, Tick, park::ThreadPark};
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
    crate::park::block_on(
        &mut crate::park::ThreadPark::new(),
        poll_fn(move |cx: &mut Context<'_>| Pin::new(&mut task).poll(cx)),
    )
}

/// A spawn from outside against the worker that falls asleep: it runs.
///
/// Bites: skip the last look before sleep.
#[test]
fn a_spawn_from_outside_is_run() {
    bounded(2).check(|| {
        let runtime = pool(1);
        let task = runtime.spawn(async { 7 });
        assert_eq!(wait(task).unwrap(), 7);
        drop(runtime);
    });
}

/// A spawn from outside against the worker that waits a moment as a searcher, and then falls asleep: it runs, though nobody may have been woken for it.
///
/// Bites: skip the last look before sleep.
#[test]
fn a_spawn_from_outside_against_a_worker_that_lingers_is_run() {
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

/// A spawn from outside against the runtime's end: run or cancelled, and the drop returns.
///
/// Bites: a refused spawn whose task is forgotten, not dropped.
#[test]
fn a_spawn_against_the_end_is_run_or_cancelled() {
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

/// A wake from a thread that is no worker, against the runtime's end: the waker notifies a
/// runtime that is not freed before it is done.
///
/// Bites: skip `Registry::wait` (a use after free of the runtime).
#[test]
fn the_last_wake_from_outside_against_the_end_is_no_use_after_free() {
    bounded(2).check(|| the_last_wake_against_the_end(pool(1)));
}

/// As above, with a second worker whose thread is not started, or about to be: whom the wake relies on looks, and both workers leave.
///
/// Bites: close the runtime without unparking its workers.
#[test]
fn the_last_wake_from_outside_against_the_end_finds_one_of_two_workers() {
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

/// Two workers, started with the runtime, and a task from outside against the end: one of them runs it or drops it,
/// and both leave. With two preemptions it was not through after a minute. More threads, and more changes, take turns at random in [`crowd`](crate::crowd).
///
/// Bites: close the runtime without unparking its workers.
#[test]
fn two_workers_end_with_a_task_between_them() {
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

/// A task holds its worker until another has run, which comes from outside: the second worker's thread is started for one of them, by whom it finds busy or by the first, as it
/// leaves its search.
///
/// Bites: no notification after a push from outside, or as a search is left.
#[test]
fn a_task_that_the_first_worker_has_no_time_for_starts_the_second() {
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

/// Two workers, each in a thread of its own and ticked a few times: what a task of one spawns runs once, wherever.
///
/// Bites: displace from the slot and drop what was there.
#[test]
fn two_workers_share_what_one_spawns() {
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

/// One worker's task gives the core away, for a closure that is done at once: the other task runs, by whichever thread, the task
/// itself goes on with or without its core, and the runtime ends.
#[test]
fn a_core_is_given_away_against_its_return() {
    a_core_is_given_away(1);
}

/// As above, with a preemption more: some minutes.
///
/// Bites: drop a task that is left without a core. Within one preemption that isn't seen.
#[test]
fn full_a_core_is_given_away_against_its_return() {
    a_core_is_given_away(2);
}

fn a_core_is_given_away(preemptions: usize) {
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

/// A task without its core, which waits for the first time, against the end: it is cancelled, by whoever finds it.
///
/// Bites: `Shared::take_in` without its notification. Without its look at the close: see `a_task_that_is_taken_in_against_the_end_is_dropped`.
#[test]
fn a_task_without_its_core_against_the_end_is_cancelled() {
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
