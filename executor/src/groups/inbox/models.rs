//! Models of homes. Each has two or three threads, and at most two driven workers that do not
//! steal.
use crate::{
    Builder, Runtime, Tick, Worker,
    groups::models::{bounded, build, end, waits},
    worker::park::{Park, ThreadPark},
    yield_now,
};
use std::{future::Future, task::Waker};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    sync::{Arc, Mutex},
    thread,
};

fn sharded<const N: usize>() -> (Runtime, [Worker<ThreadPark>; N]) {
    build(Builder::new().sharded(true))
}

/// The place of a waker.
type Place = Arc<Mutex<Option<Waker>>>;

fn wake(waker: &Place) {
    let waker = waker.lock().take();
    waker.expect("the task was polled").wake();
}

/// Adds one to a count when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Returns a future that waits for a wake, the place of its waker, and the count of its drops.
fn pair() -> (impl Future<Output = ()>, Place, Arc<AtomicUsize>) {
    let (waker, ran): (Place, _) = (Arc::new(Mutex::new(None)), Arc::new(AtomicUsize::new(0)));
    let dropped = Arc::new(AtomicUsize::new(0));
    let (counted, waits) = (Counted(dropped.clone()), waits(waker.clone(), ran));
    let task = async move {
        let _counted = counted;
        waits.await;
    };
    (task, waker, dropped)
}

/// Returns a runtime whose first worker is the home of a task that waits. The next tick of the
/// second worker wakes this task. Also returns the count of the task's drops.
fn with_waking_worker() -> (Runtime, [Worker<ThreadPark>; 2], Arc<AtomicUsize>) {
    let (runtime, [mut home, mut other]) = sharded();
    let (task, waker, dropped) = pair();
    runtime.spawn_detached(task);
    assert_eq!(home.tick(), Tick::Ran);
    runtime.spawn_detached(async move {
        yield_now().await;
        wake(&waker);
    });
    assert_eq!(other.tick(), Tick::Ran);
    (runtime, [home, other], dropped)
}

/// Ticks a worker until its runtime has ended.
fn run_to_end(mut worker: Worker<ThreadPark>) {
    while worker.tick() != Tick::Ended {
        worker.park();
    }
}

/// A thread from outside wakes a task whose home goes to sleep. The home runs the task.
///
/// Fails if `Core::announce` does not look at the inbox, or if `Shared::send_home` has no fence, or
/// does not unpark the home.
#[test]
fn wake_racing_the_sleep_of_the_home_is_found() {
    bounded(3).check(|| {
        let (runtime, [mut home]) = sharded();
        let (task, waker, dropped) = pair();
        runtime.spawn_detached(task);
        assert_eq!(home.tick(), Tick::Ran);
        let other = thread::spawn(move || wake(&waker));
        while dropped.load(Relaxed) == 0 {
            if home.tick() == Tick::Idle {
                home.park();
            }
        }
        other.join().unwrap();
        end(runtime, [home]);
    });
}

/// Two threads from outside wake two tasks whose home goes to sleep. At most one of them unparks
/// the home. The home runs both tasks.
///
/// Fails if a thread that has cleared the home's bit does not unpark it, or if a home that another
/// thread has woken does not look at its inbox.
#[test]
fn two_wakes_racing_the_sleep_of_the_home_are_found() {
    bounded(1).check(|| {
        let (runtime, [mut home]) = sharded();
        let tasks = [(); 2].map(|()| {
            let (task, waker, dropped) = pair();
            runtime.spawn_detached(task);
            assert_eq!(home.tick(), Tick::Ran);
            (waker, dropped)
        });
        let [(one, _), (two, _)] = tasks.clone();
        let others = [one, two].map(|waker| thread::spawn(move || wake(&waker)));
        while tasks.iter().any(|(_, dropped)| dropped.load(Relaxed) == 0) {
            if home.tick() == Tick::Idle {
                home.park();
            }
        }
        for other in others {
            other.join().unwrap();
        }
        end(runtime, [home]);
    });
}

/// A worker's poll wakes a task whose home, another worker, goes to sleep. The home runs the task.
///
/// Fails as `wake_racing_the_sleep_of_the_home_is_found` does.
#[test]
fn wake_by_a_worker_racing_the_homes_sleep_is_found() {
    bounded(2).check(|| {
        let (runtime, [mut home, mut other], dropped) = with_waking_worker();
        let other = thread::spawn(move || {
            assert_eq!(other.tick(), Tick::Ran);
            other
        });
        while dropped.load(Relaxed) == 0 {
            if home.tick() == Tick::Idle {
                home.park();
            }
        }
        let other = other.join().unwrap();
        end(runtime, [home, other]);
    });
}

/// A thread from outside wakes a task while its runtime ends. The home drops the task, once, and
/// waits for no task forever.
///
/// Fails if `Core::end` or `Core::awaits_release` does not look at the inboxes.
#[test]
fn wake_racing_the_end_of_the_home_drops_the_task() {
    bounded(3).check(|| {
        let (runtime, [mut home]) = sharded();
        let (task, waker, dropped) = pair();
        runtime.spawn_detached(task);
        assert_eq!(home.tick(), Tick::Ran);
        let other = thread::spawn(move || wake(&waker));
        drop(runtime);
        run_to_end(home);
        other.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A worker's poll wakes a task while the runtime ends, and so do both workers. One of them drops
/// the task.
///
/// Fails as `wake_racing_the_end_of_the_home_drops_the_task` does.
#[test]
fn wake_by_a_worker_racing_the_end_drops_the_task() {
    bounded(2).check(|| {
        let (runtime, [home, other], dropped) = with_waking_worker();
        let other = thread::spawn(move || run_to_end(other));
        drop(runtime);
        run_to_end(home);
        other.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}

/// A runtime ends while a thread from outside wakes a task. The worker that is not the task's home
/// may see the task in the home's inbox, which the home takes meanwhile. That worker ends, too.
///
/// Fails if a worker without live tasks parks because the queues are empty now, although they were
/// not at the end of its last `Core::end`: nobody would unpark it.
#[test]
fn worker_that_saw_the_mail_of_another_ends() {
    bounded(2).check(|| {
        let (runtime, [mut home, mut other]) = sharded();
        let (task, waker, dropped) = pair();
        runtime.spawn_detached(task);
        assert_eq!(home.tick(), Tick::Ran);
        drop(runtime);
        other.park_mut().park(); // The close has unparked it.
        let wakes = thread::spawn(move || wake(&waker));
        let home = thread::spawn(move || run_to_end(home));
        run_to_end(other);
        wakes.join().unwrap();
        home.join().unwrap();
        assert_eq!(dropped.load(Relaxed), 1);
    });
}
