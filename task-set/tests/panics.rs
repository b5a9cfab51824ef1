//! Panics of user code in a set. Each panic becomes an error of the handle, or is discarded. Each
//! value is dropped once.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, Wake, Waker},
};
use task_header::{JoinError, JoinHandle, Ran};
use task_set::{JoinSet, LocalSet};

/// Counts its drops, and panics in each if `explodes` is set.
struct Bomb {
    drops: Arc<AtomicUsize>,
    explodes: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if self.explodes {
            panic!("drop");
        }
    }
}

fn outcome<T>(join: JoinHandle<T>) -> Result<T, JoinError> {
    let Poll::Ready(outcome) = pin!(join).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the task is not done");
    };
    outcome
}

/// Asserts that the task's error is a panic if `explodes` is set, and a cancellation otherwise.
fn ended(join: JoinHandle<()>, explodes: bool) {
    let error = outcome(join).unwrap_err();
    assert_eq!(error.is_panic(), explodes, "{error}");
}

#[test]
fn local_set_drops_all_tasks_though_some_drops_panic() {
    let drops = Arc::new(AtomicUsize::new(0));
    let set = LocalSet::new();
    let tasks: Vec<_> = (0..6)
        .map(|n| {
            let bomb = Bomb {
                drops: drops.clone(),
                explodes: n % 2 == 0,
            };
            set.spawn(async move {
                let _bomb = bomb;
                pending::<()>().await;
            })
        })
        .collect();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(set.poll_tasks(&mut cx).is_pending());
    tasks[0].abort();
    drop(set);
    assert_eq!(drops.load(SeqCst), 6);
    for (n, task) in tasks.into_iter().enumerate() {
        ended(task, n % 2 == 0);
    }
}

#[test]
fn join_set_drops_an_output_once_though_its_drop_panics() {
    let drops = Arc::new(AtomicUsize::new(0));
    let bomb = Bomb {
        drops: drops.clone(),
        explodes: true,
    };
    let (task, join) = task_header::spawn(async move { bomb }, drop);
    let mut set = JoinSet::new();
    set.insert(join);
    assert!(matches!(task.run(), Ran::Complete));
    drop(set);
    assert_eq!(drops.load(SeqCst), 1);
}

/// A waker that drops a bomb in its own drop.
struct Waking(#[expect(dead_code)] Bomb);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {}
}

/// Makes a waker whose drop panics.
fn explosive(drops: &Arc<AtomicUsize>) -> Waker {
    let bomb = Bomb {
        drops: drops.clone(),
        explodes: true,
    };
    Waker::from(Arc::new(Waking(bomb)))
}

#[test]
fn drop_of_a_set_contains_the_panic_of_its_wakers_drop() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (task, join) = task_header::spawn(pending::<()>(), drop);
    let mut set = JoinSet::from_iter([join]);
    let waker = explosive(&drops);
    let polled = set.poll_join_next(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    drop(set);
    assert_eq!(drops.load(SeqCst), 1);
    drop(task);

    let set = LocalSet::new();
    set.spawn_detached(pending::<()>());
    let waker = explosive(&drops);
    let polled = set.poll_tasks(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    drop(set);
    assert_eq!(drops.load(SeqCst), 2);
}

#[test]
fn shutdown_waits_for_all_tasks_though_outputs_panic() {
    let drops = Arc::new(AtomicUsize::new(0));
    let mut set = JoinSet::new();
    for _ in 0..3 {
        let bomb = Bomb {
            drops: drops.clone(),
            explodes: true,
        };
        let (task, join) = task_header::spawn(async move { bomb }, drop);
        set.insert(join);
        assert!(matches!(task.run(), Ran::Complete));
    }
    let polled = pin!(set.shutdown()).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_ready());
    assert_eq!((set.len(), drops.load(SeqCst)), (0, 3));
}

#[test]
fn join_set_takes_a_handle_whose_last_waker_panics_in_its_drop() {
    let drops = Arc::new(AtomicUsize::new(0));
    let (task, mut join) = task_header::spawn(async { 7 }, drop);
    let waker = explosive(&drops);
    let polled = Pin::new(&mut join).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
    let mut set = JoinSet::new();
    set.insert(join);
    assert_eq!(drops.load(SeqCst), 1);
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(set.try_join_next(), Some(Ok(7))));
}
