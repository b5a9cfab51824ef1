//! Tests that the scheduler of a task gets one report of the task's end, with its outcome.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use std::{
    collections::VecDeque,
    future::{pending, poll_fn},
    sync::{Arc, Mutex},
    task::Poll,
};
use task_header::{
    Id, LocalNotified, LocalOwned, Notified, Outcome, Ran, Schedule, ScheduleLocal, TaskRef,
    WakeKind, new, new_detached,
};

#[derive(Clone, Default)]
struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<VecDeque<Notified<Queue>>>,
    ended: Mutex<Vec<(Id, Outcome)>>,
}

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let shared = task.scheduler().0.clone();
        shared.queue.lock().unwrap().push_back(task);
    }

    fn ended(task: TaskRef<'_, Self>, outcome: Outcome) {
        let shared = task.scheduler().0.clone();
        shared.ended.lock().unwrap().push((task.id(), outcome));
        panic!("a panic of the hook goes nowhere, as the test asks");
    }
}

impl Queue {
    fn run_all(&self) {
        while let Some(task) = { self.0.queue.lock().unwrap().pop_front() } {
            if let Ran::Notified(task) = task.run() {
                self.0.queue.lock().unwrap().push_back(task);
            }
        }
    }

    fn ended(&self) -> Vec<(Id, Outcome)> {
        std::mem::take(&mut self.0.ended.lock().unwrap())
    }
}

#[test]
fn each_end_is_reported_once_with_its_outcome() {
    let queue = Queue::default();

    let (task, ready) = new(async { 7 }, queue.clone());
    let _ = task.run();
    assert_eq!(queue.ended(), [(ready.id(), Outcome::Completed)]);

    let (task, panics) = new(async { panic!("as the test asks") }, queue.clone());
    let _ = task.run();
    assert_eq!(queue.ended(), [(panics.id(), Outcome::Panicked)]);

    let (task, aborted) = new(pending::<()>(), queue.clone());
    let _ = task.run();
    assert_eq!(queue.ended(), []);
    aborted.abort();
    aborted.abort();
    queue.run_all();
    assert_eq!(queue.ended(), [(aborted.id(), Outcome::Cancelled)]);

    let (task, dropped) = new(async {}, queue.clone());
    drop(task);
    assert_eq!(queue.ended(), [(dropped.id(), Outcome::Cancelled)]);

    let task = new_detached(async {}, queue.clone());
    let id = task.id();
    let _ = task.run();
    assert_eq!(queue.ended(), [(id, Outcome::Completed)]);
}

#[test]
fn abort_in_the_last_poll_leaves_it_completed() {
    let queue = Queue::default();
    let handle = Arc::new(Mutex::new(None));
    let own = handle.clone();
    let aborts_itself = poll_fn(move |_| {
        let own: task_header::AbortHandle = own.lock().unwrap().take().unwrap();
        own.abort();
        Poll::Ready(())
    });
    let (task, join) = new(aborts_itself, queue.clone());
    *handle.lock().unwrap() = Some(join.abort_handle());
    let _ = task.run();
    assert_eq!(queue.ended(), [(join.id(), Outcome::Completed)]);
}

#[test]
fn drop_that_panics_ends_an_aborted_task_as_panicked() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("as the test asks");
        }
    }
    let queue = Queue::default();
    let panics = Panics;
    let (task, join) = new(async move { drop(panics) }, queue.clone());
    drop(task);
    assert_eq!(queue.ended(), [(join.id(), Outcome::Panicked)]);
}

/// The scheduler of thread-local tasks.
struct Local(Arc<Mutex<Vec<Outcome>>>);

impl ScheduleLocal for Local {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }

    fn ended(task: TaskRef<'_, Self>, outcome: Outcome) {
        task.scheduler().0.lock().unwrap().push(outcome);
    }
}

#[test]
fn ends_of_local_tasks_are_reported_too() {
    let ended = Arc::new(Mutex::new(Vec::new()));
    let owned = LocalOwned::new(std::task::Waker::noop().clone());
    let (task, _join) = owned.spawn(async {}, Local(ended.clone()));
    let _ = owned.run(task);
    let (task, _join) = owned.spawn(pending::<()>(), Local(ended.clone()));
    let _ = owned.run(task);
    drop(owned);
    assert_eq!(
        *ended.lock().unwrap(),
        [Outcome::Completed, Outcome::Cancelled]
    );
}
