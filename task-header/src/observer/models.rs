use super::Observer;
use crate::{Builder, Notified, Schedule, TaskState, WakeKind};
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
