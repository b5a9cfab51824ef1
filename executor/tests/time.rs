//! Tests of sleeps, timeouts and intervals in the runtime. The tests count events. Of an event's
//! time they assert only that it is not too early.
#![cfg(feature = "net")]

use selvedge_executor::{
    Builder, LocalRuntime, Runtime, Tick, block_in_place, park::ThreadPark, spawn, yield_now,
};

use net_driver::time::{self, Duration, Instant};
use std::{
    future::{Future, pending},
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

const MS: Duration = Duration::from_millis(1);

fn runtime(workers: usize) -> Runtime {
    Builder::new().workers(workers).build().unwrap()
}

/// Sleeps, and checks that the sleep did not end early.
async fn nap(span: Duration) {
    let begun = Instant::now();
    time::sleep(span).await;
    assert!(begun.elapsed() >= span);
}

#[test]
fn sleeps_of_many_tasks_end_and_not_early() {
    for workers in [1, 2, 4] {
        let runtime = runtime(workers);
        let tasks: Vec<_> = (0..200)
            .map(|n| runtime.spawn(nap(MS / 4 * (n % 16))))
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn sleep_in_block_on_is_woken_by_a_worker() {
    let runtime = runtime(2);
    for span in [Duration::ZERO, MS / 10, MS, 5 * MS] {
        runtime.block_on(nap(span));
    }
    // The second sleep ends before the first one, for whose deadline a worker parks already.
    let later = runtime.spawn(nap(Duration::from_secs(3_600)));
    thread::sleep(5 * MS);
    runtime.block_on(nap(2 * MS));
    assert!(!later.is_finished());
}

#[test]
fn sleep_in_local_runtime_is_woken_by_its_thread() {
    let runtime = LocalRuntime::new().unwrap();
    for _ in 0..2 {
        runtime.block_on(async {
            let task = selvedge_executor::spawn_local(nap(2 * MS));
            nap(MS).await;
            task.await.unwrap();
        });
    }
    // This task's sleep begins in one `block_on` and ends in the next.
    let task = runtime.spawn_local(nap(3 * MS));
    runtime.block_on(nap(MS));
    runtime.block_on(task).unwrap();
}

#[test]
fn sleep_on_driven_workers_is_woken_by_their_parks() {
    for workers in [1, 2] {
        let parks = (0..workers).map(|_| ThreadPark::new());
        let (runtime, workers) = Builder::new().build_driven(parks);
        let tasks: Vec<_> = (1..20).map(|n| runtime.spawn(nap(MS / 4 * n))).collect();
        let threads: Vec<_> = workers
            .into_iter()
            .map(|worker| thread::spawn(|| worker.run()))
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
            nap(MS).await;
        });
        drop(runtime);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

#[test]
fn driven_worker_without_parks_fires_due_timers() {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    let task = runtime.spawn(nap(2 * MS));
    while !task.is_finished() {
        match worker.tick() {
            Tick::Ran => {}
            Tick::Idle => thread::yield_now(),
            Tick::Ended => unreachable!("the runtime is there"),
        }
    }
}

#[test]
fn sleep_with_a_driver_of_the_builder_is_woken() {
    let builder = Builder::new().workers(2).driver(|_| ThreadPark::new());
    let runtime = builder.build().unwrap();
    runtime.block_on(async {
        spawn(nap(2 * MS)).await.unwrap();
        nap(MS).await;
    });
}

#[test]
fn timeout_ends_a_wait_and_returns_a_ready_output() {
    let runtime = runtime(2);
    runtime.block_on(async {
        let late = spawn(time::timeout(2 * MS, pending::<()>()));
        let ready = spawn(time::timeout(2 * MS, async { 7 }));
        let soon = spawn(time::timeout(Duration::MAX, async {
            nap(MS).await;
            8
        }));
        assert!(late.await.unwrap().is_err());
        assert_eq!(ready.await.unwrap(), Ok(7));
        assert_eq!(soon.await.unwrap(), Ok(8));
        assert!(
            time::timeout(Duration::ZERO, pending::<()>())
                .await
                .is_err()
        );
        let past = Instant::now() - MS;
        assert!(time::timeout_at(past, pending::<()>()).await.is_err());
    });
}

/// The timeout of a future that has used up its budget must still end the future.
#[test]
fn timeout_of_a_future_without_budget_ends() {
    let runtime = runtime(1);
    let greedy = async {
        loop {
            coop_budget::consume().await;
        }
    };
    let task = runtime.spawn(time::timeout(MS, greedy));
    assert!(runtime.block_on(task).unwrap().is_err());
}

#[test]
fn interval_ticks_at_multiples_of_its_period() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let mut interval = time::interval(MS);
        let first = interval.tick().await;
        for n in 1..=5 {
            assert_eq!(interval.tick().await, first + n * MS);
            assert!(Instant::now() >= first + n * MS);
        }
    });
    runtime.block_on(task).unwrap();
}

/// Fails if an interval takes a period of zero, with which each tick would be due at once.
#[test]
fn interval_without_a_period_is_refused() {
    let refused: [fn() -> time::Interval; 2] = [
        || time::interval(Duration::ZERO),
        || time::interval_at(Instant::now(), Duration::ZERO),
    ];
    for make in refused {
        let caught = std::panic::catch_unwind(|| drop(make())).unwrap_err();
        let message = caught.downcast_ref::<&str>().unwrap();
        assert!(message.contains("must not be zero"), "{message}");
    }
}

#[test]
fn drop_of_a_runtime_drops_its_sleepers() {
    struct Count(Arc<AtomicUsize>);
    impl Drop for Count {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let runtime = runtime(4);
    let (sender, asleep) = mpsc::channel();
    for _ in 0..100 {
        let (count, sender) = (Count(dropped.clone()), sender.clone());
        runtime.spawn_detached(async move {
            let mut sleep = pin!(time::sleep(Duration::from_secs(3_600)));
            std::future::poll_fn(|cx| {
                let poll = sleep.as_mut().poll(cx);
                sender.send(()).unwrap();
                poll
            })
            .await;
            drop(count);
        });
    }
    for _ in 0..100 {
        asleep.recv().unwrap();
    }
    drop(runtime);
    assert_eq!(dropped.load(SeqCst), 100);
}

/// A sleep outlives its runtime. At the runtime's end the task that awaits the sleep is woken, and
/// the sleep may be awaited again in another runtime.
#[test]
fn sleep_that_outlives_its_runtime_goes_on_in_the_next() {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, SeqCst);
        }
    }
    let flag = Arc::new(Flag(AtomicBool::new(false)));
    let waker = Waker::from(flag.clone());
    let mut sleep = Box::pin(time::sleep(Duration::from_secs(3_600)));
    let first = runtime(1);
    {
        let _entered = first.enter();
        let poll = sleep.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll.is_pending());
    }
    drop(first);
    assert!(flag.0.load(SeqCst), "it was not woken at the end");
    sleep.as_mut().reset(Instant::now() + 5 * MS);
    runtime(1).block_on(sleep);
}

#[test]
fn block_on_a_sleep_after_the_end_panics() {
    let runtime = runtime(1);
    let handle = runtime.handle().clone();
    drop(runtime);
    let sleeps = || handle.block_on(time::sleep(Duration::from_secs(3_600)));
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(sleeps)).unwrap_err();
    let message = payload.downcast_ref::<&str>().unwrap();
    assert!(message.contains("shut down"), "{message}");
}

#[test]
fn sleep_outside_of_a_runtime_panics_with_a_hint() {
    let mut sleep = Box::pin(time::sleep(MS));
    let poll = || {
        let _ = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    };
    let payload = std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).unwrap_err();
    let message = payload.downcast_ref::<&str>().unwrap();
    assert!(message.contains("Handle::enter"), "{message}");
}

/// One worker is in a poll that ends only when the other worker has fired the poll's timer.
#[test]
fn timer_of_a_busy_worker_is_fired_by_another() {
    let runtime = runtime(2);
    for _ in 0..20 {
        let task = runtime.spawn(async {
            let (sender, fired) = mpsc::channel();
            let mut sleep = Box::pin(time::sleep(2 * MS));
            let waker = Waker::from(Arc::new(Send(sender)));
            let poll = sleep.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(poll.is_pending());
            // This task keeps the other worker running for a while. Then that worker looks for more
            // tasks.
            drop(spawn(async {
                for _ in 0..100 {
                    yield_now().await;
                }
            }));
            fired.recv().unwrap();
            assert!(sleep.is_elapsed());
        });
        runtime.block_on(task).unwrap();
    }

    struct Send(mpsc::Sender<()>);
    impl Wake for Send {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }
}

#[test]
fn sleeps_beside_long_polls_end() {
    let runtime = runtime(2);
    let done = Arc::new(AtomicBool::new(false));
    for _ in 0..4 {
        let done = done.clone();
        runtime.spawn_detached(async move {
            while !done.load(SeqCst) {
                let begun = Instant::now();
                while begun.elapsed() < MS {
                    std::hint::spin_loop();
                }
                yield_now().await;
            }
        });
    }
    let sleepers: Vec<_> = (0..8)
        .map(|_| {
            runtime.spawn(async {
                for _ in 0..5 {
                    nap(MS).await;
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for sleeper in sleepers {
            sleeper.await.unwrap();
        }
    });
    done.store(true, SeqCst);
}

#[test]
fn reset_wakes_the_task_that_polled_last() {
    /// Resets its sleep to an earlier time, and does not poll it again.
    struct Resets(Pin<Box<time::Sleep>>, bool);
    impl Future for Resets {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            if self.1 {
                return self.0.as_mut().poll(cx);
            }
            assert!(self.0.as_mut().poll(cx).is_pending());
            self.0.as_mut().reset(Instant::now() + MS);
            self.1 = true;
            Poll::Pending
        }
    }
    let runtime = runtime(2);
    let hour = || Box::pin(time::sleep(Duration::from_secs(3_600)));
    runtime.block_on(Resets(hour(), false));
    runtime
        .block_on(runtime.spawn(Resets(hour(), false)))
        .unwrap();
    runtime.block_on(async {
        let mut sleep = pin!(time::sleep(MS));
        let begun = Instant::now();
        sleep.as_mut().reset(begun + 3 * MS);
        sleep.as_mut().await;
        assert!(begun.elapsed() >= 3 * MS);
        // The sleep may be used again.
        sleep.as_mut().reset(begun + 5 * MS);
        assert!(!sleep.is_elapsed());
        sleep.as_mut().await;
        assert!(begun.elapsed() >= 5 * MS);
    });
}

/// Polls once, with a waker that does nothing.
fn poll<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Fails if a sleep that waits for its worker is pending after a reset to a time that has passed.
#[test]
fn sleep_after_a_reset_to_the_past_is_ready() {
    runtime(1).block_on(async {
        let mut sleep = Box::pin(time::sleep(Duration::from_secs(3_600)));
        let begun = Instant::now();
        assert!(poll(&mut sleep).is_pending());
        sleep.as_mut().reset(begun);
        assert!(sleep.is_elapsed());
        assert!(poll(&mut sleep).is_ready());
        sleep.as_mut().reset(begun + Duration::from_secs(3_600));
        assert!(poll(&mut sleep).is_pending(), "it may be used again");
    });
}

/// Fails if an interval that waits is pending after a reset to a time that has passed.
#[test]
fn interval_after_a_reset_to_the_past_ticks_at_once() {
    runtime(1).block_on(async {
        let begun = Instant::now();
        let resets: [fn(&mut time::Interval, Instant); 3] = [
            |interval, _| interval.reset_immediately(),
            |interval, begun| interval.reset_at(begun),
            |interval, _| interval.reset_after(Duration::ZERO),
        ];
        for (at, reset) in resets.into_iter().enumerate() {
            let mut interval = time::interval(Duration::from_secs(3_600));
            interval.tick().await;
            let mut cx = Context::from_waker(Waker::noop());
            assert!(interval.poll_tick(&mut cx).is_pending());
            reset(&mut interval, begun);
            assert!(interval.poll_tick(&mut cx).is_ready(), "{at}");
            assert!(interval.poll_tick(&mut cx).is_pending(), "{at}");
        }
    });
}

/// Fails if a task whose sleep was reset to a time that has passed is not woken, although it does
/// not poll the sleep again by itself.
#[test]
fn reset_to_the_past_wakes_the_task() {
    /// Resets its sleep to the past in the first poll.
    struct Resets(Pin<Box<time::Sleep>>, bool);
    impl Future for Resets {
        type Output = ();

        fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
            let polled = self.0.as_mut().poll(cx);
            if !std::mem::replace(&mut self.1, true) {
                assert!(polled.is_pending());
                self.0.as_mut().reset(Instant::now());
                return Poll::Pending;
            }
            assert!(polled.is_ready(), "it waits for nothing");
            polled
        }
    }
    let runtime = runtime(2);
    let resets = || Resets(Box::pin(time::sleep(Duration::from_secs(3_600))), false);
    runtime.block_on(resets());
    runtime.block_on(runtime.spawn(resets())).unwrap();
}

#[test]
fn sleep_in_a_lent_core_ends() {
    let runtime = runtime(1);
    let task = runtime.spawn(async {
        let other = spawn(nap(2 * MS));
        nap(MS).await;
        // The core and its timers go to another thread.
        block_in_place(|| {
            while !other.is_finished() {
                thread::yield_now();
            }
        });
        nap(MS).await;
    });
    runtime.block_on(task).unwrap();
}

#[test]
fn idle_runtime_with_far_timers_does_not_wake() {
    let runtime = runtime(2);
    let sleeper = runtime.spawn(time::sleep(Duration::from_secs(3_600)));
    let wakes = || {
        let metrics = runtime.snapshot();
        metrics.parks + metrics.unparks + metrics.false_wakes
    };
    // The workers settle, and then nothing happens for a while.
    let mut before = wakes();
    for _ in 0..100 {
        thread::sleep(100 * MS);
        let now = wakes();
        if now == before {
            drop(sleeper);
            return;
        }
        before = now;
    }
    panic!("the idle workers wake up again and again");
}
