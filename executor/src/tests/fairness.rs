//! Tests of the order in which tasks run. The tests count ticks and polls. Most of them tick the
//! worker themselves, so they know which tasks are pushed between two ticks.
use super::*;
use crate::{Tick, Worker, worker::park::ThreadPark};

fn driven() -> (Runtime, Worker<ThreadPark>) {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    (runtime, workers.remove(0))
}

/// Ticks until there is nothing to run.
fn settle(worker: &mut Worker<ThreadPark>) {
    while worker.tick() == Tick::Ran {}
}

#[test]
fn task_in_the_injector_of_a_busy_worker_runs_within_61_ticks() {
    for warm_up in 0..130 {
        let (runtime, mut worker) = driven();
        for _ in 0..3 {
            runtime.spawn_detached(async {
                loop {
                    yield_now().await;
                }
            });
        }
        for _ in 0..warm_up + 3 {
            assert_eq!(worker.tick(), Tick::Ran);
        }
        let task = runtime.spawn(async {});
        let ticks = (1..).find(|_| {
            assert_eq!(worker.tick(), Tick::Ran);
            task.is_finished()
        });
        assert!(ticks.unwrap() <= 61, "{ticks:?} ticks, {warm_up} before");
        drop(runtime);
        worker.run();
    }
}

#[test]
fn injector_interval_is_that_of_the_builder() {
    let (runtime, mut workers) = Builder::new()
        .global_interval(7)
        .build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    runtime.spawn_detached(async {
        loop {
            yield_now().await;
        }
    });
    let _ = worker.tick();
    for _ in 0..20 {
        let task = runtime.spawn(async {});
        let ticks = (1..).find(|_| worker.tick() == Tick::Ran && task.is_finished());
        assert!(ticks.unwrap() <= 7, "{ticks:?}");
    }
}

#[test]
fn two_tasks_that_wake_each_other_yield_after_four_polls() {
    let (runtime, mut worker) = driven();
    let polls = Arc::new(AtomicUsize::new(0));
    let slots: [Arc<Mutex<Option<std::task::Waker>>>; 2] = Default::default();
    for me in [0, 1] {
        let (slots, polls) = (slots.clone(), polls.clone());
        runtime.spawn_detached(poll_fn(move |cx| {
            polls.fetch_add(1, SeqCst);
            *slots[me].lock().unwrap() = Some(cx.waker().clone());
            if let Some(other) = slots[1 - me].lock().unwrap().take() {
                other.wake();
            }
            Poll::<()>::Pending
        }));
    }
    let third = Arc::new(Mutex::new(Vec::new()));
    let (seen, counted) = (third.clone(), polls.clone());
    runtime.spawn_detached(async move {
        loop {
            seen.lock().unwrap().push(counted.load(SeqCst));
            yield_now().await;
        }
    });
    // The worker takes the third task out of the injector at the interval, if not before.
    for _ in 0..161 {
        assert_eq!(worker.tick(), Tick::Ran);
    }
    let turns = third.lock().unwrap();
    assert!(turns.len() > 40, "{turns:?}");
    // Between two turns of the third task, the worker polls one task from the ring, and at most
    // three from the slot.
    assert!(
        turns.windows(2).all(|pair| pair[1] - pair[0] <= 4),
        "{turns:?}"
    );
    assert!(
        turns.windows(2).any(|pair| pair[1] - pair[0] == 4),
        "{turns:?}"
    );
    for slot in &slots {
        slot.lock().unwrap().take();
    }
}

#[test]
fn self_waking_and_yielding_tasks_starve_no_ready_task() {
    let (runtime, mut worker) = driven();
    runtime.spawn_detached(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    runtime.spawn_detached(async {
        loop {
            yield_now().await;
        }
    });
    let turns = Arc::new(AtomicUsize::new(0));
    let count = turns.clone();
    runtime.spawn_detached(async move {
        loop {
            count.fetch_add(1, SeqCst);
            yield_now().await;
        }
    });
    let mut ticks = |n| (0..n).for_each(|_| assert_eq!(worker.tick(), Tick::Ran));
    // After these ticks the injector is empty.
    ticks(122);
    let before = turns.load(SeqCst);
    ticks(300);
    assert_eq!(turns.load(SeqCst) - before, 100);
}

#[test]
fn remote_spawns_and_tasks_that_are_always_ready_both_run() {
    in_time(|| {
        let runtime = workers(2);
        let stop = Arc::new(AtomicBool::new(false));
        let here = || Some(std::thread::current().id());
        let hogs: [_; 2] = Default::default();
        let hogs = hogs.map(|seen: Arc<(AtomicUsize, Mutex<_>)>| {
            let (stop, see) = (stop.clone(), seen.clone());
            let hog = runtime.spawn(async move {
                while !stop.load(SeqCst) {
                    *see.1.lock().unwrap() = here();
                    see.0.fetch_add(1, SeqCst);
                    yield_now().await;
                }
            });
            (seen, hog)
        });
        let [one, other] = hogs.each_ref().map(|(seen, _)| seen);
        let thread = |hog: &Mutex<Option<std::thread::ThreadId>>| *hog.lock().unwrap();
        // Waits until each hog runs on a worker of its own.
        while thread(&one.1).is_none() || thread(&one.1) == thread(&other.1) {
            std::thread::yield_now();
        }
        let before = [one, other].map(|seen| seen.0.load(SeqCst));
        let go_on = || (one.0.load(SeqCst) > before[0]) && (other.0.load(SeqCst) > before[1]);
        let mut spawned = 0;
        while spawned < 100 || !go_on() {
            block_on(runtime.spawn(async {})).unwrap();
            spawned += 1;
        }
        stop.store(true, SeqCst);
        for (_, hog) in hogs {
            block_on(hog).unwrap();
        }
    });
}

#[test]
fn without_the_slot_five_spawns_run_in_order() {
    let (runtime, mut workers) = Builder::new()
        .lifo_slot(false)
        .build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    runtime.spawn_detached(async move {
        for i in 1..=5 {
            let order = order.clone();
            spawn_detached(async move { order.lock().unwrap().push(i) });
        }
    });
    settle(&mut worker);
    assert_eq!(*seen.lock().unwrap(), [1, 2, 3, 4, 5]);
    assert_eq!(runtime.snapshot().lifo_hits, 0);
}

/// Spawns a child, which goes into the slot of its parent's worker. Returns whether the child runs
/// during the parent's poll. That poll spins until the child has run.
async fn child_runs_meanwhile() -> bool {
    let ran = Arc::new(AtomicBool::new(false));
    let set = ran.clone();
    let child = spawn(async move { set.store(true, SeqCst) });
    let begun = std::time::Instant::now();
    while !ran.load(SeqCst) && begun.elapsed() < LONG {
        std::hint::spin_loop();
    }
    let in_time = ran.load(SeqCst);
    child.await.unwrap();
    in_time
}

#[test]
fn task_in_the_slot_during_a_long_poll_is_stolen() {
    let runtime = workers(2);
    let parent = runtime.spawn(child_runs_meanwhile());
    assert!(block_on(parent).unwrap(), "it waited for its parent's poll");
    assert_eq!(runtime.snapshot().slot_steals, 1);
}

#[test]
fn task_in_the_slot_of_a_driven_worker_is_stolen() {
    let (runtime, workers) = Builder::new().build_driven([ThreadPark::new(), ThreadPark::new()]);
    let workers: Vec<_> = workers
        .into_iter()
        .map(|worker| std::thread::spawn(move || worker.run()))
        .collect();
    let parent = runtime.spawn(child_runs_meanwhile());
    assert!(block_on(parent).unwrap(), "it waited for its parent's poll");
    assert_eq!(runtime.snapshot().slot_steals, 1);
    drop(runtime);
    for worker in workers {
        worker.join().unwrap();
    }
}

#[test]
fn an_idle_runtime_has_no_wake_ups() {
    let runtime = Builder::new().workers(2).build().unwrap();
    runtime
        .block_on(runtime.spawn(async { spawn(async {}).await.unwrap() }))
        .unwrap();
    // Waits until the watch of the slots is over.
    until(|| {
        let before = runtime.snapshot();
        std::thread::sleep(Duration::from_millis(300));
        runtime.snapshot() == before
    });
}

#[test]
fn a_driven_worker_that_is_dropped_ends_its_runtime() {
    let (runtime, mut worker) = driven();
    let waiting = runtime.spawn(pending::<()>());
    let queued = runtime.spawn(async {});
    let _ = worker.tick();
    drop(worker);
    assert!(block_on(waiting).unwrap_err().is_cancelled());
    assert!(queued.is_finished());
    assert!(
        block_on(runtime.spawn(async {}))
            .unwrap_err()
            .is_cancelled()
    );
}

#[test]
fn driven_workers_of_one_thread_end_one_by_one() {
    let (runtime, mut workers) =
        Builder::new().build_driven([ThreadPark::new(), ThreadPark::new()]);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            runtime.spawn(async {
                loop {
                    yield_now().await;
                }
            })
        })
        .collect();
    for _ in 0..100 {
        for worker in &mut workers {
            let _ = worker.tick();
        }
    }
    drop(runtime);
    let mut going = 2;
    while going > 0 {
        let ticks = workers.iter_mut().map(Worker::tick);
        going = ticks.filter(|tick| *tick != Tick::Ended).count();
    }
    tasks.into_iter().for_each(|task: crate::JoinHandle<()>| {
        assert!(block_on(task).unwrap_err().is_cancelled())
    });
}

#[test]
fn join_handles_that_are_ready_charge_the_budget() {
    let runtime = Builder::new()
        .workers(1)
        .budget(crate::Budget::new(10))
        .build()
        .unwrap();
    let done = || async {
        let tasks: Vec<_> = (0..100)
            .map(|_| [spawn(async {}), spawn_blocking(|| ())])
            .collect();
        while !tasks.as_flattened().iter().all(|task| task.is_finished()) {
            yield_now().await;
        }
        tasks.into_iter().flatten()
    };
    let forced = || runtime.snapshot().forced_yields;
    let one_by_one = runtime.spawn(async move {
        for task in done().await {
            task.await.unwrap();
        }
    });
    block_on(one_by_one).unwrap();
    let after_handles = forced();
    assert!(after_handles >= 19, "{after_handles}");
    let in_a_set = runtime.spawn(async move {
        let set: task_set::JoinSet<()> = done().await.collect();
        set.join_all().await.unwrap().len()
    });
    assert_eq!(block_on(in_a_set).unwrap(), 200);
    assert!(forced() >= after_handles + 19, "{}", forced());
}

#[test]
fn exhausted_budget_lets_a_task_from_outside_run_next() {
    let (runtime, mut workers) = Builder::new()
        .budget(crate::Budget::new(1))
        .build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    runtime.spawn_detached(async {
        loop {
            coop_budget::consume().await;
        }
    });
    for _ in 0..100 {
        assert_eq!(worker.tick(), Tick::Ran);
        let task = runtime.spawn(async {});
        assert_eq!(worker.tick(), Tick::Ran);
        assert!(task.is_finished());
    }
}

/// Fails if a push from outside does not nudge, or a poll runs without the worker's slice.
#[test]
fn push_from_outside_ends_a_poll_at_its_next_operation() {
    let (runtime, mut workers) = Builder::new()
        .budget(crate::Budget::new(1_000))
        .build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    let (late, handle) = (Arc::new(Mutex::new(Vec::new())), runtime.handle().clone());
    let late_here = late.clone();
    runtime.spawn_detached(async move {
        let operations = Arc::new(AtomicUsize::new(0));
        loop {
            coop_budget::consume().await;
            let now = operations.fetch_add(1, SeqCst);
            // This is long after the last push, so that the worker takes nudges again.
            if now % 3_000 == 2_500 {
                let (handle, late, operations) =
                    (handle.clone(), late_here.clone(), operations.clone());
                let outside = move || {
                    handle.spawn_detached(async move {
                        late.lock().unwrap().push(operations.load(SeqCst) - now - 1);
                    });
                };
                std::thread::spawn(outside).join().unwrap();
            }
        }
    });
    while late.lock().unwrap().len() < 10 {
        assert_eq!(worker.tick(), Tick::Ran);
    }
    assert_eq!(*late.lock().unwrap(), [0; 10], "operations after the push");
    drop(runtime);
    worker.run();
}

/// A thread pushes before each operation of a task. The task still completes an operation in about
/// every second poll or more often, with any interval and in any scope.
///
/// Fails if a slice takes every nudge, or if the worker does not learn of an operation that yielded
/// in an inner scope.
#[test]
fn task_under_constant_nudges_makes_progress() {
    for (interval, scoped) in [
        (61, false),
        (1, false),
        (61, true),
        (1, true),
        (u32::MAX, true),
    ] {
        let (runtime, mut workers) = Builder::new()
            .global_interval(interval)
            .build_driven([ThreadPark::new()]);
        let mut worker = workers.remove(0);
        let (done, ran) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let (counted, runs, handle) = (done.clone(), ran.clone(), runtime.handle().clone());
        let task = async move {
            loop {
                let (handle, runs) = (handle.clone(), runs.clone());
                let pushed = async move {
                    runs.fetch_add(1, SeqCst);
                };
                std::thread::spawn(move || handle.spawn_detached(pushed))
                    .join()
                    .unwrap();
                coop_budget::consume().await;
                counted.fetch_add(1, SeqCst);
            }
        };
        if scoped {
            runtime.spawn_detached(coop_budget::scope(crate::Budget::DEFAULT, task));
        } else {
            runtime.spawn_detached(task);
        }
        for _ in 0..100 {
            let _ = worker.tick();
        }
        let (done, ran) = (done.load(SeqCst), ran.load(SeqCst));
        // At an interval of 1, each look finds nothing, so the next push nudges again. Then the
        // task completes one operation in two polls.
        let least = if interval == 1 { 40 } else { 100 };
        assert!(
            done >= least && ran >= 40,
            "{done}, {ran} of those outside; {interval} {scoped}"
        );
        drop(runtime);
        worker.run();
    }
}

/// Returns the flag by which the only worker is nudged.
fn nudge_flag(runtime: &Runtime) -> &coop_budget::Preempt {
    runtime.handle().shared().slices.of(0)
}

/// Fails if a nudge is taken between the polls of a chain.
#[test]
fn push_from_outside_cuts_no_chain_without_operations() {
    let (runtime, mut worker) = driven();
    fn link() {
        spawn_detached(async { link() });
    }
    runtime.spawn_detached(async { link() });
    let _ = worker.tick();
    let hits = |worker: &mut Worker<ThreadPark>| {
        let before = runtime.snapshot().lifo_hits;
        for _ in 0..40 {
            assert_eq!(worker.tick(), Tick::Ran);
        }
        runtime.snapshot().lifo_hits - before
    };
    let alone = hits(&mut worker);
    nudge_flag(&runtime).open_slice();
    runtime.spawn_detached(async {});
    assert!(!nudge_flag(&runtime).nudge(), "it is nudged");
    assert!(hits(&mut worker) + 4 >= alone && alone > 40, "{alone}");
    runtime.shutdown_background();
    worker.run();
}

/// Fails if one nudge makes more than one operation yield.
#[test]
fn nested_block_on_after_a_nudge_yields_once() {
    let (runtime, mut worker) = driven();
    let handle = runtime.handle().clone();
    let task = runtime.spawn(async move {
        handle.shared().slices.of(0).open_slice();
        let forced = || Handle::current().snapshot().forced_yields;
        let (before, push) = (forced(), move || handle.spawn_detached(async {}));
        std::thread::spawn(push).join().unwrap();
        block_on(coop_budget::consume());
        forced() - before
    });
    in_time(move || while worker.tick() == Tick::Ran {});
    assert_eq!(block_on(task).unwrap(), 1);
}

#[test]
fn requeued_task_outlives_a_share_of_the_injector() {
    let runtime = Builder::new()
        .workers(1)
        .budget(crate::Budget::new(1))
        .build()
        .unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let is_over = over.clone();
    let spends = runtime.spawn(async move {
        while !is_over.load(SeqCst) {
            coop_budget::consume().await;
        }
    });
    for _ in 0..1_000 {
        block_on(runtime.spawn(yield_now())).unwrap();
    }
    over.store(true, SeqCst);
    block_on(spends).unwrap();
}

/// Waker that counts its wakes, and passes none on.
struct Counts(AtomicUsize);

impl std::task::Wake for Counts {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn yield_with_another_waker_wakes_that_waker() {
    let runtime = workers(1);
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let waits = runtime.spawn(async move {
        let part = std::sync::Arc::new(Counts(AtomicUsize::new(0)));
        let waker = std::task::Waker::from(part.clone());
        poll_fn(|cx| {
            if counted.fetch_add(1, SeqCst) > 0 {
                return Poll::Ready(());
            }
            let mut part = std::task::Context::from_waker(&waker);
            assert!(std::pin::pin!(yield_now()).poll(&mut part).is_pending());
            // The first task below yields with the waker of the second. So the second task is
            // polled again before the first one.
            let (sender, receiver) = mpsc::channel::<std::task::Waker>();
            let waker = cx.waker().clone();
            spawn_detached(async move {
                {
                    let other = receiver.recv().unwrap();
                    let mut other = std::task::Context::from_waker(&other);
                    assert!(std::pin::pin!(yield_now()).poll(&mut other).is_pending());
                }
                yield_now().await;
                waker.wake();
            });
            // The second task goes into the slot, and so runs before the first.
            let mut sender = Some(sender);
            spawn_detached(poll_fn(move |cx| match sender.take() {
                Some(sender) => {
                    sender.send(cx.waker().clone()).unwrap();
                    Poll::Pending
                }
                None => Poll::Ready(()),
            }));
            Poll::Pending
        })
        .await;
        part.0.load(SeqCst)
    });
    assert_eq!(block_on(waits).unwrap(), 1);
    assert_eq!(polls.load(SeqCst), 2);
    until(|| runtime.snapshot().live_tasks == 0);
}

/// Fails if the worker looks at the injector only at a refused operation, or after 61 ticks.
#[test]
fn push_beside_polls_without_operations_waits_for_one_poll() {
    let (runtime, mut worker) = driven();
    runtime.spawn_detached(async {
        loop {
            yield_now().await;
        }
    });
    assert_eq!(worker.tick(), Tick::Ran);
    for ticks in 0..200 {
        // The look that found the last task has made the slice ignore nudges.
        nudge_flag(&runtime).open_slice();
        let task = runtime.spawn(async {});
        assert_eq!(worker.tick(), Tick::Ran);
        assert!(task.is_finished(), "after {ticks} ticks");
    }
    drop(runtime);
    worker.run();
}

/// A thread pushes in each poll, and each poll takes longer than a whole interval should take.
///
/// Fails if the interval stays at 61 ticks.
#[test]
fn pushes_beside_long_polls_wait_for_few_polls() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let (polls, waited) = <(Arc<AtomicUsize>, Arc<Mutex<Vec<usize>>>)>::default();
    let (counted, waits, handle) = (polls.clone(), waited.clone(), runtime.handle().clone());
    let hog = runtime.spawn(async move {
        // The interval may grow after each poll that was short.
        for now in 1..=40 {
            counted.store(now, SeqCst);
            let (polls, waits, handle) = (counted.clone(), waits.clone(), handle.clone());
            let outside = move || {
                handle.spawn_detached(async move {
                    waits.lock().unwrap().push(polls.load(SeqCst) - now);
                });
            };
            std::thread::spawn(outside).join().unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1));
            yield_now().await;
        }
    });
    block_on(hog).unwrap();
    let metrics = runtime.snapshot();
    drop(runtime);
    let waited = waited.lock().unwrap();
    // Before the first reading of the clock there may be one interval of the usual length. If the
    // thread loses its CPU while it polls a pushed task, that poll counts as long. Then the next
    // pushed task waits for the hog.
    let at_once = waited.iter().filter(|&&polls| polls == 0).count();
    assert!(at_once > 20, "{waited:?}");
    assert!(metrics.remote_waits.count() > 10, "{metrics}");
    let millisecond = std::time::Duration::from_millis(1);
    assert!(metrics.longest_remote_wait >= millisecond, "{metrics}");
}

/// When the burst comes, each worker is in a poll of 50 ms, and as many tasks with such polls wait
/// in the injector. So the burst waits for two polls of each worker, or for three where a worker
/// takes a task with such polls again before the rest of the burst. The median of ten bursts
/// counts: a worker whose thread loses its CPU for long in a pushed task polls one of its own tasks
/// next.
///
/// Fails if a worker takes a task with a long poll from the injector before each pushed task that
/// it has in its ring. Then a burst waits for six polls and more.
#[test]
fn burst_beside_polls_of_50_ms_waits_for_few_polls() {
    const TASKS: usize = 100;
    let builder = Builder::new().workers(2);
    let builder = builder.on_stall(|_| {});
    let runtime = builder.build().unwrap();
    let (begun, ends) = <(Arc<AtomicUsize>, Arc<AtomicBool>)>::default();
    for _ in 0..4 {
        let (begun, ends) = (begun.clone(), ends.clone());
        runtime.spawn_detached(async move {
            while !ends.load(SeqCst) {
                begun.fetch_add(1, SeqCst);
                std::thread::sleep(std::time::Duration::from_millis(50));
                yield_now().await;
            }
        });
    }
    let bursts = (0..10).map(|_| {
        let before = begun.load(SeqCst);
        until(|| begun.load(SeqCst) >= before + 4);
        let (ran, last) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        for _ in 0..TASKS {
            let (begun, ran, last) = (begun.clone(), ran.clone(), last.clone());
            let pushed = begun.load(SeqCst);
            runtime.spawn_detached(async move {
                last.fetch_max(begun.load(SeqCst) - pushed, SeqCst);
                ran.fetch_add(1, SeqCst);
            });
        }
        until(|| ran.load(SeqCst) == TASKS);
        last.load(SeqCst)
    });
    let mut waited: Vec<_> = bursts.collect();
    ends.store(true, SeqCst);
    waited.sort_unstable();
    assert!(waited[5] <= 6, "{waited:?}");
}

/// A task with long polls is requeued at the injector, while the worker has short tasks.
///
/// Fails if each look takes the long task, so that the worker polls this task before each of its
/// own.
#[test]
fn long_task_of_the_injector_leaves_time_to_own_tasks() {
    const TASKS: usize = 100;
    let builder = Builder::new().workers(1);
    let builder = builder.monitor(false);
    let runtime = builder.build().unwrap();
    let (polls, ended) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let (counted, all, handle) = (polls.clone(), ended.clone(), runtime.handle().clone());
    let long = async move {
        while all.load(SeqCst) < TASKS {
            counted.fetch_add(1, SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(2));
            // This is the request that the monitor would make. Because of it the worker requeues
            // this task at the injector.
            handle.shared().slices.of(0).request();
            yield_now().await;
        }
    };
    let all = ended.clone();
    let first = runtime.spawn(async move {
        let long = crate::spawn(long);
        for _ in 0..TASKS {
            let ended = all.clone();
            spawn_detached(async move {
                ended.fetch_add(1, SeqCst);
            });
        }
        long.await.unwrap();
    });
    block_on(first).unwrap();
    // If the thread loses its CPU in a short task, that time counts as time of the worker's own
    // tasks.
    assert!(polls.load(SeqCst) < TASKS / 2, "{polls:?}");
}

/// Two tasks wake each other without end, and each poll ends its slice, as a monitor does if polls
/// are long.
///
/// Fails if a worker whose slice is over looks neither for timers nor at the injector while it has
/// tasks of its own.
#[test]
#[cfg(feature = "net")]
fn ended_slices_do_not_hold_up_timers_and_the_injector() {
    use std::{future::poll_fn, task::Poll, time::Duration};
    let builder = Builder::new().workers(1);
    let builder = builder.monitor(false);
    let runtime = builder.build().unwrap();
    let over = Arc::new(AtomicBool::new(false));
    let wakers = Arc::new([const { Mutex::new(None::<std::task::Waker>) }; 2]);
    let (begun, has_begun) = mpsc::channel();
    let pair = [0, 1].map(|own| {
        let (over, wakers, begun) = (over.clone(), wakers.clone(), begun.clone());
        let handle = runtime.handle().clone();
        let mut polls = 0;
        runtime.spawn(poll_fn(move |cx| {
            *wakers[own].lock().unwrap() = Some(cx.waker().clone());
            let other = wakers[1 - own].lock().unwrap().take();
            other.into_iter().for_each(std::task::Waker::wake);
            handle.shared().slices.of(0).request();
            polls += 1;
            if polls == 100 {
                begun.send(()).unwrap();
            }
            match over.load(SeqCst) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        }))
    });
    has_begun.recv().unwrap();
    let sleeper = runtime.spawn(net_driver::time::sleep(Duration::from_millis(1)));
    runtime.block_on(sleeper).unwrap();
    over.store(true, SeqCst);
    for task in pair {
        runtime.block_on(task).unwrap();
    }
}

/// Fails if the future goes on after the first of the tasks.
#[test]
fn yield_in_block_on_lets_all_ready_tasks_run() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (sender, receiver) = oneshot::channel::<()>();
        let woken = spawn(receiver);
        let tasks: Vec<_> = (0..5).map(|_| spawn(async {})).collect();
        yield_now().await;
        assert!(tasks.iter().all(|task| task.is_finished()));
        sender.send(()).unwrap();
        let behind = spawn(async {});
        yield_now().await;
        assert!(woken.is_finished() && behind.is_finished());
    });
}

/// Fails if a wake by a task lets the future overtake the tasks that were ready before.
#[test]
fn wake_of_block_on_waits_for_the_ready_tasks() {
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let first = spawn(async {});
        let others: Vec<_> = (0..5).map(|_| spawn(async {})).collect();
        first.await.unwrap();
        assert!(others.iter().all(|task| task.is_finished()));
    });
}

/// Fails if tasks that are always ready keep the future from its poll.
#[test]
fn woken_future_of_block_on_is_polled_within_61_ticks() {
    let runtime = Builder::new_current_thread().build().unwrap();
    let polls = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let polls = polls.clone();
        runtime.spawn_detached(async move {
            loop {
                polls.fetch_add(1, SeqCst);
                yield_now().await;
            }
        });
    }
    runtime.block_on(async {
        for _ in 0..20 {
            let before = polls.load(SeqCst);
            yield_now().await;
            let between = polls.load(SeqCst) - before;
            assert!((1..=61).contains(&between), "{between}");
        }
    });
}
