//! Reads the state of a task without a reference to the task.
use crate::{
    cell::TaskPtr,
    notified::{Notified, Schedule},
    state::TaskState,
};

/// A pointer that reads a task's state, and does not keep the task alive. It takes one word.
///
/// An observer is for a list of the live tasks of a runtime. A task has its place in the list as
/// [metadata](crate::Builder::metadata). The drop of that metadata takes the lock of the list, and
/// then removes the task from the list. So a thread that has the lock may read the state of every
/// task of the list.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use task_header::{Builder, Notified, Observer, Schedule, TaskState, WakeKind};
///
/// struct Nowhere;
///
/// impl Schedule for Nowhere {
///     fn schedule(_: Notified<Self>, _: WakeKind) {}
/// }
///
/// type List = Arc<Mutex<Vec<Observer>>>;
///
/// /// The metadata of each task of the list.
/// struct Listed(List);
///
/// impl Drop for Listed {
///     fn drop(&mut self) {
///         self.0.lock().unwrap().clear(); // There is one task.
///     }
/// }
///
/// let list = List::default();
/// let (task, join) =
///     Builder::new().metadata(Listed(list.clone())).spawn(std::future::ready(7), Nowhere);
/// list.lock().unwrap().push(task.observer());
///
/// // SAFETY: the lock keeps each task's metadata from being dropped.
/// let states = || -> Vec<_> {
///     list.lock().unwrap().iter().map(|task| unsafe { task.state() }).collect()
/// };
/// assert_eq!(states(), [TaskState::Active]);
/// drop(task.run());
/// assert_eq!(states(), [TaskState::Complete]);
/// drop(join);
/// assert_eq!(states(), []);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observer(TaskPtr);

// SAFETY: an observer only reads the atomic state of a task, which threads share.
unsafe impl Send for Observer {}

// SAFETY: as above.
unsafe impl Sync for Observer {}

impl Observer {
    /// Returns the task's state. Costs one load.
    ///
    /// # Safety
    /// Until this method returns, at least one of the task's details is not dropped, or its drop
    /// has not returned. The details are the values that the task's [`Builder`](crate::Builder) was
    /// given.
    pub unsafe fn state(self) -> TaskState {
        // SAFETY: by the caller's promise the cell is not freed (`free` drops the details first),
        // and until then no code borrows the header mutably.
        unsafe { self.0.as_ref() }.state.observed()
    }
}

impl<S: Schedule> Notified<S> {
    /// Returns a pointer by which a list of tasks reads the state of this task.
    pub fn observer(&self) -> Observer {
        Observer(self.as_task())
    }
}

#[cfg(all(test, feature = "std", not(selvedge_count)))]
mod models;
