use super::Observer;
use crate::{Builder, JoinHandle, Notified, Schedule, TaskState, WakeKind};
use sync_shim::{
    model,
    sync::{Arc, Mutex},
    thread,
};

struct Nowhere;

impl Schedule for Nowhere {
    fn schedule(_: Notified<Self>, _: WakeKind) {}
}

/// The list of one task.
type List = Arc<Mutex<Option<Observer>>>;

struct Listed(List);

impl Drop for Listed {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

/// A thread looks at the task of a list, while the task ends and is freed.
///
/// Fails if the free retires the state before it drops the details, or does not drop them.
#[test]
fn look_at_a_listed_task_against_its_free_is_sound() {
    model(|| {
        let list = List::new(Mutex::new(None));
        let details = Builder::new().metadata(Listed(list.clone()));
        let (task, join) = details.spawn(std::future::ready(()), Nowhere);
        *list.lock() = Some(task.observer());
        let looks = {
            let list = list.clone();
            thread::spawn(move || {
                // SAFETY: the lock keeps the metadata from being dropped.
                let state_of = |task: Observer| unsafe { task.state() };
                list.lock().map(state_of)
            })
        };
        drop(task.run());
        drop(join);
        let seen = looks.join().unwrap();
        assert!(seen != Some(TaskState::Waiting), "it never waits");
        assert!(list.lock().is_none());
    });
}

/// A scheduler that runs each task at once, on the thread that wakes it.
struct AtOnce;

impl Schedule for AtOnce {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        drop(task.run());
    }
}

/// An observer wakes the task of a list, and so polls it, while another thread drops the task's
/// last reference, which `keep` returns. That thread then drops the future.
fn wake_against<K: 'static>(keep: fn(Notified<AtOnce>, JoinHandle<()>) -> K) {
    model(move || {
        let list = List::new(Mutex::new(None));
        let details = Builder::new().metadata(Listed(list.clone()));
        let (task, join) = details.spawn(std::future::pending(), AtOnce);
        *list.lock() = Some(task.observer());
        let last = keep(task, join);
        let wakes = {
            let list = list.clone();
            thread::spawn(move || {
                // SAFETY: the lock keeps the metadata from being dropped.
                let wake_of = |task: Observer| unsafe { task.wake() };
                let wake = list.lock().and_then(wake_of);
                drop(wake);
            })
        };
        drop(last);
        wakes.join().unwrap();
        assert!(list.lock().is_none(), "the task is freed");
    });
}

/// Fails if the drop of the join handle does not acquire in its exchange: the run after the wake
/// and the drop of the future are a data race.
#[test]
fn observers_wake_against_the_last_join_handle_is_sound() {
    wake_against(|task, join| {
        drop(task.run());
        join
    });
}

/// Fails if an observer wakes a task without a reference.
#[test]
fn observers_wake_against_the_last_waker_is_sound() {
    wake_against(|task, join| {
        let waker = task.waker();
        drop(join);
        drop(task.run());
        waker
    });
}

/// Fails if an observer wakes a task that is queued: its future would be polled twice at once.
#[test]
fn observers_wake_against_a_run_is_sound() {
    wake_against(|task, join| {
        drop(join);
        RunInDrop(Some(task))
    });
}

/// A queued task, which the drop runs, and of which the run is the last reference.
struct RunInDrop(Option<Notified<AtOnce>>);

impl Drop for RunInDrop {
    fn drop(&mut self) {
        drop(self.0.take().map(Notified::run));
    }
}
