use crate::{Builder, Runtime, TaskBuilder, TaskState};
use std::{
    collections::HashSet,
    future::pending,
    sync::{Arc, Mutex, mpsc},
    time::{Duration, Instant},
};

fn listing(workers: usize) -> Runtime {
    let builder = Builder::new().workers(workers).list_tasks(true);
    builder.build().unwrap()
}

fn states(runtime: &Runtime) -> Vec<TaskState> {
    let tasks = runtime.handle().tasks().unwrap();
    tasks.iter().map(|task| task.state).collect()
}

/// Waits until the only task has this state.
fn await_state(runtime: &Runtime, state: TaskState) {
    while states(runtime) != [state] {
        std::thread::yield_now();
    }
}

/// Number of places that are in use.
fn used(runtime: &Runtime) -> usize {
    let tasks = &runtime.handle().shared().tasks;
    tasks.shards.iter().map(|shard| shard.lock().used).sum()
}

/// Fails if a named task is not listed, or stays in the list when it is freed.
#[test]
fn named_task_is_listed_until_it_is_freed() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let tasks = runtime.handle().shared().tasks.clone();
    let builder = TaskBuilder::new().name("reader");
    let join = builder.spawn_on(pending::<()>(), runtime.handle());
    let number: u64 = join.id().into();
    let entry = tasks.find(number).unwrap();
    assert_eq!(entry.name.as_deref(), Some("reader"));
    assert_eq!(entry.location.file(), file!());
    assert!(tasks.find(number ^ 1).is_none());
    join.abort();
    let _ = runtime.block_on(join);
    drop(runtime);
    assert!(tasks.find(number).is_none());
}

/// Fails if the time of a poll is not that of its end, or of its begin while it goes on.
#[test]
fn times_of_a_task_count_from_its_last_turn() {
    const SPAN: Duration = Duration::from_millis(20);
    let runtime = listing(1);
    let spawned = Instant::now();
    let (send, ended) = mpsc::channel();
    let first = |runtime: &Runtime| runtime.handle().tasks().unwrap().remove(0);
    let task = runtime.spawn(async move {
        std::thread::sleep(2 * SPAN);
        let listed = crate::Handle::current().tasks().unwrap().remove(0);
        assert_eq!(listed.state, TaskState::Executing);
        assert!(listed.since >= 2 * SPAN, "{listed}");
        assert!(listed.to_string().contains(" after 1 poll, for "));
        send.send(()).unwrap();
        pending::<()>().await;
    });
    ended.recv().unwrap();
    await_state(&runtime, TaskState::Waiting);
    std::thread::sleep(SPAN);
    let listed = first(&runtime);
    assert!(listed.since >= SPAN, "{listed}");
    assert!(listed.since <= spawned.elapsed() - 2 * SPAN, "{listed}");
    assert!(listed.to_string().contains(" after 1 poll, the last one "));
    drop(task);
}

/// Fails if freed tasks leave places in use, or if the list keeps more places than one round has
/// tasks.
#[test]
fn places_of_freed_tasks_are_used_again() {
    const TASKS: usize = 200;
    let runtime = listing(2);
    // A large shard that becomes empty gives its places up. This task keeps the shard in use.
    let stays = runtime.spawn(pending::<()>());
    for _ in 0..3 {
        let tasks: Vec<_> = (0..TASKS).map(|_| runtime.spawn(async {})).collect();
        for task in tasks {
            runtime.block_on(task).unwrap();
        }
        // The worker may still hold a task whose handle is gone.
        while used(&runtime) > 1 {
            std::thread::yield_now();
        }
    }
    let held: Vec<_> = (0..TASKS).map(|_| runtime.spawn(pending::<()>())).collect();
    let listed = runtime.handle().tasks().unwrap();
    let listed: HashSet<_> = listed.iter().map(|task| task.id).collect();
    let spawned = held.iter().chain([&stays]).map(|task| task.id());
    assert_eq!(listed, spawned.collect());
    let tasks = &runtime.handle().shared().tasks;
    let places = tasks.shards.iter().map(|shard| shard.lock().places.len());
    // One more is for the futures of `block_on`, one after another.
    assert_eq!(places.sum::<usize>(), TASKS + 2);
}

/// Fails if the list reports a wrong state for a task in its poll, for one that waits for a worker,
/// or for one that waits for a wake.
#[test]
fn states_follow_a_task_from_spawn_to_end() {
    let runtime = listing(1);
    let (begun, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel();
    let (answer, waits) = tokio::sync::oneshot::channel::<()>();
    let task = runtime.spawn(async move {
        begun.send(()).unwrap();
        ends.recv().unwrap();
        waits.await.unwrap();
    });
    begins.recv().unwrap();
    await_state(&runtime, TaskState::Executing);
    let behind = runtime.spawn(async {});
    let mut found = states(&runtime);
    found.sort_by_key(|state| *state as u8);
    assert_eq!(found, [TaskState::Runnable, TaskState::Executing]);
    end.send(()).unwrap();
    runtime.block_on(behind).unwrap();
    await_state(&runtime, TaskState::Waiting);
    answer.send(()).unwrap();
    runtime.block_on(task).unwrap();
    assert!(states(&runtime).is_empty());
}

/// Fails if a task that gives its worker away counts as anything but executing.
#[test]
fn task_that_blocks_in_place_counts_as_executing() {
    let runtime = listing(1);
    let (end, ends) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let blocks = runtime.spawn(async move {
        crate::block_in_place(|| {
            begun.send(()).unwrap();
            ends.recv().unwrap();
        });
    });
    begins.recv().unwrap();
    // Another thread has the worker by now, and runs this second task.
    runtime.block_on(runtime.spawn(async {})).unwrap();
    await_state(&runtime, TaskState::Executing);
    end.send(()).unwrap();
    runtime.block_on(blocks).unwrap();
    assert!(states(&runtime).is_empty());
}

/// Fails if a task is not listed while its future is dropped. Also fails if an ended task is listed
/// while its handle keeps the task and its output in memory.
#[test]
fn task_is_listed_in_the_drop_of_its_future_and_not_later() {
    struct Lists(mpsc::Sender<usize>);
    impl Drop for Lists {
        fn drop(&mut self) {
            let handle = crate::Handle::current();
            let tasks = handle.tasks().unwrap().into_iter();
            let tasks = tasks.filter(|task| task.name.as_deref() != Some("block_on"));
            self.0.send(tasks.count()).unwrap();
        }
    }
    let runtime = listing(1);
    let (sender, listed) = mpsc::channel();
    let lists = Lists(sender);
    let task = runtime.spawn(async move {
        let _lists = lists;
        pending::<()>().await;
    });
    task.abort();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    assert_eq!(listed.recv().unwrap(), 1);
    // The task has ended, and keeps this output until its join handle is dropped.
    let output = Arc::new(Mutex::new(()));
    let kept = output.clone();
    let join = runtime.spawn(async move { kept });
    while !join.is_finished() {
        std::thread::yield_now();
    }
    assert!(runtime.handle().tasks().unwrap().is_empty());
    drop(join);
    drop(runtime);
    assert_eq!(Arc::strong_count(&output), 1);
}

/// Fails if a task is not listed with the source line of its spawn call: a detached task, a task of
/// a set, or a task that was spawned on a worker.
#[test]
fn tasks_of_every_spawn_are_listed_with_their_place() {
    let runtime = listing(2);
    let (line, set) = runtime.block_on(async {
        let line = line!();
        crate::spawn_detached(pending::<()>());
        drop(crate::spawn(pending::<()>()));
        let set: task_set::JoinSet<()> = [crate::spawn(pending::<()>())].into_iter().collect();
        runtime
            .spawn(async { crate::spawn_detached(pending::<()>()) })
            .await
            .unwrap();
        (line, set)
    });
    let tasks = runtime.handle().tasks().unwrap();
    let mut lines: Vec<_> = tasks
        .iter()
        .map(|task| task.location.line() - line)
        .collect();
    lines.sort_unstable();
    assert_eq!(lines, [1, 2, 3, 5]);
    assert!(tasks.iter().all(|task| task.location.file() == file!()));
    drop(set);
}

/// Fails if the list names a group other than the task's.
#[cfg(feature = "groups")]
#[test]
fn task_is_listed_with_the_name_of_its_group() {
    let runtime = listing(1);
    let group = runtime.group("batch").build().unwrap();
    let task = crate::spawn_in(&group, pending::<()>()).unwrap();
    group.rename("later");
    let listed = runtime.handle().tasks().unwrap();
    assert_eq!(listed[0].group.as_deref(), Some("later"));
    task.abort();
    assert!(runtime.block_on(task).is_err());
    group.destroy().unwrap();
}

/// Fails if a task that the end of its runtime has dropped stays in the list.
#[test]
fn list_is_empty_after_the_end() {
    let runtime = listing(2);
    let handle = runtime.handle().clone();
    let tasks: Vec<_> = (0..10).map(|_| runtime.spawn(pending::<()>())).collect();
    assert_eq!(handle.tasks().unwrap().len(), 10);
    drop(runtime);
    assert!(handle.tasks().unwrap().is_empty());
    let late = handle.spawn(async {});
    assert!(handle.tasks().unwrap().is_empty());
    drop((tasks, late));
    let tasks = &handle.shared().tasks;
    assert!(tasks.shards.iter().all(|shard| shard.lock().used == 0));
}
