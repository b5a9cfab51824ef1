//! Tests of the executor end to end, on real threads.
use crate::{
    Builder, Handle, Runtime, UnhandledPanic, block_in_place, spawn, spawn_blocking,
    spawn_detached, yield_now,
};
use futures::{channel::oneshot, executor::block_on, future::join_all};
use std::{
    future::{Future, pending, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::Poll,
    time::Duration,
};

mod abandoned;
mod blocks;
mod ends;
mod exits;
mod fairness;
mod local;
mod metrics;
mod ready;
mod scopes;
mod sleeps;

/// Limit of a wait. Even the busiest machine needs less, so an operation that takes longer hangs.
const LONG: Duration = Duration::from_secs(600);

/// Waits until `holds` returns true.
fn until(mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "it never held");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn workers(n: usize) -> Runtime {
    Builder::new().workers(n).build().unwrap()
}

/// Spawns a task whose own spawn causes no nudge. The spawn of a task from outside may nudge the
/// worker, and that nudge would make an operation of the task yield.
///
/// An outer task takes the nudge of its own spawn, and then spawns the task on its worker.
fn spawn_unnudged<T: Send + 'static>(
    runtime: &Runtime,
    future: impl Future<Output = T> + Send + 'static,
) -> task_header::JoinHandle<T> {
    let (spawned, wait) = mpsc::channel();
    let task = runtime.spawn(async move {
        wait.recv().unwrap();
        coop_budget::consume().await;
        spawn(async {
            // In the slot this task shares the budget of the outer task. After a yield it has a
            // full budget of its own.
            yield_now().await;
            future.await
        })
        .await
        .unwrap()
    });
    spawned.send(()).unwrap();
    task
}

/// Runs `f` in a thread, and fails if it hangs.
fn in_time<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let result = f();
        let _ = sender.send(());
        result
    });
    if receiver.recv_timeout(LONG) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it hangs");
    }
    thread.join().unwrap()
}

/// Blocks in place until another task of the worker has run. By then another thread has the core.
fn lose_the_core() {
    let (sender, receiver) = mpsc::channel();
    spawn_detached(async move { sender.send(()).unwrap() });
    block_in_place(|| receiver.recv().unwrap());
}

#[test]
fn five_spawns_of_one_task_run_last_first_then_in_order() {
    let runtime = workers(1);
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = order.clone();
    let parent = runtime.spawn(async move {
        let children: Vec<_> = (1..=5)
            .map(|i| {
                let order = order.clone();
                spawn(async move { order.lock().unwrap().push(i) })
            })
            .collect();
        join_all(children).await;
    });
    block_on(parent).unwrap();
    assert_eq!(*seen.lock().unwrap(), [5, 1, 2, 3, 4]);
}

#[test]
fn a_panic_stays_in_its_task() {
    let runtime = workers(1);
    let error = runtime
        .block_on(runtime.spawn(async { panic!("on purpose") }))
        .unwrap_err();
    assert!(error.is_panic());
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    let error = runtime
        .block_on(runtime.spawn_blocking(|| panic!("on purpose")))
        .unwrap_err();
    assert!(error.is_panic());
}

#[test]
fn an_abort_ends_a_task_that_waits() {
    let runtime = workers(2);
    let task = runtime.spawn(pending::<()>());
    task.abort();
    assert!(block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn shutdown_drops_every_future_once_on_a_worker() {
    struct Drops(Arc<Mutex<Vec<String>>>);
    impl Drop for Drops {
        fn drop(&mut self) {
            let name = std::thread::current().name().unwrap_or("?").to_owned();
            self.0.lock().unwrap().push(name);
        }
    }
    let drops = Arc::new(Mutex::new(Vec::new()));
    let runtime = workers(2);
    let (started, ready) = mpsc::channel();
    for _ in 0..100 {
        let (held, started) = (Drops(drops.clone()), started.clone());
        runtime.spawn_detached(async move {
            let _held = held;
            started.send(()).unwrap();
            pending::<()>().await;
        });
    }
    for _ in 0..100 {
        ready.recv().unwrap();
    }
    let handle = runtime.handle().clone();
    drop(runtime);
    let drops = drops.lock().unwrap();
    assert_eq!(drops.len(), 100);
    assert!(
        drops.iter().all(|name| name.starts_with("selvedge-")),
        "{drops:?}"
    );
    assert!(block_on(handle.spawn(async {})).unwrap_err().is_cancelled());
    assert!(
        block_on(handle.spawn_blocking(|| ()))
            .unwrap_err()
            .is_cancelled()
    );
}

#[test]
fn a_runtime_dropped_by_its_own_task_ends() {
    let runtime = workers(2);
    let handle = runtime.handle().clone();
    let (sent, ended) = mpsc::channel();
    handle.spawn_detached(async move {
        drop(runtime);
        sent.send(()).unwrap();
    });
    ended.recv_timeout(LONG).unwrap();
}

#[test]
fn a_waker_outlives_its_runtime() {
    let runtime = workers(1);
    let (sender, receiver) = mpsc::channel();
    runtime.spawn_detached(poll_fn(move |cx| {
        sender.send(cx.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    let waker = receiver.recv().unwrap();
    drop(runtime);
    waker.wake_by_ref();
    drop(waker);
}

#[test]
fn blocking_closures_run_beside_tasks_and_are_waited_for() {
    let done = Arc::new(AtomicUsize::new(0));
    let runtime = workers(1);
    let sum = runtime.block_on(async {
        let tasks: Vec<_> = (0..20).map(|i| spawn_blocking(move || i)).collect();
        join_all(tasks)
            .await
            .into_iter()
            .map(Result::unwrap)
            .sum::<i32>()
    });
    assert_eq!(sum, 190);
    let (sent, begun) = mpsc::channel();
    let count = done.clone();
    let task = runtime.spawn_blocking(move || {
        sent.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        count.fetch_add(1, SeqCst);
    });
    begun.recv().unwrap();
    drop(runtime);
    assert_eq!(done.load(SeqCst), 1);
    block_on(task).unwrap();
}

#[test]
fn each_task_runs_once_however_it_is_spawned() {
    const TASKS: usize = 20_000;
    let runtime = Builder::new().workers(2).ring_capacity(16).build().unwrap();
    let ran = Arc::new(AtomicUsize::new(0));
    runtime.block_on(async {
        let outer: Vec<_> = (0..20)
            .map(|_| {
                let ran = ran.clone();
                spawn(async move {
                    for i in 0..TASKS / 20 {
                        let ran = ran.clone();
                        spawn_detached(async move {
                            if i % 3 == 0 {
                                yield_now().await;
                            }
                            ran.fetch_add(1, SeqCst);
                        });
                        if i % 7 == 0 {
                            yield_now().await;
                        }
                    }
                })
            })
            .collect();
        join_all(outer)
            .await
            .into_iter()
            .for_each(|task| task.unwrap());
        while ran.load(SeqCst) < TASKS {
            spawn(yield_now()).await.unwrap();
        }
    });
    let metrics = runtime.metrics();
    assert_eq!(ran.load(SeqCst), TASKS);
    assert!(metrics.spawned >= TASKS as u64 + 20, "{metrics}");
    assert!(metrics.overflows > 0, "{metrics}");
}

#[test]
fn messages_cross_between_workers_and_outside() {
    let runtime = workers(2);
    for _ in 0..200 {
        let pairs: Vec<_> = (0..20)
            .map(|i| {
                let (ping, pinged) = oneshot::channel();
                let (pong, ponged) = oneshot::channel();
                let one = runtime.spawn(async move {
                    ping.send(i).unwrap();
                    ponged.await.unwrap()
                });
                runtime
                    .spawn_detached(async move { pong.send(pinged.await.unwrap() + 1).unwrap() });
                one
            })
            .collect();
        for (i, pair) in pairs.into_iter().enumerate() {
            assert_eq!(block_on(pair).unwrap(), i + 1);
        }
    }
}

#[test]
fn wakes_from_outside_racing_the_drop_of_the_runtime_end() {
    for round in 0..200 {
        let runtime = workers(2);
        let (sender, receiver) = oneshot::channel::<()>();
        let task = runtime.spawn(async move { receiver.await.is_ok() });
        let other = std::thread::spawn(move || {
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            let _ = sender.send(());
        });
        drop(runtime);
        other.join().unwrap();
        match block_on(task) {
            Ok(received) => assert!(received),
            Err(error) => assert!(error.is_cancelled()),
        }
    }
}

#[test]
fn block_on_in_a_task_panics_with_a_reason() {
    let runtime = workers(1);
    let handle = runtime.handle().clone();
    let error = runtime
        .block_on(runtime.spawn(async move { handle.block_on(async {}) }))
        .unwrap_err();
    assert!(
        error.to_string().contains("block_on was called in a task"),
        "{error}"
    );
    assert!(Handle::try_current().is_err());
    assert!(runtime.block_on(async { Handle::try_current().is_ok() }));
}

#[test]
fn a_blocking_closure_is_in_its_runtime_and_may_block_on() {
    let runtime = workers(1);
    let task = runtime.spawn_blocking(|| {
        let task = spawn(async { 7 });
        let handle = Handle::current();
        assert_eq!(handle.block_on(task).unwrap(), 7);
        handle.block_on(async { spawn(async { 8 }).await.unwrap() })
    });
    assert_eq!(block_on(task).unwrap(), 8);
}

#[test]
fn yield_now_in_block_on_completes() {
    fn assert_future<F: Future>(_: &F) {}
    let yielding = yield_now();
    assert_future(&yielding);
    workers(1).block_on(yielding);
}

#[test]
fn a_budget_ends_polls_and_is_counted() {
    let runtime = Builder::new()
        .workers(1)
        .budget(crate::Budget::new(10))
        .build()
        .unwrap();
    let counted = spawn_unnudged(&runtime, async {
        let forced = || Handle::current().metrics().forced_yields;
        let before = forced();
        for _ in 0..100 {
            coop_budget::consume().await;
        }
        forced() - before
    });
    assert_eq!(runtime.block_on(counted).unwrap(), 9);
}

/// The child computes on one worker until the other worker has run the parent, which yielded.
#[test]
fn task_that_yields_to_its_child_is_stolen_by_an_idle_worker() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let (yielded, waited) = (Arc::new(AtomicBool::new(false)), std::time::Instant::now());
    let parent = runtime.spawn({
        let yielded = yielded.clone();
        async move {
            let child = crate::spawn(async move {
                while !yielded.load(SeqCst) && waited.elapsed() < LONG {
                    std::hint::spin_loop();
                }
                yielded.load(SeqCst)
            });
            crate::yield_now().await;
            (child,)
        }
    });
    let child = runtime.block_on(async move {
        let child = parent.await.unwrap();
        yielded.store(true, SeqCst);
        child.0.await
    });
    assert!(child.unwrap(), "the parent waited for its child");
}

#[test]
#[should_panic(expected = "NUL")]
fn thread_name_with_a_nul_panics() {
    let _ = Builder::new().thread_name("a\0b");
}

#[test]
fn blank_name_of_a_runtime_panics_at_the_caller() {
    for name in ["", " ", "\t\n"] {
        let panics: [fn(&str); 2] = [
            |name| drop(Builder::new().name(name)),
            |name| {
                drop(Builder::new_current_thread().name(name));
            },
        ];
        for panics in panics {
            let caught = std::panic::catch_unwind(|| panics(name)).unwrap_err();
            let message = caught.downcast::<String>().unwrap();
            assert!(message.contains("not white space"), "{message}");
        }
    }
    let runtime = Builder::new().name(" a ").workers(1).build().unwrap();
    assert_eq!(runtime.handle().name(), Some(" a "));
}

/// Fails if a builder takes a number with which a runtime cannot work.
#[test]
fn builder_refuses_numbers_that_stop_a_runtime() {
    let refused: [fn() -> Builder; 7] = [
        || Builder::new().workers(0),
        || Builder::new().blocking_threads(0),
        || Builder::new().ring_capacity(0),
        || Builder::new().ring_capacity(1),
        || Builder::new().ring_capacity(3),
        || Builder::new().global_interval(0),
        || Builder::new().event_interval(0),
    ];
    for (at, set) in refused.into_iter().enumerate() {
        let caught = std::panic::catch_unwind(|| drop(set()));
        assert!(caught.is_err(), "{at}");
    }
}

/// Fails if the span of a setting, or the limit of a shutdown, is added to a time without a check.
#[test]
fn endless_limits_of_a_runtime_do_not_overflow() {
    let builder = Builder::new().workers(1);
    let builder = builder.blocking_keep_alive(Duration::MAX);
    #[cfg(feature = "groups")]
    let builder = builder.group_quota(Duration::MAX);
    let builder = builder.monitor(true).stall_threshold(Duration::MAX);
    let runtime = builder.build().unwrap();
    #[cfg(feature = "groups")]
    {
        let group = runtime.group("batch").latency(Duration::MAX).build();
        let task = crate::spawn_in(&group.unwrap(), yield_now()).unwrap();
        runtime.block_on(task).unwrap();
    }
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    let closure = runtime.spawn_blocking(|| 7);
    assert_eq!(runtime.block_on(closure).unwrap(), 7);
    assert!(runtime.shutdown_timeout(Duration::MAX));

    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    assert!(runtime.shutdown_timeout(Duration::MAX));
}

/// The second spawn displaces the first from the slot. Only the other worker can run the first
/// while the parent computes.
#[test]
fn child_displaced_from_the_slot_is_run_by_an_idle_worker() {
    let runtime = workers(2);
    let parent = runtime.spawn(async {
        let ran = Arc::new(AtomicBool::new(false));
        let first = spawn({
            let ran = ran.clone();
            async move { ran.store(true, SeqCst) }
        });
        let second = spawn(async {});
        let begun = std::time::Instant::now();
        while !ran.load(SeqCst) && begun.elapsed() < LONG {
            std::hint::spin_loop();
        }
        (ran.load(SeqCst), first, second)
    });
    let (ran, first, second) = runtime.block_on(parent).unwrap();
    assert!(ran, "the first child waited for its parent");
    runtime.block_on(async {
        first.await.unwrap();
        second.await.unwrap();
    });
}
