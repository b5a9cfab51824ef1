//! The models of this executor.
//!
//! `cargo test` runs each scenario 200 times. Under `--cfg selvedge_loom` loom explores the
//! executions of each scenario.
//!
//! A scenario is small: one or two workers, a few tasks, the thread that races with them, and
//! nothing else. If loom would take too long, the model has a bound: loom explores only executions
//! in which the number of preemptions is at most the bound.
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

/// Checks the protocol of `sleep.rs` alone, in all executions. A flag stands for the queue.
///
/// It fails if one of the two fences is missing, if the worker looks at the queue before it sets
/// its bit, or if the notifier opens no gate.
#[test]
fn sleeper_racing_a_push_is_woken() {
    model(|| push_against_sleep(true));
}

/// Leaves out the worker's look at the queue after the announcement. The failure of this model
/// shows that the model above would notice that mistake.
#[test]
fn sleeper_without_second_look_misses_a_push() {
    model_must_fail("asleep over a push", || push_against_sleep(false));
}

/// Runs a push against a worker that goes to sleep, and asserts that the worker does not miss the
/// push.
///
/// The worker does not really wait here. If it waited for a wake that never came, loom would report
/// the deadlock by a panic, and that panic would drop the `Arc`s and end the process.
fn push_against_sleep(looks_again: bool) {
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

/// Runs a whole worker on a thread of its own: a spawned task runs, and the worker then ends.
///
/// It fails if `spawn` does not notify a worker, if `close` does not call `wake_all`, or if
/// `has_work` leaves out the injector.
#[test]
fn spawned_task_runs_and_the_worker_ends() {
    bounded(2).check(|| {
        let (scheduler, worker) = one_worker();
        let thread = thread::spawn(|| worker.run());
        assert_eq!(block_on(scheduler.spawn(async { 7 })).unwrap(), 7);
        scheduler.close();
        thread.join().unwrap();
    });
}

/// Wakes a waiting task from an outside thread while the task's worker goes to sleep.
///
/// It fails if `schedule` does not notify a worker.
#[test]
fn wake_from_outside_reaches_its_task() {
    bounded(2).check(|| {
        let (scheduler, worker) = one_worker();
        let thread = thread::spawn(|| worker.run());
        let slot = Arc::new((Mutex::new(None::<Waker>), AtomicUsize::new(0)));
        let task = {
            let slot = slot.clone();
            scheduler.spawn(poll_fn(move |cx| {
                // The lock orders this poll and the outside thread's code below: either that code
                // finds the waker, or this poll finds the 1.
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

/// Runs two workers and four tasks. Three of the tasks are in one worker's ring, where the other
/// worker may steal them. Each task runs once, on either worker.
///
/// It fails if a thief runs the first task that it has stolen, and drops the others.
#[test]
fn task_stolen_or_not_runs_once() {
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

/// Ends a worker while another thread wakes the worker's task. The worker drops the task's future
/// once: either while the task waits, or after the other thread has queued the task.
///
/// It fails if `end` does not wait until the worker's list is empty, or if `end` does not look for
/// queued tasks.
#[test]
fn end_racing_a_wake_drops_the_future_once() {
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
