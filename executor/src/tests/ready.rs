//! Tests of the methods that run ready tasks and do not wait, and of spawns of many tasks.
use crate::{
    Builder, LocalRuntime, LocalSet, Runtime, UnhandledPanic, Worker, park::ThreadPark,
    runtime::LocalOptions, spawn, yield_now,
};
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

/// Fails if `try_run_one` stops before a task has ended. Also fails if it goes on after a task has
/// ended, while no task is in the LIFO slot.
#[test]
fn try_run_one_stops_at_the_first_end() {
    let (runtime, local) = (current_thread(), LocalRuntime::new().unwrap());
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
    let runtime = LocalRuntime::new().unwrap();
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
        |runtime: &LocalRuntime| runtime.run_until_stalled(),
        |runtime: &LocalRuntime| while runtime.try_run_one() {},
    ] {
        let runtime = LocalRuntime::new().unwrap();
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
        |runtime: &LocalRuntime| runtime.run_until_stalled(),
        |runtime: &LocalRuntime| while runtime.try_run_one() {},
    ] {
        let runtime = LocalRuntime::new().unwrap();
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
        .build_local(LocalOptions::default())
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
    assert_eq!((tasks.len(), runtime.snapshot().spawns), (1_200, 1_200));
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

#[cfg(feature = "net")]
pub(super) mod timers;
