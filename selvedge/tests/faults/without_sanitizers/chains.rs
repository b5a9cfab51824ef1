//! Tests of chains of up to a million tasks, each of which holds a handle of the next: no task's
//! future is dropped inside the drop of another task's future.
use crate::process::is_child;
use selvedge::{AbortHandle, Builder, JoinHandle};
use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};

/// Links of a chain. Fewer without optimisation, so that a test takes less than a second. The
/// smallest frames, of 16 bytes each, would fill a thread's [`STACK`] five times.
const LONG: usize = if cfg!(debug_assertions) {
    40_000
} else {
    1_000_000
};

const STACK: usize = 128 << 10;

struct Link<T, F: Fn(&T)> {
    next: Option<T>,
    at_drop: F,
    drops: Arc<AtomicUsize>,
}

impl<T, F: Fn(&T)> Drop for Link<T, F> {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if let Some(next) = &self.next {
            (self.at_drop)(next);
        }
    }
}

/// Makes a chain of waiting tasks, each of which holds a handle of the task spawned before it. Then
/// calls `end`, and asserts that all futures have been dropped.
fn dropped<T: Send + Sync + 'static>(
    holds: impl Fn(JoinHandle<()>) -> T + Copy,
    at_drop: impl Fn(&T) + Copy + Send + 'static,
    end: impl FnOnce(selvedge::Runtime, T, &AtomicUsize),
) {
    let runtime = Builder::new().workers(1).stack_size(STACK).build().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let mut last = None;
    for _ in 0..LONG {
        let link = Link {
            next: last.take(),
            at_drop,
            drops: drops.clone(),
        };
        let task = runtime.spawn(async move {
            let _link = link;
            pending::<()>().await;
        });
        last = Some(holds(task));
    }
    // After this `block_on` each task has been polled once, and waits.
    runtime
        .block_on(runtime.spawn(selvedge::yield_now()))
        .unwrap();
    end(runtime, last.unwrap(), &drops);
    assert_eq!(drops.load(SeqCst), LONG);
}

#[test]
fn runtime_end_drops_tasks_that_hold_each_others_handles() {
    if !is_child(
        "without_sanitizers::chains::runtime_end_drops_tasks_that_hold_each_others_handles",
    ) {
        return;
    }
    dropped(
        |join| join,
        |_| (),
        |runtime, first, _| drop((first, runtime)),
    );
}

#[test]
fn chain_of_aborts_in_drops_ends() {
    if !is_child("without_sanitizers::chains::chain_of_aborts_in_drops_ends") {
        return;
    }
    let abort = |join: JoinHandle<()>| join.abort_handle();
    dropped(abort, AbortHandle::abort, |runtime, first, drops| {
        first.abort();
        while drops.load(SeqCst) < LONG {
            std::thread::yield_now();
        }
        drop(runtime);
    });
}

#[test]
fn chain_of_aborts_in_drops_ends_with_its_runtime() {
    if !is_child("without_sanitizers::chains::chain_of_aborts_in_drops_ends_with_its_runtime") {
        return;
    }
    let abort = |join: JoinHandle<()>| join.abort_handle();
    dropped(abort, AbortHandle::abort, |runtime, first, _| {
        drop((runtime, first))
    });
}

/// Each task awaits the task that was spawned before it. The end of the first task wakes the
/// second, and so on.
#[test]
fn chain_of_awaits_ends_without_a_frame_for_each_task() {
    if !is_child("without_sanitizers::chains::chain_of_awaits_ends_without_a_frame_for_each_task") {
        return;
    }
    let runtime = Builder::new().workers(1).stack_size(STACK).build().unwrap();
    let (go, waits) = futures::channel::oneshot::channel::<()>();
    let mut last = runtime.spawn(async move { usize::from(waits.await.is_ok()) });
    for _ in 1..LONG {
        last = runtime.spawn(async move { last.await.unwrap() + 1 });
    }
    go.send(()).unwrap();
    assert_eq!(runtime.block_on(last).unwrap(), LONG);
}
