//! Tests of `task_local!`, `task::id` and `task::try_id`, as a program uses them.
use selvedge::{Builder, JoinSet, LocalRuntime, Runtime, task, yield_now};
use std::{
    cell::RefCell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Sender, channel},
};

selvedge::task_local! {
    static NUMBER: u32;
    static LIST: RefCell<Vec<u32>>;
}

fn runtime() -> Runtime {
    Builder::new().workers(2).build().unwrap()
}

#[test]
fn scope_keeps_the_value_of_each_task_across_yields() {
    let runtime = runtime();
    let tasks: Vec<_> = (0..64)
        .map(|n| {
            runtime.spawn(NUMBER.scope(n, async move {
                for _ in 0..20 {
                    yield_now().await;
                    assert_eq!(NUMBER.get(), n);
                }
                NUMBER.with(|n| *n)
            }))
        })
        .collect();
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(runtime.block_on(task).unwrap(), n as u32);
    }
    assert!(NUMBER.try_get().is_err());
}

#[test]
fn child_task_inherits_no_value() {
    let runtime = runtime();
    let child = NUMBER.scope(1, async {
        selvedge::spawn(async { NUMBER.try_get() }).await
    });
    assert!(runtime.block_on(child).unwrap().is_err());
}

#[test]
fn scope_inside_with_hides_the_value_until_it_ends() {
    NUMBER.sync_scope(1, || {
        NUMBER.with(|outer| {
            NUMBER.sync_scope(2, || assert_eq!(NUMBER.get(), 2));
            assert_eq!((*outer, NUMBER.get()), (1, 1));
        });
    });
}

#[test]
fn panic_in_a_scope_restores_the_value_around() {
    NUMBER.sync_scope(1, || {
        let panics = || NUMBER.sync_scope(2, || panic!("on purpose"));
        catch_unwind(panics).unwrap_err();
        assert_eq!(NUMBER.get(), 1);
    });
}

#[test]
#[should_panic(expected = "task-local value not set")]
fn with_outside_of_a_scope_panics() {
    NUMBER.with(|_| {});
}

/// Sends the value of `NUMBER` that its drop finds.
struct Reports(Sender<Option<u32>>);

impl Drop for Reports {
    fn drop(&mut self) {
        self.0.send(NUMBER.try_get().ok()).unwrap();
    }
}

#[test]
fn future_is_dropped_in_its_scope() {
    let (sender, receiver) = channel();
    let reports = Reports(sender.clone());
    drop(NUMBER.scope(3, async move { drop(reports) }));
    assert_eq!(receiver.recv().unwrap(), Some(3));

    let runtime = runtime();
    let reports = Reports(sender);
    let task = runtime.spawn(NUMBER.scope(4, async move {
        let _reports = reports;
        std::future::pending::<()>().await;
    }));
    task.abort();
    assert!(runtime.block_on(task).unwrap_err().is_cancelled());
    assert_eq!(receiver.recv().unwrap(), Some(4));
}

#[test]
fn value_may_change_by_a_cell_and_be_taken_at_the_end() {
    let push = async {
        LIST.with(|list| list.borrow_mut().push(1));
        yield_now().await;
        LIST.with(|list| list.borrow_mut().push(2));
    };
    let future = LIST.scope(RefCell::default(), push);
    selvedge::pin!(future);
    LocalRuntime::new().unwrap().block_on(future.as_mut());
    assert_eq!(future.as_mut().take_value().unwrap().into_inner(), [1, 2]);
    assert!(future.as_mut().take_value().is_none());
    let again = catch_unwind(AssertUnwindSafe(|| {
        LocalRuntime::new().unwrap().block_on(future)
    }));
    again.unwrap_err();
}

#[test]
fn id_in_a_task_is_that_of_its_handle() {
    let runtime = runtime();
    let task = runtime.spawn(async {
        let before = task::id();
        yield_now().await;
        let inside = selvedge::block_in_place(task::try_id);
        (before, inside, task::id())
    });
    let id = task.id();
    assert_eq!(runtime.block_on(task).unwrap(), (id, Some(id), id));

    let local = LocalRuntime::new().unwrap();
    let task = local.spawn_local(async { task::id() });
    let id = task.id();
    assert_eq!(local.block_on(task).unwrap(), id);
}

/// Sends the id of the current task when it is dropped.
struct SendsId(Sender<Option<task::Id>>);

impl Drop for SendsId {
    fn drop(&mut self) {
        self.0.send(task::try_id()).unwrap();
    }
}

#[test]
fn id_in_the_drop_of_an_output_is_that_of_its_task() {
    let (sender, receiver) = channel();
    let output = || SendsId(sender.clone());
    let runtime = runtime();

    // A task that ends after its handle, one that ends before, and a closure.
    let (begin, begun) = tokio::sync::oneshot::channel::<()>();
    let late = output();
    let task = runtime.spawn(async move { begun.await.map(|()| late) });
    let id = task.id();
    drop(task);
    begin.send(()).unwrap();
    assert_eq!(receiver.recv().unwrap(), Some(id));

    let [of_task, of_closure] = [output(), output()];
    let tasks = [
        runtime.spawn(async { of_task }),
        runtime.spawn_blocking(|| of_closure),
    ];
    for task in tasks {
        let id = task.id();
        runtime.block_on(async {
            while !task.is_finished() {
                yield_now().await;
            }
        });
        drop(task);
        assert_eq!(receiver.recv().unwrap(), Some(id));
    }

    let (local, output) = (LocalRuntime::new().unwrap(), output());
    let id = local.block_on(async { task::spawn_local(async { output }).id() });
    drop(local);
    assert_eq!(receiver.recv().unwrap(), Some(id));
}

/// Fails if a closure that was aborted before its run is dropped outside of its task.
#[test]
fn id_in_the_drop_of_an_aborted_closure_is_that_of_its_task() {
    let (sender, receiver) = channel();
    let builder = Builder::new().workers(1).blocking_threads(1);
    let runtime = builder.build().unwrap();
    let (release, held) = channel::<()>();
    drop(runtime.spawn_blocking(move || held.recv()));
    let value = SendsId(sender);
    let closure = runtime.spawn_blocking(move || drop(value));
    let id = closure.id();
    closure.abort();
    drop(release);
    assert!(runtime.block_on(closure).unwrap_err().is_cancelled());
    assert_eq!(receiver.recv().unwrap(), Some(id));
}

/// Fails if the drop of a set drops an output outside of its task.
#[test]
fn id_in_the_drop_of_a_sets_output_is_that_of_its_task() {
    let (sender, receiver) = channel();
    let (runtime, mut set, value) = (runtime(), JoinSet::new(), SendsId(sender));
    let task = set.spawn_on(async { value }, runtime.handle());
    runtime.block_on(async {
        while !task.is_finished() {
            yield_now().await;
        }
    });
    drop(set);
    assert_eq!(receiver.recv().unwrap(), Some(task.id()));
}

/// Fails if the end of a runtime drops a future outside of its task.
#[test]
fn id_in_a_drop_by_the_end_of_the_runtime_is_that_of_the_task() {
    let (sender, receiver) = channel();
    let (runtime, value) = (runtime(), SendsId(sender));
    let future = async move {
        let _held = value;
        std::future::pending::<()>().await;
    };
    let id = runtime.spawn(future).id();
    drop(runtime);
    assert_eq!(receiver.recv().unwrap(), Some(id));
}

#[test]
fn try_id_outside_of_tasks_is_none() {
    let runtime = runtime();
    assert!(task::try_id().is_none());
    assert!(runtime.block_on(async { task::try_id() }).is_none());
    let panicked = catch_unwind(task::id).unwrap_err();
    let message = panicked.downcast_ref::<&str>().unwrap();
    assert!(message.starts_with("this thread runs no task"));
}

#[test]
fn id_in_hooks_of_polls_is_not_that_of_the_task() {
    let (sender, receiver) = channel();
    let hook = move |_| sender.send(task::try_id()).unwrap();
    let runtime = Builder::new()
        .workers(1)
        .on_after_poll(hook)
        .build()
        .unwrap();
    runtime.block_on(runtime.spawn(async {})).unwrap();
    drop(runtime);
    assert!(receiver.iter().all(|id| id.is_none()));
}
