//! What is checked: `cargo test` runs each scenario a few hundred times, and under `--cfg selvedge_loom` loom goes through its executions.
//!
//! A scenario is small: one or two workers, one or two tasks, what races with them, and nothing else. What takes loom too long has a bound: only
//! executions with so many preemptions at most.
use crate::{Scheduler, assemble, block_on, sleep::Sleep, worker::Worker};
use std::{
    future::poll_fn,
    task::{Poll, Waker},
};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

fn bounded(preemptions: usize) -> Model {
    Model::new().bound(preemptions).branches(10_000)
}

fn one_worker() -> (Scheduler, Worker) {
    let (scheduler, mut workers) = assemble(1, 2);
    (scheduler, workers.remove(0))
}

/// The protocol of `sleep.rs` by itself, around a queue that is a flag. All executions.
///
/// Bites: leave out either fence; announce after the look; open no gate.
#[test]
fn who_sleeps_hears_of_a_push() {
    model(|| a_push_against_a_sleep(true));
}

/// The same without the second look. That it fails shows that the model above would see it.
#[test]
fn who_sleeps_without_a_second_look_misses_a_push() {
    model_must_fail("asleep over a push", || a_push_against_a_sleep(false));
}

/// Says by an assertion what goes wrong: with a worker that really waits, loom would find a deadlock, whose panic drops its `Arc`s and ends the process.
fn a_push_against_a_sleep(looks_again: bool) {
    let (sleep, queue) = (Arc::new(Sleep::new(1)), Arc::new(AtomicUsize::new(0)));
    let pusher = {
        let (sleep, queue) = (sleep.clone(), queue.clone());
        thread::spawn(move || {
            queue.store(1, Relaxed);
            sleep.notify();
        })
    };
    sleep.announce(0);
    let waits = !(looks_again && queue.load(Relaxed) != 0);
    pusher.join().unwrap();
    assert!(!waits || sleep.gate(0).is_open(), "asleep over a push");
}

/// A whole worker in a thread of its own: what is spawned runs, and the worker then leaves.
///
/// Bites: `spawn` without `notify`; `close` without `wake_all`; `has_work` that forgets the injector.
#[test]
fn what_is_spawned_runs() {
    bounded(2).check(|| {
        let (scheduler, worker) = one_worker();
        let thread = thread::spawn(|| worker.run());
        assert_eq!(block_on(scheduler.spawn(async { 7 })).unwrap(), 7);
        scheduler.close();
        thread.join().unwrap();
    });
}

/// A task that waits is woken from outside while its worker falls asleep.
///
/// Bites: `schedule` without `notify`.
#[test]
fn a_wake_from_outside_reaches_its_task() {
    bounded(2).check(|| {
        let (scheduler, worker) = one_worker();
        let thread = thread::spawn(|| worker.run());
        let slot = Arc::new((Mutex::new(None::<Waker>), AtomicUsize::new(0)));
        let task = {
            let slot = slot.clone();
            scheduler.spawn(poll_fn(move |cx| {
                // Under the lock, so that either the waker is there or what it would tell.
                let mut waker = slot.0.lock();
                if slot.1.load(Relaxed) != 0 {
                    return Poll::Ready(());
                }
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }))
        };
        let waker = {
            let mut waker = slot.0.lock();
            slot.1.store(1, Relaxed);
            waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        block_on(task).unwrap();
        scheduler.close();
        thread.join().unwrap();
    });
}

/// Two workers and four tasks, three of them in one ring: each runs once, by whichever worker.
///
/// Bites: a thief that drops what it moved besides the first.
#[test]
fn stolen_or_not_a_task_runs_once() {
    bounded(2).check(|| {
        let (scheduler, mut workers) = assemble(2, 4);
        let (mut one, mut two) = (workers.remove(0), workers.remove(0));
        let ran = Arc::new(AtomicUsize::new(0));
        for _ in 0..4 {
            let ran = ran.clone();
            drop(scheduler.spawn(async move {
                ran.fetch_add(1, Relaxed);
            }));
        }
        let first = one.find().unwrap();
        let thief = thread::spawn(move || {
            if let Some(task) = two.find() {
                two.poll(task);
            }
            two
        });
        one.poll(first);
        while let Some(task) = one.find() {
            one.poll(task);
        }
        let mut two = thief.join().unwrap();
        while let Some(task) = two.find() {
            two.poll(task);
        }
        assert_eq!(ran.load(Relaxed), 4);
    });
}

/// The end against a wake: the future is dropped once, by whoever has it then, and the worker waits for that.
///
/// Bites: `end` without the wait for its list; `end` that does not look for queued tasks.
#[test]
fn the_end_against_a_wake_drops_the_future_once() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    bounded(3).check(|| {
        let (scheduler, mut worker) = one_worker();
        let drops = Arc::new(AtomicUsize::new(0));
        let slot = Arc::new(Mutex::new(None));
        let (held, waker) = (Counted(drops.clone()), slot.clone());
        drop(scheduler.spawn(poll_fn(move |cx| {
            let _held = &held;
            *waker.lock() = Some(cx.waker().clone());
            Poll::<()>::Pending
        })));
        let task = worker.find().unwrap();
        worker.poll(task);
        let waker = slot.lock().take().unwrap();
        let other = thread::spawn(|| waker.wake());
        scheduler.close();
        worker.end();
        assert_eq!(drops.load(Relaxed), 1);
        other.join().unwrap();
    });
}
