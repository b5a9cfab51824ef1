//! Tests of the names and numbers by which a program observes a runtime. These items have tokio's
//! names.
use selvedge::{
    Builder, Handle, JoinSet, Runtime,
    runtime::{RuntimeFlavor, RuntimeMetrics, worker_index},
};
use std::{collections::HashSet, io};

fn runtime(workers: usize) -> Runtime {
    Builder::new().workers(workers).build().unwrap()
}

#[test]
fn handle_in_a_task_has_the_runtimes_id_and_name() {
    let runtime = Builder::new().workers(1).name("here").build().unwrap();
    let task = runtime.spawn(async {
        let handle = Handle::current();
        (handle.id(), handle.name().map(String::from))
    });
    let found = runtime.block_on(task).unwrap();
    assert_eq!(found, (runtime.handle().id(), Some("here".into())));
    assert_ne!(self::runtime(1).handle().id(), runtime.handle().id());
}

#[test]
fn flavor_of_driven_workers_is_multi_thread() {
    let (runtime, workers) = Builder::new().build_driven([selvedge::park::ThreadPark::new()]);
    assert_eq!(
        runtime.handle().runtime_flavor(),
        RuntimeFlavor::MultiThread
    );
    drop((workers, runtime));
    let runtime = Builder::new_current_thread().build().unwrap();
    assert_eq!(
        runtime.handle().runtime_flavor(),
        RuntimeFlavor::CurrentThread
    );
}

#[test]
fn worker_index_in_tasks_is_in_range_and_elsewhere_none() {
    let runtime = runtime(2);
    let tasks: JoinSet<_> = {
        let _entered = runtime.enter();
        (0..100)
            .map(|_| async { worker_index().unwrap() })
            .collect()
    };
    let seen: HashSet<usize> = runtime.block_on(tasks.join_all()).into_iter().collect();
    assert!(seen.iter().all(|index| *index < 2), "{seen:?}");
    let inside = runtime.spawn(async { selvedge::block_in_place(worker_index) });
    assert_eq!(runtime.block_on(inside).unwrap(), None);
    let closure = runtime.spawn_blocking(worker_index);
    assert_eq!(runtime.block_on(closure).unwrap(), None);
}

#[test]
fn metrics_object_follows_the_runtime_beyond_its_end() {
    let runtime = runtime(1);
    let metrics: RuntimeMetrics = runtime.handle().metrics();
    assert_eq!(metrics.spawned_tasks_count(), 0);
    let task = runtime.spawn(std::future::pending::<()>());
    assert_eq!(
        (metrics.spawned_tasks_count(), metrics.num_alive_tasks()),
        (1, 1)
    );
    drop(runtime);
    assert_eq!(
        (metrics.spawned_tasks_count(), metrics.num_alive_tasks()),
        (1, 0)
    );
    assert!(task.is_finished());
    assert_eq!(metrics.snapshot().live_tasks, 0);
}

#[test]
#[should_panic(expected = "a runtime of 1 workers has no worker 1")]
fn metrics_of_an_unknown_worker_panic() {
    runtime(1).handle().metrics().worker_poll_count(1);
}

#[test]
fn join_set_extends_by_futures() {
    let runtime = runtime(1);
    let mut outputs = runtime.block_on(async {
        let mut set = JoinSet::new();
        set.spawn(async { 0 });
        set.extend((1..4).map(|n| async move { n }));
        set.join_all().await
    });
    outputs.sort_unstable();
    assert_eq!(outputs, [0, 1, 2, 3]);
}

#[test]
fn question_mark_makes_an_io_error_of_a_join_error() {
    let runtime = runtime(1);
    let failed: io::Result<()> = runtime.block_on(async {
        selvedge::spawn(async { panic!("on purpose") }).await?;
        Ok(())
    });
    let error = failed.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Other);
    assert!(error.downcast::<selvedge::JoinError>().unwrap().is_panic());
}
