//! Tests of items that have tokio's names: the builder, the local runtime, and the arguments of the
//! hooks.
use selvedge::{
    Builder, JoinSet, LocalRuntime, LocalSet, TaskMeta, runtime, spawn_local,
    task::{self, JoinHandle},
};
use std::{
    cell::Cell,
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Mutex,
        mpsc::{Sender, channel},
    },
    thread,
};

#[test]
fn builder_by_reference_builds_twice() {
    let mut builder = runtime::Builder::new_multi_thread();
    builder.worker_threads(1);
    builder.name("twin");
    let (one, other) = (builder.build().unwrap(), builder.build().unwrap());
    for runtime in [&one, &other] {
        assert_eq!(runtime.snapshot().workers, 1);
        assert_eq!(runtime.handle().name(), Some("twin"));
    }
    assert_ne!(one.handle().id(), other.handle().id());
}

#[test]
fn thread_name_fn_names_all_threads() {
    let names = || format!("{:?} made it", thread::current().id());
    let runtime = Builder::new()
        .workers(1)
        .thread_name_fn(names)
        .build()
        .unwrap();
    let name = || thread::current().name().unwrap().to_owned();
    let worker = runtime
        .block_on(runtime.spawn(async move { name() }))
        .unwrap();
    let blocking = runtime.block_on(runtime.spawn_blocking(name)).unwrap();
    assert!(worker.ends_with("made it"), "{worker}");
    assert!(blocking.ends_with("made it"), "{blocking}");
}

#[test]
fn thread_name_fn_with_a_nul_starts_no_thread() {
    let build = Builder::new()
        .workers(1)
        .thread_name_fn(|| "a\0b".into())
        .build();
    assert!(build.unwrap_err().to_string().contains("NUL"));
}

#[test]
fn local_runtime_of_many_threads_panics() {
    let build = || runtime::Builder::new_multi_thread().build_local(Default::default());
    assert!(catch_unwind(build).is_err());
}

/// Returns a hook that sends the line of the task's spawn.
fn line_to(lines: Sender<u32>) -> impl Fn(TaskMeta<'_>) + Send + Sync + 'static {
    let lines = Mutex::new(lines);
    move |task| {
        lines
            .lock()
            .unwrap()
            .send(task.spawned_at().line())
            .unwrap()
    }
}

#[test]
fn hooks_learn_where_a_task_was_spawned() {
    let (sender, lines) = channel();
    let runtime = Builder::new()
        .workers(1)
        .on_task_spawn(line_to(sender.clone()))
        .on_before_poll(line_to(sender.clone()))
        .on_after_poll(line_to(sender.clone()))
        .on_task_end(line_to(sender))
        .build()
        .unwrap();
    let mut last = line!();
    let mut four = |spawned: u32| {
        assert!(spawned > last);
        last = spawned;
        let heard: Vec<_> = lines.iter().take(4).collect();
        assert_eq!(heard, [spawned; 4]);
    };
    let task: JoinHandle<()> = runtime.spawn(async {});
    let line = line!() - 1;
    drop(task);
    four(line);
    runtime.spawn_detached(async {});
    let line = line!() - 1;
    four(line);
    let mut set = JoinSet::new();
    set.spawn_on(async {}, runtime.handle());
    let line = line!() - 1;
    four(line);
    let _entered = runtime.enter();
    drop(selvedge::spawn(async {}));
    let line = line!() - 1;
    four(line);
    set.spawn(async {});
    let line = line!() - 1;
    four(line);
}

#[test]
fn end_hook_of_a_cancelled_task_learns_its_place() {
    let (sender, lines) = channel();
    let runtime = Builder::new_current_thread()
        .on_task_end(line_to(sender))
        .build()
        .unwrap();
    let waits = line!() + 1;
    runtime.spawn_detached(pending::<()>());
    runtime.block_on(task::yield_now());
    let queued = line!() + 1;
    runtime.spawn_detached(pending::<()>());
    drop(runtime);
    let mut ended: Vec<_> = lines.iter().collect();
    ended.sort_unstable();
    assert_eq!(ended, [waits, queued]);
}

/// Fails if a panic of a setter, which the program catches, leaves a builder with default settings.
#[test]
fn builder_after_a_refused_setting_is_as_before() {
    let refused: [fn(&mut runtime::Builder); 6] = [
        |builder| _ = builder.name(" "),
        |builder| _ = builder.worker_threads(0),
        |builder| _ = builder.max_blocking_threads(0),
        |builder| _ = builder.thread_name("\0"),
        |builder| _ = builder.global_queue_interval(0),
        |builder| _ = builder.event_interval(0),
    ];
    for set in refused {
        let mut builder = runtime::Builder::new_current_thread();
        builder.name("kept");
        assert!(catch_unwind(AssertUnwindSafe(|| set(&mut builder))).is_err());
        let runtime = builder.build().unwrap();
        let flavor = runtime.handle().runtime_flavor();
        assert_eq!(flavor, runtime::RuntimeFlavor::CurrentThread);
        assert_eq!(runtime.handle().name(), Some("kept"));
    }
}

#[test]
fn entered_sets_nest_and_leave_in_any_order() {
    let (outer, inner) = (LocalSet::new(), LocalSet::new());
    let first = outer.enter();
    spawn_local(async {});
    let second = inner.enter();
    spawn_local(async {});
    drop(first);
    spawn_local(async {});
    assert_eq!((outer.len(), inner.len()), (1, 2));
    drop(second);
    assert!(catch_unwind(|| spawn_local(async {})).is_err());
}

#[test]
fn leaked_guard_of_a_dropped_set_cancels_spawns() {
    let ended = thread::spawn(|| {
        let set = LocalSet::new();
        std::mem::forget(set.enter());
        drop(set);
        spawn_local(async {}).is_finished()
    });
    assert!(ended.join().unwrap());
}

#[test]
fn polled_set_counts_before_an_entered_one() {
    let runtime = selvedge::Runtime::new().unwrap();
    let (entered, polled) = (LocalSet::new(), LocalSet::new());
    let _entered = entered.enter();
    polled.block_on(&runtime, async { drop(spawn_local(pending::<()>())) });
    assert_eq!((entered.len(), polled.len()), (0, 1));
}

#[test]
fn tasks_of_a_local_runtime_spawn_local_ones() {
    let runtime = LocalRuntime::new().unwrap();
    let here = thread::current().id();
    let there = runtime.block_on(async {
        let outer = task::spawn(async { spawn_local(async { thread::current().id() }).await });
        outer.await.unwrap().unwrap()
    });
    assert_eq!(there, here);
}

#[test]
fn local_runtime_drops_its_tasks_inside_it() {
    struct Spawns(Rc<Cell<bool>>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            self.0.set(selvedge::Handle::try_current().is_ok());
        }
    }
    let inside = Rc::new(Cell::new(false));
    let runtime = LocalRuntime::new().unwrap();
    let held = Spawns(inside.clone());
    runtime.spawn_local(async move {
        let _held = held;
        pending::<()>().await;
    });
    drop(runtime);
    assert!(inside.get());
}

#[test]
fn local_runtime_goes_on_after_a_panic_of_its_future() {
    let runtime = LocalRuntime::new().unwrap();
    let panics = || runtime.block_on(async { panic!("of the future") });
    assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
    assert_eq!(runtime.block_on(spawn_in(&runtime)).unwrap(), 7);
    assert!(
        catch_unwind(|| spawn_local(async {})).is_err(),
        "the thread is in no set"
    );
}

fn spawn_in(runtime: &LocalRuntime) -> JoinHandle<u32> {
    let _entered = runtime.enter();
    spawn_local(async { 7 })
}

#[test]
fn parks_and_unparks_are_counted_in_turn() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let metrics = runtime.handle().metrics();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    let mut last = 0;
    for _ in 0..100 {
        let (parks, both) = (
            metrics.worker_park_count(0),
            metrics.worker_park_unpark_count(0),
        );
        assert!(both >= last && both <= 2 * parks.max(metrics.worker_park_count(0)));
        last = both;
        runtime.block_on(runtime.spawn(async {})).unwrap();
    }
}
