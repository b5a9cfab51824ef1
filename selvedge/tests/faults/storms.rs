//! Tests of a runtime's end in the middle of wakes, and of handles that outlive it.
use crate::process::is_child;
use selvedge::Builder;
use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Poll, Waker},
    thread,
    time::Duration,
};

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

type Wakers = Arc<Mutex<Vec<Waker>>>;

/// Task that waits forever, and is woken all the time.
async fn storm(wakers: Wakers, counted: Counted) {
    let mut kept = false;
    poll_fn(|cx| {
        let _counted = &counted;
        if !kept {
            wakers.lock().unwrap().push(cx.waker().clone());
            kept = true;
        }
        Poll::<()>::Pending
    })
    .await;
}

#[test]
fn runtime_end_amid_wakes_drops_each_future_once() {
    if !is_child("storms::runtime_end_amid_wakes_drops_each_future_once") {
        return;
    }
    const TASKS: usize = 50;
    for round in 0..30 {
        let runtime = Builder::new()
            .workers(1 + round % 3)
            .ring_capacity(8)
            .build()
            .unwrap();
        let (drops, wakers) = (Arc::new(AtomicUsize::new(0)), Wakers::default());
        let tasks: Vec<_> = (0..TASKS)
            .map(|_| runtime.spawn(storm(wakers.clone(), Counted(drops.clone()))))
            .collect();
        let over = Arc::new(AtomicBool::new(false));
        let others: Vec<_> = (0..3)
            .map(|n| {
                let (wakers, over) = (wakers.clone(), over.clone());
                thread::spawn(move || {
                    while !over.load(SeqCst) {
                        let some: Vec<_> = wakers
                            .lock()
                            .unwrap()
                            .iter()
                            .skip(n)
                            .step_by(3)
                            .cloned()
                            .collect();
                        some.into_iter()
                            .enumerate()
                            .for_each(|(i, waker)| match i % 2 {
                                0 => waker.wake(),
                                _ => waker.wake_by_ref(),
                            });
                    }
                })
            })
            .collect();
        thread::sleep(Duration::from_millis(round as u64 % 5));
        match round % 3 {
            0 => drop(runtime),
            1 => assert!(runtime.shutdown_timeout(Duration::from_secs(600))),
            _ => {
                runtime.shutdown_background();
                while drops.load(SeqCst) < TASKS {
                    thread::yield_now();
                }
            }
        }
        assert_eq!(drops.load(SeqCst), TASKS);
        over.store(true, SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
        for task in tasks {
            assert!(task.is_finished());
        }
        // These are wakers of tasks that have ended.
        let kept = std::mem::take(&mut *wakers.lock().unwrap());
        kept.iter().for_each(Waker::wake_by_ref);
        thread::spawn(move || kept.into_iter().for_each(Waker::wake))
            .join()
            .unwrap();
        assert_eq!(drops.load(SeqCst), TASKS);
    }
}

#[test]
fn handles_of_every_kind_outlive_their_runtime() {
    if !is_child("storms::handles_of_every_kind_outlive_their_runtime") {
        return;
    }
    let runtime = Builder::new().workers(2).build().unwrap();
    let (drops, wakers) = (Arc::new(AtomicUsize::new(0)), Wakers::default());
    let handle = runtime.handle().clone();
    let waits = runtime.spawn(storm(wakers.clone(), Counted(drops.clone())));
    let done = runtime.spawn(async { Counted(Arc::new(AtomicUsize::new(0))) });
    while wakers.lock().unwrap().is_empty() || !done.is_finished() {
        thread::yield_now();
    }
    let aborts = [waits.abort_handle(), done.abort_handle()];
    drop(runtime);
    for abort in aborts {
        assert!(abort.is_finished());
        abort.clone().abort();
    }
    assert!(
        futures::executor::block_on(waits)
            .unwrap_err()
            .is_cancelled()
    );
    let output = futures::executor::block_on(done).unwrap();
    assert_eq!(output.0.load(SeqCst), 0);
    // This task is spawned too late, so its future is dropped at once.
    let late = handle.spawn(storm(wakers.clone(), Counted(drops.clone())));
    assert!(
        futures::executor::block_on(late)
            .unwrap_err()
            .is_cancelled()
    );
    assert!(
        futures::executor::block_on(handle.spawn_blocking(|| ()))
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(drops.load(SeqCst), 2);
    let wakers = std::mem::take(&mut *wakers.lock().unwrap());
    wakers.into_iter().for_each(Waker::wake);
    assert_eq!(handle.block_on(async { 1 }), 1);
}
