//! Tests of the paused clock: sleeps take no real time, and end in the order of their deadlines.
#![cfg(feature = "test-util")]

use selvedge_executor::{
    Builder, LocalRuntime, Runtime, block_in_place, park::ThreadPark, spawn, spawn_blocking,
};

use net_driver::time::{self, Duration, Instant};
use std::{
    future::{Future, pending},
    sync::{Arc, mpsc},
    task::{Context, Waker},
    thread,
};

const HOUR: Duration = Duration::from_secs(3_600);

fn paused(workers: usize) -> Runtime {
    let builder = Builder::new().workers(workers).start_paused(true);
    builder.build().unwrap()
}

#[test]
fn paused_sleep_takes_exactly_its_time() {
    for workers in [1, 2, 4] {
        let runtime = paused(workers);
        runtime.block_on(async {
            let begun = Instant::now();
            for n in 1..50 {
                time::sleep(HOUR).await;
                assert_eq!(begun.elapsed(), n * HOUR);
            }
        });
    }
}

#[test]
fn paused_sleeps_of_many_tasks_end_in_order() {
    let runtime = paused(4);
    let (sender, ended) = mpsc::channel();
    // The clock does not go on before all tasks sleep, so all sleeps begin at the same time.
    runtime.block_on(async {
        let begun = Instant::now();
        let tasks: Vec<_> = (0..100)
            .map(|n| {
                let sender = sender.clone();
                spawn(async move {
                    let span = HOUR * ((n * 37) % 100 + 1);
                    time::sleep_until(begun + span).await;
                    assert_eq!(begun.elapsed(), span);
                    sender.send(span).unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(sender);
    let ended: Vec<_> = ended.into_iter().collect();
    assert_eq!(ended.len(), 100);
    assert!(ended.is_sorted());
}

/// A task wakes another task, and that task wakes the thread in `block_on`, over and over. The
/// clock must not jump while such a wake is on its way.
#[test]
fn paused_clock_waits_for_wakes_between_threads() {
    let runtime = paused(2);
    runtime.block_on(async {
        let mut timeouts = 0;
        for _ in 0..500 {
            let task = spawn(async { spawn(async { 7 }).await.unwrap() });
            timeouts += usize::from(time::timeout(HOUR, task).await.is_err());
        }
        assert_eq!(timeouts, 0);
    });
}

#[test]
fn paused_clock_waits_for_blocking_closures() {
    let runtime = paused(2);
    runtime.block_on(async {
        for _ in 0..20 {
            let closure = spawn_blocking(|| thread::sleep(Duration::from_millis(1)));
            assert!(time::timeout(HOUR, closure).await.is_ok());
            let in_place = spawn(async {
                block_in_place(|| thread::sleep(Duration::from_millis(1)));
            });
            assert!(time::timeout(HOUR, in_place).await.is_ok());
        }
    });
}

#[test]
fn timeout_of_a_pending_future_ends_when_paused() {
    let runtime = paused(2);
    let begun = Instant::now();
    runtime.block_on(async {
        let begun = Instant::now();
        assert!(time::timeout(24 * HOUR, pending::<()>()).await.is_err());
        assert_eq!(begun.elapsed(), 24 * HOUR);
    });
    assert!(begun.elapsed() < HOUR, "real time has passed");
}

#[test]
fn cancelled_timer_does_not_move_the_clock() {
    let runtime = paused(1);
    runtime.block_on(async {
        let begun = Instant::now();
        assert!(
            time::timeout(HOUR, selvedge_executor::yield_now())
                .await
                .is_ok()
        );
        time::sleep(2 * HOUR).await;
        assert_eq!(begun.elapsed(), 2 * HOUR);
    });
}

#[test]
fn advance_wakes_due_sleeps_and_resume_goes_on() {
    let runtime = Builder::new().workers(2).build().unwrap();
    runtime.block_on(async {
        time::pause();
        let begun = Instant::now();
        let mut sleep = Box::pin(time::sleep(HOUR));
        assert!(futures::poll!(sleep.as_mut()).is_pending());
        time::advance(HOUR / 2).await;
        assert!(!sleep.is_elapsed());
        time::advance(HOUR / 2).await;
        assert!(sleep.is_elapsed());
        assert_eq!(begun.elapsed(), HOUR);
        time::resume();
        time::sleep(Duration::from_millis(1)).await;
        assert!(begun.elapsed() > HOUR);
        assert!(begun.elapsed() < 2 * HOUR);
    });
}

#[test]
fn paused_local_runtime_jumps() {
    LocalRuntime::new().unwrap().block_on(async {
        time::pause();
        let begun = Instant::now();
        let task = selvedge_executor::spawn_local(time::sleep(HOUR));
        time::sleep(2 * HOUR).await;
        task.await.unwrap();
        assert_eq!(begun.elapsed(), 2 * HOUR);
    });
}

#[test]
fn paused_driven_worker_jumps() {
    let builder = Builder::new().start_paused(true);
    let (runtime, workers) = builder.build_driven([ThreadPark::new()]);
    let threads: Vec<_> = workers
        .into_iter()
        .map(|worker| thread::spawn(|| worker.run()))
        .collect();
    runtime.block_on(async {
        let begun = Instant::now();
        spawn(time::sleep(HOUR)).await.unwrap();
        time::sleep(HOUR).await;
        assert_eq!(begun.elapsed(), 2 * HOUR);
    });
    drop(runtime);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Two threads are in `block_on` of one current-thread runtime. The first thread drives the worker.
/// The second thread works in its own future, and the first thread waits for the result.
///
/// Fails if the clock jumps while the second thread works.
#[test]
fn clock_waits_for_a_thread_that_another_drives_for() {
    let builder = Builder::new_current_thread().start_paused(true);
    let runtime = Arc::new(builder.build().unwrap());
    for _ in 0..20 {
        let (sender, receiver) = async_channel::bounded(1);
        let (drives, driven) = mpsc::channel();
        let (enters, entered) = mpsc::channel();
        let first = {
            let runtime = runtime.clone();
            thread::spawn(move || {
                runtime.block_on(async {
                    drives.send(()).unwrap();
                    entered.recv().unwrap();
                    time::timeout(HOUR, receiver.recv()).await
                })
            })
        };
        driven.recv().unwrap();
        runtime.block_on(async {
            enters.send(()).unwrap();
            thread::sleep(Duration::from_millis(1)); // This thread works, and the other parks.
            sender.send(7).await.unwrap();
        });
        assert_eq!(first.join().unwrap(), Ok(Ok(7)));
    }
}

/// Fails if the clock counts a waiting thread as running.
#[test]
fn clock_jumps_while_two_threads_of_one_runtime_wait() {
    let builder = Builder::new_current_thread().start_paused(true);
    let runtime = Arc::new(builder.build().unwrap());
    let (drives, driven) = mpsc::channel();
    let begun = runtime.block_on(async { Instant::now() });
    let first = {
        let runtime = runtime.clone();
        thread::spawn(move || {
            runtime.block_on(async {
                let mut sleep = Box::pin(time::sleep_until(begun + 2 * HOUR));
                assert!(futures::poll!(sleep.as_mut()).is_pending());
                drives.send(()).unwrap();
                sleep.await;
            })
        })
    };
    driven.recv().unwrap();
    runtime.block_on(time::sleep_until(begun + 3 * HOUR));
    first.join().unwrap();
    assert_eq!(runtime.block_on(async { begun.elapsed() }), 3 * HOUR);
}

/// Fails if the clock jumps while a thread enters `block_on`, or before the task's wake has
/// arrived.
#[test]
fn clock_waits_for_tasks_that_are_spawned_outside() {
    for workers in [1, 2] {
        let runtime = paused(workers);
        for _ in 0..2_000 {
            let task = runtime.spawn(async {});
            runtime.block_on(async {
                let begun = Instant::now();
                assert!(time::timeout(HOUR, task).await.is_ok());
                assert_eq!(begun.elapsed(), Duration::ZERO);
            });
        }
    }
}

/// Fails if a reset compares its time with the system's clock instead of the paused one.
#[test]
fn paused_sleep_after_a_reset_to_the_past_is_ready() {
    paused(1).block_on(async {
        let mut sleep = Box::pin(time::sleep(2 * HOUR));
        let mut cx = Context::from_waker(Waker::noop());
        time::advance(HOUR).await;
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        let now = Instant::now();
        sleep.as_mut().reset(now + Duration::from_nanos(1));
        assert!(sleep.as_mut().poll(&mut cx).is_pending());
        sleep.as_mut().reset(now);
        assert!(sleep.as_mut().poll(&mut cx).is_ready());
    });
}
