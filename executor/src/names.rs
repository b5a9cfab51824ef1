//! The names of tasks, and the places where they were spawned, for reports of stalls.
//!
//! A monitor knows the number of a task, but must not touch the task, which may end at any time. So
//! the tasks that [`task::Builder`](crate::task::Builder) names are in a list, from before they are
//! queued until they are freed. A task's number is its address, which no other task has meanwhile.
//!
//! Other tasks are not in the list, and cost nothing.
use std::{borrow::Cow, collections::BTreeMap, panic::Location};
use sync_shim::sync::{Arc, Mutex};

/// The name of a task, and the place where it was spawned.
#[derive(Clone)]
#[cfg_attr(not(feature = "monitor"), allow(dead_code, reason = "nobody asks"))]
pub(crate) struct Name {
    pub(crate) name: Cow<'static, str>,
    pub(crate) location: &'static Location<'static>,
}

/// The named tasks of a runtime.
pub(crate) struct Names(Mutex<List>);

#[derive(Default)]
struct List {
    /// The number of each task that is queued, and its name.
    named: BTreeMap<u64, (Option<u64>, Name)>,
    next_key: u64,
}

/// A task's place in the list. The task owns it.
pub(crate) struct Listed {
    names: Arc<Names>,
    key: u64,
}

impl Names {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(List::default()))
    }

    /// Adds a task that has no number yet.
    pub(crate) fn add(names: &Arc<Self>, name: Name) -> Listed {
        let mut list = names.0.lock();
        let key = list.next_key;
        list.next_key += 1;
        list.named.insert(key, (None, name));
        drop(list);
        Listed {
            names: names.clone(),
            key,
        }
    }

    /// Sets the number of the task with this key.
    pub(crate) fn set_number(&self, key: u64, task: u64) {
        if let Some((number, _)) = self.0.lock().named.get_mut(&key) {
            *number = Some(task);
        }
    }

    /// Finds the name of a task. It looks through the whole list.
    #[cfg(feature = "monitor")]
    pub(crate) fn of(&self, task: u64) -> Option<Name> {
        let list = self.0.lock();
        let mut named = list.named.values();
        let (_, name) = named.find(|(number, _)| *number == Some(task))?;
        Some(name.clone())
    }
}

impl Listed {
    pub(crate) fn key(&self) -> u64 {
        self.key
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.names.0.lock().named.remove(&self.key);
    }
}

#[cfg(all(test, feature = "monitor", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use crate::{Builder, task};

    #[test]
    fn name_is_listed_until_its_task_is_freed() {
        let runtime = Builder::new().workers(1).build().unwrap();
        let names = &runtime.handle().shared().names;
        let builder = task::Builder::new().name("reader");
        let join = builder.spawn_on(std::future::pending::<()>(), runtime.handle());
        let number = join.id().into();
        let listed = names.of(number).unwrap();
        assert_eq!((&*listed.name, listed.location.file()), ("reader", file!()));
        assert!(names.of(number ^ 1).is_none());
        join.abort();
        let _ = runtime.block_on(join);
        drop(runtime);
    }

    #[test]
    fn names_of_freed_tasks_are_gone() {
        let runtime = Builder::new().workers(1).build().unwrap();
        let names = runtime.handle().shared().names.clone();
        for _ in 0..10 {
            let builder = task::Builder::new().name("short");
            let join = builder.spawn_on(async {}, runtime.handle());
            runtime.block_on(join).unwrap();
        }
        drop(runtime);
        assert_eq!(names.0.lock().named.len(), 0);
    }
}
