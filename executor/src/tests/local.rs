//! Tests of tasks that stay on one thread.
use super::*;
use crate::{JoinHandle, LocalRuntime, LocalSet, block_in_place, scope, spawn_local};
use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn},
    pin::pin,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};

#[test]
fn local_tasks_and_others_wake_each_other() {
    let runtime = workers(2);
    let set = LocalSet::new();
    let sum = Rc::new(Cell::new(0));
    let tasks: Vec<_> = (0..50)
        .map(|i| {
            let sum = sum.clone();
            set.spawn_local(async move {
                let (sender, receiver) = oneshot::channel();
                spawn_detached(async move {
                    yield_now().await;
                    sender.send(i).unwrap();
                });
                let got = receiver.await.unwrap();
                sum.set(sum.get() + got);
                yield_now().await;
            })
        })
        .collect();
    set.block_on(&runtime, async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(sum.get(), 1225);
}

#[test]
fn local_tasks_left_by_a_block_on_go_on_in_the_next() {
    let runtime = LocalRuntime::new().unwrap();
    let turns = Rc::new(Cell::new(0));
    let count = turns.clone();
    let task = runtime.spawn_local(async move {
        for _ in 0..100 {
            count.set(count.get() + 1);
            yield_now().await;
        }
    });
    runtime.block_on(yield_now());
    assert!(turns.get() < 100);
    runtime.block_on(task).unwrap();
    assert_eq!(turns.get(), 100);
}

#[test]
fn blocking_is_refused_where_local_tasks_would_be_held_up() {
    let runtime = workers(1);
    let local = LocalRuntime::new().unwrap();
    let error = local.block_on(async {
        let task = spawn_local(async { block_in_place(|| ()) });
        task.await.unwrap_err()
    });
    assert!(error.to_string().contains("use spawn_blocking"), "{error}");
    let handle = runtime.handle().clone();
    let error = local.block_on(local.spawn_local(async move { handle.block_on(async {}) }));
    assert!(error.unwrap_err().is_panic());
    let error =
        runtime.block_on(runtime.spawn(async { LocalRuntime::new().unwrap().block_on(async {}) }));
    assert!(error.unwrap_err().is_panic());
}

#[test]
fn join_set_returns_tasks_in_the_order_in_which_they_end() {
    let runtime = workers(2);
    let outputs = runtime.block_on(async {
        let tasks = (0..20).map(|i| crate::spawn(async move { i }));
        let mut set: task_set::JoinSet<i32> = tasks.collect();
        let mut outputs = Vec::new();
        while let Some(output) = set.join_next().await {
            outputs.push(output.unwrap());
        }
        outputs.sort_unstable();
        outputs
    });
    assert_eq!(outputs, (0..20).collect::<Vec<_>>());
}

#[test]
fn main_future_that_never_waits_lets_a_local_task_run() {
    let runtime = LocalRuntime::new().unwrap();
    let turns = Rc::new(Cell::new(0));
    let count = turns.clone();
    runtime.spawn_local(async move {
        loop {
            coop_budget::consume().await;
            count.set(count.get() + 1);
        }
    });
    runtime.block_on(async {
        for _ in 0..100_000 {
            coop_budget::consume().await;
        }
    });
    assert!(turns.get() > 99_000, "{}", turns.get());
}

#[test]
fn local_tasks_that_never_wait_have_equal_turns() {
    // There are as many tasks as the set runs in a round, so each round runs all of them.
    let runtime = LocalRuntime::new().unwrap();
    let turns = [0; 61].map(|_| Rc::new(Cell::new(0)));
    for count in turns.clone() {
        runtime.spawn_local(async move {
            loop {
                coop_budget::consume().await;
                count.set(count.get() + 1);
            }
        });
    }
    runtime.block_on(async {
        for _ in 0..100 {
            yield_now().await;
        }
    });
    for count in turns {
        assert_eq!(count.get(), 100 * 128);
    }
}

#[test]
fn a_poll_in_a_local_set_has_the_budget_of_its_runtime() {
    let runtime = Builder::new()
        .workers(1)
        .budget(crate::Budget::new(10))
        .build()
        .unwrap();
    let set = LocalSet::new();
    let left = set.spawn_local(async {
        coop_budget::consume().await;
        coop_budget::remaining()
    });
    let left = set.block_on(&runtime, async {
        for _ in 0..3 {
            coop_budget::consume().await;
        }
        (coop_budget::remaining(), left.await.unwrap())
    });
    assert_eq!(left, (Some(7), Some(9)));
}

/// Fails if each call has a budget of its own: then the loop never waits.
#[test]
fn loop_of_run_until_calls_uses_up_the_budget_around_it() {
    let runtime = workers(1);
    let set = LocalSet::new();
    runtime.block_on(async {
        let calls = Cell::new(0);
        let mut many = pin!(async {
            while calls.get() < 1000 {
                set.run_until(coop_budget::consume()).await;
                calls.set(calls.get() + 1);
            }
        });
        let polled = poll_fn(|cx| Poll::Ready(many.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        assert_eq!(calls.get(), 128);
    });
}

/// Another executor has no budget. So under such an executor the future in `run_until` has a budget
/// of its own.
///
/// Fails if that future has only the budget around it: then it starves the set's task.
#[test]
fn run_until_outside_of_a_runtime_lets_a_local_task_run() {
    let set = LocalSet::new();
    let ran = Rc::new(Cell::new(false));
    let runs = ran.clone();
    futures::executor::block_on(set.run_until(async {
        crate::spawn_local(async move { runs.set(true) });
        for _ in 0..1000 {
            coop_budget::consume().await;
        }
    }));
    assert!(ran.get());
}

/// Calls `spawn_local` and `block_in_place` in its drop, and counts the calls that behave as in a
/// poll.
struct InDrop(Rc<Cell<usize>>);

impl Drop for InDrop {
    fn drop(&mut self) {
        drop(spawn_local(async {}));
        self.0.set(self.0.get() + 1);
        let blocks = std::panic::catch_unwind(|| block_in_place(|| ()));
        assert!(blocks.is_err());
        self.0.set(self.0.get() + 1);
    }
}

async fn holds(in_drop: InDrop) {
    pending::<()>().await;
    drop(in_drop);
}

#[test]
fn a_destructor_in_a_sets_drop_is_in_the_set() {
    let count = Rc::new(Cell::new(0));
    let set = LocalSet::new();
    set.spawn_local(holds(InDrop(count.clone())));
    drop(set);
    assert_eq!(count.get(), 2);

    let local = LocalRuntime::new().unwrap();
    local.spawn_local(holds(InDrop(count.clone())));
    local.block_on(yield_now());
    drop(local);
    assert_eq!(count.get(), 4);
}

#[test]
fn destructor_in_a_sets_drop_may_spawn_tasks_that_spawn() {
    struct Spawns(Rc<Cell<usize>>);
    impl Drop for Spawns {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            if self.0.get() < 10 {
                let next = Spawns(self.0.clone());
                drop(spawn_local(async move {
                    pending::<()>().await;
                    drop(next);
                }));
            }
        }
    }
    let count = Rc::new(Cell::new(0));
    let first = Spawns(count.clone());
    let set = LocalSet::new();
    set.spawn_local(async move {
        pending::<()>().await;
        drop(first);
    });
    drop(set);
    assert_eq!(count.get(), 10);
}

/// A guard outlives its set.
///
/// Fails if the set keeps a task that is spawned after its drop: the handle would wait forever.
/// Also fails if the cancelled future is dropped outside of the set, or if the tasks that its drop
/// spawns are kept.
#[test]
fn spawn_under_the_guard_of_a_dropped_set_is_cancelled() {
    let runtime = workers(1);
    let count = Rc::new(Cell::new(0));
    let set = LocalSet::new();
    let entered = set.enter();
    drop(set);
    let late = spawn_local(holds(InDrop(count.clone())));
    let named = crate::TaskBuilder::new().name("late").spawn_local(async {});
    let tasks = scope::local_set().unwrap();
    assert!(late.is_finished() && named.is_finished() && tasks.is_empty());
    assert!(runtime.block_on(late).unwrap_err().is_cancelled());
    assert_eq!(count.get(), 2);
    drop(entered);
}

thread_local!(static LATE: RefCell<Vec<JoinHandle<()>>> = const { RefCell::new(Vec::new()) });

/// A waker that spawns a task, the first time.
struct SpawnsOnce;

impl Wake for SpawnsOnce {
    fn wake(self: Arc<Self>) {
        if LATE.with_borrow(Vec::is_empty) {
            let late = spawn_local(async {});
            LATE.with_borrow_mut(|handles| handles.push(late));
        }
    }
}

/// The drop of a set cancels its tasks and then wakes its poller, whose waker spawns a task.
///
/// Fails if the set keeps that task.
#[test]
fn task_that_a_waker_spawns_in_a_sets_drop_is_cancelled() {
    let mut set = LocalSet::new();
    let entered = set.enter();
    set.spawn_local(pending::<()>());
    let waker = Waker::from(Arc::new(SpawnsOnce));
    assert!(
        pin!(&mut set)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert!(LATE.with_borrow(Vec::is_empty));
    drop(set);
    assert!(LATE.take().pop().unwrap().is_finished());
    drop(entered);
}

#[test]
fn destructor_of_a_run_until_future_is_in_the_set() {
    let count = Rc::new(Cell::new(0));
    let local = LocalRuntime::new().unwrap();
    let set = LocalSet::new();
    local.block_on(async {
        // The future is dropped while it waits.
        {
            let mut until = pin!(set.run_until(holds(InDrop(count.clone()))));
            poll_fn(|cx| Poll::Ready(until.as_mut().poll(cx).is_pending())).await;
        }
        assert_eq!((count.get(), set.len()), (2, 1));
        // The future is dropped when it is ready.
        let in_drop = InDrop(count.clone());
        set.run_until(poll_fn(move |_| {
            let _held = &in_drop;
            Poll::Ready(())
        }))
        .await;
    });
    assert_eq!((count.get(), set.len()), (4, 2));
}

#[test]
fn an_output_that_nobody_joins_is_dropped_in_the_set() {
    let count = Rc::new(Cell::new(0));
    let local = LocalRuntime::new().unwrap();
    let in_drop = InDrop(count.clone());
    drop(local.spawn_local(async move { in_drop }));
    local.block_on(yield_now());
    assert_eq!(count.get(), 2);
}

#[test]
fn a_set_on_a_worker_ends_in_its_own_scope() {
    let runtime = workers(1);
    let count = runtime.block_on(runtime.spawn(async {
        let count = Rc::new(Cell::new(0));
        {
            let set = LocalSet::new();
            set.spawn_local(holds(InDrop(count.clone())));
        }
        count.get()
    }));
    assert_eq!(count.unwrap(), 2);
}

/// Fails if the future of `run_until` has room for its future three times: as the argument of two
/// functions, and where it is polled.
#[test]
fn run_until_has_room_for_its_future_at_most_twice() {
    async fn large() -> u8 {
        let bytes = [7; 1000];
        yield_now().await;
        std::hint::black_box(bytes)[0]
    }
    let set = LocalSet::new();
    let until = set.run_until(large());
    let (size, future) = (size_of_val(&until), size_of_val(&large()));
    assert!(size < 2 * future + 120, "{size}, of which {future}");
    assert_eq!(block_on(until), 7);
}
