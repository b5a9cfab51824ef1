//! Tests of tasks that block in place, and of closures on blocking threads.
use super::*;
use crate::{LocalRuntime, blocking::block_in_place_beside_workers, worker_index};

#[test]
fn other_tasks_of_a_worker_run_while_one_blocks() {
    let runtime = workers(1);
    let task = runtime.spawn(async {
        let (sender, receiver) = mpsc::channel();
        for i in 0..100 {
            let sender = sender.clone();
            spawn_detached(async move {
                yield_now().await;
                sender.send(i).unwrap();
            });
        }
        drop(sender);
        let sum = block_in_place(|| receiver.into_iter().sum::<i32>());
        // In the rest of the poll the thread is still in its runtime, but not as a worker.
        spawn(async move { sum }).await.unwrap()
    });
    assert_eq!(block_on(task).unwrap(), 4950);
    assert_eq!(block_on(runtime.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn task_that_lost_its_worker_is_woken_like_any_other() {
    let runtime = workers(1);
    for round in 0..200 {
        let (wake, woken) = oneshot::channel();
        let (blocked, free) = mpsc::channel();
        let task = runtime.spawn(async move {
            let other = spawn(async move { blocked.send(()).unwrap() });
            block_in_place(|| free.recv().unwrap());
            let got = woken.await.unwrap();
            other.await.unwrap();
            got
        });
        wake.send(round).unwrap();
        assert_eq!(block_on(task).unwrap(), round);
    }
}

#[test]
fn closure_in_place_that_returns_at_once_loses_no_task() {
    let runtime = workers(2);
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            runtime.spawn(async {
                let mut sum = 0;
                for i in 0..200 {
                    sum += block_in_place(|| i);
                    if i % 3 == 0 {
                        yield_now().await;
                    }
                    if i % 7 == 0 {
                        sum += spawn(async { 0 }).await.unwrap();
                    }
                }
                sum
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(block_on(task).unwrap(), 19_900);
    }
    let handle = runtime.handle().clone();
    drop(runtime);
    assert_eq!(handle.snapshot().live_tasks, 0);
}

#[test]
fn blocking_in_place_nests_and_works_anywhere() {
    assert_eq!(block_in_place(|| 1), 1);
    let runtime = workers(1);
    assert_eq!(
        runtime.block_on(async { block_in_place(|| Handle::current().block_on(async { 2 })) }),
        2
    );
    let nested = runtime.spawn(async {
        block_in_place(|| {
            block_in_place(|| Handle::current().block_on(spawn(async { 3 })).unwrap())
        })
    });
    assert_eq!(block_on(nested).unwrap(), 3);
    let in_closure = runtime.spawn_blocking(|| block_in_place(|| 4));
    assert_eq!(block_on(in_closure).unwrap(), 4);
}

/// Fails if the condition looks at the runtime alone: other threads may block in a runtime of one
/// thread.
#[test]
fn only_thread_may_not_block_beside_workers() {
    let blocks = || std::panic::catch_unwind(|| block_in_place_beside_workers(|| 7)).is_ok();
    let one = Builder::new_current_thread().build().unwrap();
    assert!(!one.block_on(async { blocks() }));
    assert!(!one.block_on(one.spawn(async move { blocks() })).unwrap());
    assert!(one.block_on(one.spawn_blocking(blocks)).unwrap());
    assert!(one.handle().block_on(async { blocks() }));
    let _entered = one.enter();
    assert!(blocks());
    let runtime = workers(1);
    assert!(runtime.block_on(async { blocks() }));
    assert!(block_on(runtime.spawn(async move { blocks() })).unwrap());
}

/// Fails if a thread that waits for the worker has an index, or if a blocking closure has one.
#[test]
fn future_of_a_thread_that_drives_has_an_index() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert_eq!(worker_index(), Some(0));
        assert_eq!(block_in_place(worker_index), None);
        let other = || runtime.block_on(async { worker_index() });
        assert_eq!(
            std::thread::scope(|scope| scope.spawn(other).join().unwrap()),
            None
        );
    });
    assert_eq!(runtime.handle().block_on(async { worker_index() }), None);
    let local = LocalRuntime::new().unwrap();
    assert_eq!(local.block_on(async { worker_index() }), Some(0));
    assert_eq!(worker_index(), None);
}

#[test]
fn after_blocking_in_place_a_task_may_not_block_on() {
    let runtime = workers(1);
    let task = runtime.spawn(async {
        let (sender, receiver) = mpsc::channel();
        spawn_detached(async move { sender.send(()).unwrap() });
        block_in_place(|| receiver.recv().unwrap());
        Handle::current().block_on(async {});
    });
    let error = block_on(task).unwrap_err();
    assert!(
        error.to_string().contains("await the future instead"),
        "{error}"
    );
    assert!(block_on(runtime.spawn(async { Handle::try_current().is_ok() })).unwrap());
}

/// Fails if a hook that is called in a task, or around its poll, gives the task's worker away.
#[test]
fn hook_that_blocks_in_place_keeps_the_worker() {
    let runtime = Builder::new()
        .workers(1)
        .on_task_spawn(|_| block_in_place(|| ()))
        .on_before_poll(|_| block_in_place(|| ()))
        .on_after_poll(|_| block_in_place(|| ()))
        .on_task_end(|_| block_in_place(|| ()))
        .on_panic(|_| block_in_place(|| ()))
        .build()
        .unwrap();
    let lent = runtime.spawn(async {
        let panics = spawn(async { panic!("on purpose") });
        assert!(panics.await.unwrap_err().is_panic());
        crate::worker::context::with_core(|core| core.counters().annotated_calls())
    });
    assert_eq!(runtime.block_on(lent).unwrap(), Some(0));
}

#[test]
fn panic_in_place_goes_to_the_task() {
    let runtime = workers(1);
    let error =
        block_on(runtime.spawn(async { block_in_place(|| panic!("on purpose")) })).unwrap_err();
    assert!(error.is_panic());
    assert_eq!(block_on(runtime.spawn(async { 1 })).unwrap(), 1);
}

#[test]
fn runtime_end_waits_for_a_blocking_task_and_drops_others() {
    for _ in 0..50 {
        let runtime = workers(2);
        let (begun, wait) = (mpsc::channel(), mpsc::channel::<()>());
        let done = Arc::new(AtomicBool::new(false));
        let set = done.clone();
        let task = runtime.spawn(async move {
            block_in_place(|| {
                begun.0.send(()).unwrap();
                wait.1.recv().unwrap();
            });
            set.store(true, SeqCst);
            // The task waits for the first time, so it is in no list yet.
            pending::<()>().await;
        });
        begun.1.recv().unwrap();
        let waker = std::thread::spawn(move || {
            std::thread::yield_now();
            wait.0.send(()).unwrap();
        });
        drop(runtime);
        waker.join().unwrap();
        assert!(done.load(SeqCst));
        assert!(block_on(task).unwrap_err().is_cancelled());
    }
}

#[test]
fn a_runtime_dropped_by_a_task_that_lost_its_worker_ends() {
    let runtime = workers(1);
    let handle = runtime.handle().clone();
    let (sent, ended) = mpsc::channel();
    handle.spawn_detached(async move {
        let (sender, receiver) = mpsc::channel();
        spawn_detached(async move { sender.send(()).unwrap() });
        block_in_place(|| receiver.recv().unwrap());
        drop(runtime);
        sent.send(()).unwrap();
    });
    ended.recv_timeout(LONG).unwrap();
}

/// Fails if the thread that blocks keeps the core while the runtime closes.
#[test]
fn task_that_blocks_at_the_end_for_a_queued_task_ends() {
    for workers_of in [1, 2] {
        let runtime = workers(workers_of);
        let handle = runtime.handle().clone();
        let (sent, ended) = mpsc::channel();
        handle.spawn_detached(async move {
            let (sender, receiver) = mpsc::channel::<()>();
            spawn_detached(async move {
                let _sender = sender;
                pending::<()>().await;
            });
            runtime.shutdown_background();
            sent.send(block_in_place(|| receiver.recv())).unwrap();
        });
        let said = ended.recv_timeout(LONG).unwrap();
        assert!(said.is_err(), "what is dropped sends nothing");
    }
}

#[test]
fn task_that_yields_and_loses_its_worker_in_one_poll_goes_on() {
    let runtime = workers(1);
    let task = runtime.spawn(async {
        // The task is in a list already.
        yield_now().await;
        let mut waited = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            let waker = cx.waker().clone();
            spawn_detached(async move { waker.wake() });
            Poll::Pending
        })
        .await;
        let mut polls = 0;
        poll_fn(|cx| {
            polls += 1;
            if polls == 2 {
                return Poll::Ready(());
            }
            assert!(std::pin::pin!(yield_now()).poll(cx).is_pending());
            lose_the_core();
            Poll::Pending
        })
        .await;
    });
    in_time(|| block_on(task)).unwrap();
}

#[test]
fn yielded_task_that_takes_back_a_reoffered_core_is_polled() {
    // The third thread, which would accept the core that the second task offers, starts late.
    let (started, over) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let late = over.clone();
    let runtime = Builder::new()
        .workers(1)
        .on_thread_start(move || {
            let begun = std::time::Instant::now();
            let third = started.fetch_add(1, SeqCst) >= 2;
            while third && late.load(SeqCst) == 0 && begun.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
        .build()
        .unwrap();
    let (blocks, other_blocks) = mpsc::channel();
    let (done, is_done) = mpsc::channel();
    let (release, released) = mpsc::channel();
    runtime.spawn_detached(async move {
        spawn_detached(async move {
            block_in_place(|| {
                blocks.send(()).unwrap();
                let _ = released.recv_timeout(LONG);
            });
        });
        let (mut yielding, mut polls) = (Box::pin(yield_now()), 0);
        poll_fn(move |cx| {
            polls += 1;
            let polled = yielding.as_mut().poll(cx);
            if polls == 1 {
                block_in_place(|| other_blocks.recv().unwrap());
            }
            polled
        })
        .await;
        release.send(()).unwrap();
        done.send(()).unwrap();
    });
    let polled_again = is_done.recv_timeout(LONG);
    over.store(1, SeqCst);
    polled_again.expect("it is polled again");
}

#[test]
fn a_task_that_blocked_and_kept_its_core_waits_for_its_wake() {
    // A task that loses its core is polled once more, so that a worker lists it.
    let polls = std::iter::repeat_with(polls_of_one_that_blocks);
    let kept = polls.take(1_000).find(|&(_, kept)| kept);
    assert_eq!(kept, Some((2, true)));
}

/// Returns the number of polls of a task that blocks in its first poll and is woken once. Also
/// returns whether the task kept its core.
fn polls_of_one_that_blocks() -> (usize, bool) {
    let runtime = workers(1);
    let (polls, kept) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (counted, keeps) = (polls.clone(), kept.clone());
    let (wake, mut woken) = oneshot::channel::<()>();
    let task = runtime.spawn(poll_fn(move |cx| {
        if counted.fetch_add(1, SeqCst) == 0 {
            block_in_place(|| ());
            let has_core = crate::worker::context::with_core(|_| ()).is_some();
            keeps.store(usize::from(has_core), SeqCst);
        }
        std::pin::Pin::new(&mut woken).poll(cx)
    }));
    while polls.load(SeqCst) == 0 {
        std::thread::yield_now();
    }
    // Each of these tasks runs behind the task above. If a wrong requeue had queued that task a
    // second time, each of these would also run behind the second entry.
    for _ in 0..3 {
        block_on(runtime.spawn(yield_now())).unwrap();
    }
    wake.send(()).unwrap();
    block_on(task).unwrap().unwrap();
    (polls.load(SeqCst), kept.load(SeqCst) == 1)
}

#[test]
fn a_task_that_blocked_and_lost_its_core_waits_for_its_wake() {
    let runtime = workers(1);
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let (wake, mut woken) = oneshot::channel::<()>();
    let task = runtime.spawn(poll_fn(move |cx| {
        let polled = std::pin::Pin::new(&mut woken).poll(cx);
        match counted.fetch_add(1, SeqCst) {
            // After the task has waited once, it is in a list.
            0 => {
                let waker = cx.waker().clone();
                spawn_detached(async move { waker.wake() });
            }
            1 => lose_the_core(),
            _ => {}
        }
        polled
    }));
    while polls.load(SeqCst) < 2 {
        std::thread::yield_now();
    }
    // Each of these tasks runs behind the task above. If a wrong requeue had queued that task a
    // second time, each of these would also run behind the second entry. The sleep gives a poll
    // that lost its core time to end.
    for _ in 0..3 {
        block_on(runtime.spawn(yield_now())).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
    wake.send(()).unwrap();
    block_on(task).unwrap().unwrap();
    assert_eq!(polls.load(SeqCst), 3);
}

#[test]
fn budget_stays_with_a_poll_that_loses_its_worker() {
    let runtime = Builder::new()
        .workers(1)
        .budget(crate::Budget::new(10))
        .build()
        .unwrap();
    let left = spawn_unnudged(&runtime, async {
        for _ in 0..4 {
            coop_budget::consume().await;
        }
        let (sender, receiver) = mpsc::channel();
        spawn_detached(async move { sender.send(()).unwrap() });
        block_in_place(|| receiver.recv().unwrap());
        coop_budget::remaining()
    });
    assert_eq!(block_on(left).unwrap(), Some(6));
}

/// Fails if the closure runs with the budget of the poll that calls it.
#[test]
fn closure_in_place_ignores_an_exhausted_budget() {
    let runtime = Builder::new()
        .workers(1)
        .budget(crate::Budget::new(3))
        .build()
        .unwrap();
    let task = spawn_unnudged(&runtime, async {
        for _ in 0..3 {
            coop_budget::consume().await;
        }
        assert_eq!(coop_budget::remaining(), Some(0));
        block_in_place(|| futures::executor::block_on(coop_budget::consume()));
        coop_budget::remaining()
    });
    assert_eq!(in_time(|| block_on(task)).unwrap(), Some(0));
}

#[test]
fn closures_beyond_the_cap_wait_and_idle_threads_end() {
    let runtime = Builder::new()
        .workers(1)
        .blocking_threads(2)
        .blocking_keep_alive(Duration::from_millis(20))
        .build()
        .unwrap();
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let two = Arc::new(std::sync::Barrier::new(2));
    let closures: Vec<_> = (0..20)
        .map(|_| {
            let (most, now, two) = (most.clone(), now.clone(), two.clone());
            runtime.spawn_blocking(move || {
                most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                two.wait();
                now.fetch_sub(1, SeqCst);
            })
        })
        .collect();
    closures
        .into_iter()
        .for_each(|closure| block_on(closure).unwrap());
    assert_eq!(most.load(SeqCst), 2);
    until(|| runtime.snapshot().blocking_threads == 0);
    assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 1)).unwrap(), 1);
}

#[test]
fn closure_gets_a_thread_while_a_task_blocks_for_it() {
    let (sent, done) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = Builder::new()
            .workers(1)
            .blocking_threads(1)
            .build()
            .unwrap();
        let task = runtime.spawn(async {
            block_in_place(|| Handle::current().block_on(spawn_blocking(|| 7)).unwrap())
        });
        sent.send(runtime.block_on(task).unwrap()).unwrap();
    });
    assert_eq!(done.recv_timeout(LONG), Ok(7));
}

#[test]
fn offered_worker_requests_no_second_thread() {
    let (started, is_held) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(true)));
    let held = is_held.clone();
    let runtime = Builder::new()
        .workers(1)
        .on_thread_start(move || {
            let is_second = started.fetch_add(1, SeqCst) == 1;
            while is_second && held.load(SeqCst) {
                std::thread::yield_now();
            }
        })
        .build()
        .unwrap();
    let task = runtime.spawn(async {
        for _ in 0..1_000 {
            block_in_place(|| ());
        }
        Handle::current().snapshot().blocking_threads
    });
    let called = block_on(task);
    is_held.store(false, SeqCst);
    // The metric does not count the worker's own thread, as that thread has a job.
    assert_eq!(called.unwrap(), 1);
}

/// The monitor's thread cannot be started. The runtime goes on: each `syscall` hands its worker
/// over at once.
///
/// Fails if `build` returns the error, or leaves the core in the cell.
#[test]
fn runtime_whose_monitor_cannot_start_goes_on() {
    for at_once in [false, true] {
        let builder = Builder::new().workers(1).fail_at_monitor();
        let builder = if at_once {
            builder.monitor(true)
        } else {
            builder
        };
        let runtime = builder.build().unwrap();
        let task = runtime.spawn(async {
            let (sender, receiver) = std::sync::mpsc::channel();
            spawn_detached(async move { sender.send(7).unwrap() });
            crate::syscall(|| receiver.recv().unwrap())
        });
        assert_eq!(runtime.block_on(task).unwrap(), 7);
        let metrics = runtime.snapshot();
        assert_eq!((metrics.monitor_refusals, metrics.retakes), (1, 0));
        assert!(metrics.to_string().contains("monitor refusals 1"));
    }
}

/// Fails if a worker that never parks leaves the end of the recorder's pauses to a monitor whose
/// thread could not be started.
#[cfg(feature = "recorder")]
#[test]
fn recorder_goes_on_if_the_monitor_cannot_start() {
    let second = std::time::Duration::from_secs(1);
    let builder = Builder::new().workers(1).fail_at_monitor().monitor(true);
    let builder = builder.flight_recorder(second).flight_recorder_memory(0);
    let runtime = builder.build().unwrap();
    let tracer = runtime.handle().trace();
    let task = runtime.spawn(async move {
        let begun = std::time::Instant::now();
        // After each gap but the last one, the recorder has gone on.
        while tracer.capture().gaps().len() < 3 && begun.elapsed() < 20 * second {
            for _ in 0..10_000 {
                crate::yield_now().await;
            }
        }
        tracer.capture().gaps().len()
    });
    assert!(runtime.block_on(task).unwrap() >= 3);
}

/// Fails if the monitor does not learn of a call that has ended before it looks.
#[test]
fn annotated_calls_are_counted_for_the_monitor() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let handle = runtime.handle().clone();
    let calls = || {
        let handle = handle.clone();
        let task = runtime.spawn(async move {
            let subject = crate::monitor::report::subject(handle.shared(), 0);
            subject.unwrap().calls
        });
        runtime.block_on(task).unwrap()
    };
    assert_eq!(calls(), 0);
    let task = runtime.spawn(async { crate::syscall(|| {}) });
    runtime.block_on(task).unwrap();
    assert_eq!(calls(), 1);
    let task = runtime.spawn(async { block_in_place(|| {}) });
    runtime.block_on(task).unwrap();
    assert_eq!(calls(), 2);
}
