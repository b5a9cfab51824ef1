//! Tests of the methods that run ready tasks and do not wait, and of spawns of many tasks.
use crate::{Builder, LocalRuntime, LocalSet, Runtime, UnhandledPanic, runtime, spawn, yield_now};
use std::{
    future::{pending, poll_fn, ready},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    task::Poll,
};

fn current_thread() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

/// Fails if a task that another one wakes, or spawns, is left behind.
#[test]
fn run_until_stalled_runs_what_tasks_wake_and_spawn() {
    let runtime = current_thread();
    let (sender, receiver) = async_channel::bounded(1);
    let woken = runtime.spawn(async move { receiver.recv().await.unwrap() });
    runtime.spawn_detached(async move {
        for _ in 0..100 {
            yield_now().await;
        }
        spawn(async move { sender.send(7).await })
            .await
            .unwrap()
            .unwrap();
    });
    runtime.run_until_stalled();
    assert!(woken.is_finished());
    runtime.run_until_stalled();
    assert_eq!(runtime.block_on(woken).unwrap(), 7);
}

/// Fails if a timer that is due does not fire, in either runtime.
#[cfg(feature = "net")]
#[test]
fn run_until_stalled_fires_timers_that_are_due() {
    use net_driver::time::{Duration, sleep};
    let short = Duration::from_millis(2);
    let (runtime, local) = (current_thread(), LocalRuntime::new());
    let (one, other) = (
        runtime.spawn(sleep(short)),
        local.spawn_local(async move {
            sleep(short).await;
        }),
    );
    let long = runtime.spawn(async { sleep(Duration::from_secs(3_600)).await });
    while !(one.is_finished() && other.is_finished()) {
        runtime.run_until_stalled();
        local.run_until_stalled();
    }
    assert!(!long.is_finished());
}

/// Fails if `try_run_one` stops before a task has ended. Also fails if it goes on after a task has
/// ended, while no task is in the LIFO slot.
#[test]
fn try_run_one_stops_at_the_first_end() {
    let (runtime, local) = (current_thread(), LocalRuntime::new());
    runtime.spawn_detached(pending::<()>());
    local.spawn_local(pending::<()>());
    let one = runtime.spawn(async {
        yield_now().await;
        yield_now().await;
    });
    let tasks = [(); 2].map(|()| local.spawn_local(yield_now()));
    assert!(runtime.try_run_one() && one.is_finished());
    assert!(!runtime.try_run_one());
    assert!(local.try_run_one());
    assert_eq!(tasks.iter().filter(|task| task.is_finished()).count(), 1);
    assert!(local.try_run_one() && !local.try_run_one());
}

/// Fails if a local task and one of the runtime do not wake each other.
#[test]
fn local_runtime_runs_both_kinds_until_stalled() {
    let runtime = runtime::LocalRuntime::new().unwrap();
    let (sender, receiver) = async_channel::bounded::<u32>(1);
    let (back, answers) = async_channel::bounded(1);
    let shared = runtime.handle().spawn(async move {
        back.send(receiver.recv().await.unwrap() + 1).await.unwrap();
    });
    let here = Rc::new(6);
    let local = runtime.spawn_local(async move {
        sender.send(*here).await.unwrap();
        answers.recv().await.unwrap()
    });
    runtime.run_until_stalled();
    assert!(shared.is_finished());
    assert_eq!(runtime.block_on(local).unwrap(), 7);
    assert!(!runtime.try_run_one());
}

/// Yields until the flag is set. Panics after more polls than the other tasks need to set the flag.
async fn yields_until(flag: Arc<AtomicBool>) {
    for _ in 0..10_000 {
        if flag.load(Relaxed) {
            return;
        }
        yield_now().await;
    }
    panic!("nobody else ran");
}

/// Fails if the runtime's own tasks have no turn while a local task is ready.
#[test]
fn local_task_that_yields_lets_the_runtimes_tasks_run() {
    for runs in [
        |runtime: &runtime::LocalRuntime| runtime.run_until_stalled(),
        |runtime: &runtime::LocalRuntime| while runtime.try_run_one() {},
    ] {
        let runtime = runtime::LocalRuntime::new().unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let waits = runtime.spawn_local(yields_until(flag.clone()));
        runtime.spawn_local(pending::<()>());
        let sets = async move { flag.store(true, Relaxed) };
        drop(runtime.handle().spawn(sets));
        runs(&runtime);
        assert!(waits.is_finished());
        runtime.block_on(waits).unwrap();
    }
}

/// Fails if local tasks have no turn while a task of the runtime is ready.
#[test]
fn task_of_the_runtime_that_yields_lets_local_tasks_run() {
    for runs in [
        |runtime: &runtime::LocalRuntime| runtime.run_until_stalled(),
        |runtime: &runtime::LocalRuntime| while runtime.try_run_one() {},
    ] {
        let runtime = runtime::LocalRuntime::new().unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let (sender, receiver) = async_channel::bounded(1);
        let set = flag.clone();
        runtime.spawn_local(async move {
            receiver.recv().await.unwrap();
            set.store(true, Relaxed);
        });
        let waits = runtime.handle().spawn(async move {
            sender.send(()).await.unwrap();
            yields_until(flag).await;
        });
        runs(&runtime);
        assert!(waits.is_finished());
        runtime.block_on(waits).unwrap();
    }
}

/// Fails if `run_until_stalled` does not panic inside `block_on`, where it would hold up the
/// future, or if `try_run_one` does not panic in a runtime with worker threads.
#[test]
fn run_until_stalled_is_refused_where_it_cannot_run() {
    let runtime = current_thread();
    let nested = || runtime.block_on(async { runtime.run_until_stalled() });
    assert!(catch_unwind(AssertUnwindSafe(nested)).is_err());
    let threads = Builder::new().workers(1).build().unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| threads.try_run_one())).is_err());
    runtime.run_until_stalled();
}

/// Fails if the policy is ignored, or if other tasks of the set go on. Also fails if a later
/// `block_on` panics although its future is ready.
#[test]
fn panic_of_a_local_task_ends_its_set_by_policy() {
    let runtime = current_thread();
    let mut set = LocalSet::new();
    set.unhandled_panic(UnhandledPanic::Shutdown);
    let panics = set.spawn_local(async { panic!("on purpose") });
    let behind = set.spawn_local(async { 7 });
    let other = set.spawn_local(pending::<()>());
    for _ in 0..2 {
        let waits = || set.block_on(&runtime, pending::<()>());
        assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
    }
    assert!(runtime.block_on(panics).unwrap_err().is_panic());
    assert!(runtime.block_on(behind).unwrap_err().is_cancelled());
    assert!(runtime.block_on(other).unwrap_err().is_cancelled());
    assert_eq!(set.block_on(&runtime, ready(7)), 7);
    assert!(set.is_empty());
}

/// Fails if a panic ends a set with the default policy, or a set whose tasks have not panicked.
#[test]
fn panic_of_another_sets_task_leaves_a_set_alone() {
    let runtime = current_thread();
    let (mut strict, lax) = (LocalSet::new(), LocalSet::new());
    strict.unhandled_panic(UnhandledPanic::Shutdown);
    let sum = strict.block_on(&runtime, async {
        let panics = lax.spawn_local(async { panic!("on purpose") });
        let seven = lax.spawn_local(async { 7 });
        let inner = lax.run_until(async { (panics.await.is_err(), seven.await.unwrap()) });
        let own = crate::spawn_local(async { 1 });
        let (has_panicked, seven) = inner.await;
        assert!(has_panicked);
        seven + own.await.unwrap()
    });
    assert_eq!(sum, 8);
}

/// Fails if the panic counts for the set that the task has entered, or not for its own.
#[test]
fn panic_of_a_task_that_entered_a_set_ends_its_own() {
    let runtime = current_thread();
    let (mut own, mut other) = (LocalSet::new(), LocalSet::new());
    own.unhandled_panic(UnhandledPanic::Shutdown);
    other.unhandled_panic(UnhandledPanic::Shutdown);
    let other = Rc::new(other);
    let bystander = other.spawn_local(async { 7 });
    let (enters, mut entered) = (other.clone(), Vec::new());
    own.spawn_local(poll_fn(move |_| -> Poll<()> {
        entered.push(enters.enter()); // The future keeps the guard, which outlives the panic.
        panic!("on purpose")
    }));
    let waits = || own.block_on(&runtime, yield_now());
    assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
    assert_eq!(other.block_on(&runtime, bystander).unwrap(), 7);
}

/// Fails if the policy of the builder does not hold for local tasks.
#[test]
fn policy_of_a_builder_holds_for_its_local_runtime() {
    let runtime = Builder::new_current_thread()
        .unhandled_panic(UnhandledPanic::ShutdownRuntime)
        .build_local(runtime::LocalOptions::default())
        .unwrap();
    runtime.spawn_local(async { panic!("on purpose") });
    let waits = || runtime.block_on(pending::<()>());
    assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
}

/// Fails if a batch is lost, or if the last one, which is not full, is not queued.
#[test]
fn spawn_many_spawns_each_future_once() {
    let runtime = current_thread();
    let mut tasks = Vec::new();
    let futures = (0..1_200_u32).map(|n| async move { n });
    runtime.handle().spawn_many(futures, &mut tasks);
    assert_eq!((tasks.len(), runtime.metrics().spawned), (1_200, 1_200));
    let sum: u32 = runtime.block_on(async {
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    assert_eq!(sum, 719_400);
}

/// Fails if a task that a worker spawns is lost.
#[test]
fn spawn_many_of_a_task_runs_them_all() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let task = runtime.spawn(async {
        let mut tasks = Vec::new();
        let handle = crate::Handle::current();
        handle.spawn_many((0..300_u32).map(|n| async move { n }), &mut tasks);
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    assert_eq!(runtime.block_on(task).unwrap(), 44_850);
}

/// Fails if the panic of an iterator loses the tasks that were spawned before it.
#[test]
fn tasks_before_a_panic_of_the_iterator_run() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    let futures = (0..10).map(|n| {
        assert!(n < 3, "on purpose");
        let sender = sender.clone();
        async move { sender.send(n).unwrap() }
    });
    let spawns = || runtime.handle().spawn_many(futures, &mut Vec::new());
    assert!(catch_unwind(AssertUnwindSafe(spawns)).is_err());
    drop(sender);
    let mut ran: Vec<_> = receiver.iter().collect();
    ran.sort_unstable();
    assert_eq!(ran, [0, 1, 2]);
}

/// Fails if the tasks of a runtime that has ended are not cancelled.
#[test]
fn spawn_many_after_the_end_cancels_the_tasks() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    let mut tasks = Vec::new();
    handle.spawn_many([pending::<()>(), pending()], &mut tasks);
    for task in tasks {
        assert!(handle.block_on(task).unwrap_err().is_cancelled());
    }
}

/// Fails if tasks go to another group than that of the task that spawns them.
#[cfg(feature = "groups")]
#[test]
fn spawn_many_inherits_the_group() {
    let runtime = Builder::new().workers(1).list_tasks(false).build().unwrap();
    let group = runtime.group("batch").build().unwrap();
    let handle = runtime.handle().clone();
    let task = crate::spawn_in(&group, async move {
        // The thread of the closure is in the task's group, and is no worker.
        let names = crate::spawn_blocking(move || {
            let mut tasks = Vec::new();
            let name = || async { crate::SchedulingGroup::current().name() };
            handle.spawn_many([name(), name()], &mut tasks);
            tasks
        });
        let mut found = Vec::new();
        for name in names.await.unwrap() {
            found.push(name.await.unwrap());
        }
        found
    });
    assert_eq!(runtime.block_on(task.unwrap()).unwrap(), ["batch", "batch"]);
}

/// Fails, by a hang, if a timer does not fire while a local task is ready, in either runtime.
#[cfg(feature = "net")]
#[test]
fn local_task_that_yields_lets_a_timer_fire() {
    use net_driver::time::{Duration, sleep};
    use std::cell::Cell;

    let tasks = || {
        let flag = Rc::new(Cell::new(false));
        let set = flag.clone();
        let sleeps = async move {
            sleep(Duration::from_millis(1)).await;
            set.set(true);
        };
        let waits = async move {
            while !flag.get() {
                yield_now().await;
            }
        };
        (sleeps, waits)
    };
    for one in [false, true] {
        let (local, both) = (LocalRuntime::new(), runtime::LocalRuntime::new().unwrap());
        let (sleeps, waits) = tasks();
        local.spawn_local(sleeps);
        let small = local.spawn_local(waits);
        let (sleeps, waits) = tasks();
        both.spawn_local(sleeps);
        let large = both.spawn_local(waits);
        if one {
            assert!(local.try_run_one() && local.try_run_one());
            assert!(both.try_run_one() && both.try_run_one());
        } else {
            local.run_until_stalled();
            both.run_until_stalled();
        }
        assert!(small.is_finished() && large.is_finished());
    }
}

/// The two ways to run all ready tasks: in one call, or one task after another.
#[cfg(feature = "net")]
const RUNS: [fn(&runtime::LocalRuntime); 2] = [
    |runtime| runtime.run_until_stalled(),
    |runtime| while runtime.try_run_one() {},
];

/// Waits until the time has come.
#[cfg(feature = "net")]
fn wait_until(time: std::time::Instant) {
    while std::time::Instant::now() < time {
        std::thread::yield_now();
    }
}

/// Fails if a local task stays behind that only the last look has woken.
#[cfg(feature = "net")]
#[test]
fn local_task_that_a_look_has_woken_runs_before_the_return() {
    use net_driver::time::{Duration, sleep};
    for run in RUNS {
        let (small, large) = (LocalRuntime::new(), runtime::LocalRuntime::new().unwrap());
        let tasks = [
            small.spawn_local(async { sleep(Duration::from_millis(2)).await }),
            large.spawn_local(async { sleep(Duration::from_millis(2)).await }),
        ];
        // The first run arms the timers, and the second one finds them due.
        for _ in 0..2 {
            run(&large);
            small.run_until_stalled();
            wait_until(std::time::Instant::now() + Duration::from_millis(20));
        }
        assert!(tasks.iter().all(|task| task.is_finished()));
    }
}

/// A socket becomes ready just after a look.
///
/// Fails if a look returns at once because there was another look a moment ago. (If the thread is
/// stopped for 500 microseconds between the two looks, the test does not notice that mistake.)
#[cfg(all(feature = "net", unix, not(selvedge_shuttle)))]
#[test]
fn socket_that_becomes_ready_after_a_look_is_seen() {
    use std::{io::Write, os::unix::net::UnixStream};
    async fn reads(stream: UnixStream) {
        let stream = net_driver::net::UnixStream::from_std(stream).unwrap();
        while stream.try_read(&mut [0]).is_err() {
            stream.readable().await.unwrap();
        }
    }
    fn check(spawn: impl Fn(UnixStream) -> crate::JoinHandle<()>, run: impl Fn()) {
        for _ in 0..30 {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            let task = spawn(theirs);
            run();
            assert!(!task.is_finished());
            ours.write_all(b"a").unwrap();
            run();
            assert!(task.is_finished());
        }
    }
    let both = runtime::LocalRuntime::new().unwrap();
    check(
        |stream| both.spawn_local(reads(stream)),
        || both.run_until_stalled(),
    );
    check(
        |stream| both.handle().spawn(reads(stream)),
        || while both.try_run_one() {},
    );
    let runtime = current_thread();
    check(
        |stream| runtime.spawn(reads(stream)),
        || runtime.run_until_stalled(),
    );
    let local = LocalRuntime::new();
    check(
        |stream| local.spawn_local(reads(stream)),
        || local.run_until_stalled(),
    );
    check(
        |stream| local.spawn_local(reads(stream)),
        || while local.try_run_one() {},
    );
}

/// A runtime whose timers no monitor fires.
#[cfg(feature = "net")]
fn unmonitored() -> Runtime {
    let builder = Builder::new_current_thread();
    let builder = builder.monitor(false);
    builder.build().unwrap()
}

/// Polls sleeps of so many milliseconds with this waker, in a runtime's scope.
#[cfg(feature = "net")]
fn poll_sleeps(
    count: usize,
    millis: u64,
    waker: &std::task::Waker,
) -> Vec<std::pin::Pin<Box<net_driver::time::Sleep>>> {
    use std::{future::Future, task::Context, time::Duration};
    let cx = &mut Context::from_waker(waker);
    let poll = |_| loop {
        // If the thread is stopped here for `millis` milliseconds, the sleep ends in its first
        // poll, before it keeps the waker. Then the loop makes another sleep.
        let mut sleep = Box::pin(net_driver::time::sleep(Duration::from_millis(millis)));
        if sleep.as_mut().poll(cx).is_pending() {
            break sleep;
        }
    };
    (0..count).map(poll).collect()
}

/// Sleeps behind `count` timers that wake `waker`.
#[cfg(feature = "net")]
async fn sleep_behind(count: usize, waker: std::task::Waker) {
    let _others = poll_sleeps(count, 20, &waker);
    net_driver::time::sleep(std::time::Duration::from_millis(30)).await;
}

/// Fails if timers that wake other things than tasks end the look before a task's timer.
#[cfg(feature = "net")]
#[test]
fn timers_of_foreign_wakers_do_not_end_the_look() {
    use std::time::{Duration, Instant};
    let noop = || std::task::Waker::noop().clone();
    let (runtime, local) = (unmonitored(), LocalRuntime::new());
    let tasks = [
        runtime.spawn(sleep_behind(5_000, noop())),
        local.spawn_local(sleep_behind(5_000, noop())),
    ];
    for _ in 0..2 {
        runtime.run_until_stalled();
        local.run_until_stalled();
        wait_until(Instant::now() + Duration::from_millis(50));
    }
    assert!(tasks.iter().all(|task| task.is_finished()));
}

/// Fails if wakers that panic keep the wakers behind them from being called.
#[cfg(feature = "net")]
#[test]
fn wakers_that_panic_do_not_end_the_look() {
    use std::time::{Duration, Instant};
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("on purpose");
        }
    }
    let runtime = unmonitored();
    let task = runtime.spawn(sleep_behind(200, Arc::new(Panics).into()));
    for _ in 0..2 {
        runtime.run_until_stalled();
        wait_until(Instant::now() + Duration::from_millis(50));
    }
    assert!(task.is_finished());
}

/// Fails if a waker that a look of a `LocalRuntime` calls has no driver.
#[cfg(feature = "net")]
#[test]
fn waker_that_a_look_calls_may_make_a_timer() {
    struct Arms(AtomicBool);
    impl std::task::Wake for Arms {
        fn wake(self: Arc<Self>) {
            drop(poll_sleeps(1, 1, std::task::Waker::noop()));
            self.0.store(true, Relaxed);
        }
    }
    let (local, arms) = (LocalRuntime::new(), Arc::new(Arms(AtomicBool::new(false))));
    let _sleep = local.block_on(async { poll_sleeps(1, 1, &arms.clone().into()) });
    while !arms.0.load(Relaxed) {
        local.run_until_stalled();
    }
}

/// Fails if a waker can call into the `LocalRuntime` that calls the waker. The inner call would
/// have no driver that lasts.
#[cfg(feature = "net")]
#[test]
fn local_runtime_refuses_a_waker_that_blocks_in_it() {
    use net_driver::time::{Duration, sleep};
    use std::{cell::OnceCell, sync::Mutex};
    thread_local! {
        static RUNTIME: OnceCell<Rc<LocalRuntime>> = const { OnceCell::new() };
    }
    #[derive(Default)]
    struct Blocks(Mutex<Vec<String>>);
    impl std::task::Wake for Blocks {
        fn wake(self: Arc<Self>) {
            let runtime = RUNTIME.with(|runtime| runtime.get().unwrap().clone());
            for run in [
                |runtime: &LocalRuntime| runtime.block_on(async {}),
                |runtime: &LocalRuntime| runtime.run_until_stalled(),
            ] {
                let payload = catch_unwind(AssertUnwindSafe(|| run(&runtime))).unwrap_err();
                let text = match payload.downcast::<String>() {
                    Ok(text) => *text,
                    Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
                };
                self.0.lock().unwrap().push(text);
            }
        }
    }
    let local = Rc::new(LocalRuntime::new());
    RUNTIME.with(|runtime| runtime.set(local.clone()).unwrap());
    let blocks = Arc::new(Blocks::default());
    let task = local.spawn_local(async { sleep(Duration::from_millis(40)).await });
    // The first time `run_until_stalled` calls the waker, the second time `block_on`.
    let _sleep = local.block_on(async { poll_sleeps(1, 1, &blocks.clone().into()) });
    while blocks.0.lock().unwrap().len() < 2 {
        local.run_until_stalled();
    }
    let _sleep = local.block_on(async { poll_sleeps(1, 1, &blocks.clone().into()) });
    // Only a `block_on` that parks calls the waker.
    while blocks.0.lock().unwrap().len() < 4 {
        local.block_on(sleep(Duration::from_millis(1)));
    }
    local.block_on(task).unwrap();
    let texts = blocks.0.lock().unwrap();
    assert_eq!(texts.len(), 4);
    assert!(texts.iter().all(|text| text.contains("inside block_on")));
}
