//! Reads the state of a task, and wakes the task, without a reference to it.
use crate::{
    cell::{TaskPtr, WakeKind},
    notified::{Notified, Schedule},
    state::{Duty, TaskState},
    wake::fulfil,
};
use core::fmt;

/// A pointer that reads a task's state, or wakes the task, and does not keep the task alive. It
/// takes one word.
///
/// An observer is for a list of the live tasks of a runtime. A task has its place in the list as
/// [metadata](crate::Builder::metadata). The drop of that metadata takes the lock of the list, and
/// then removes the task from the list. So a thread that has the lock may read the state of every
/// task of the list, and wake each of them.
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

// SAFETY: an observer uses only the atomic state of a task, which threads share.
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

    /// Wakes the task, if it waits. The drop of the returned [`Wake`] queues it. Returns `None` if
    /// the task is queued or polled, if it has ended, or if nothing else can wake it any more.
    /// Costs a load, and one read-modify-write or more if the task waits.
    ///
    /// Until the drop of the [`Wake`] no thread polls the task. So the caller may first leave a
    /// message for the next poll, outside of the list's lock.
    ///
    /// ```
    /// use task_header::{Builder, Notified, Schedule, TaskState, WakeKind};
    ///
    /// struct AtOnce;
    ///
    /// impl Schedule for AtOnce {
    ///     fn schedule(task: Notified<Self>, _: WakeKind) {
    ///         drop(task.run());
    ///     }
    /// }
    ///
    /// let mut polls = 0;
    /// let future = std::future::poll_fn(move |_| {
    ///     polls += 1;
    ///     if polls == 2 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    /// });
    /// let (task, join) = Builder::new().metadata("details").spawn(future, AtOnce);
    /// let observer = task.observer();
    /// // SAFETY: the join handle keeps the task, and so its metadata.
    /// assert!(unsafe { observer.wake() }.is_none(), "it is queued");
    /// drop(task.run());
    /// // SAFETY: as above.
    /// let wake = unsafe { observer.wake() }.unwrap();
    /// // SAFETY: as above.
    /// assert!(unsafe { observer.wake() }.is_none(), "it is woken");
    /// drop(wake);
    /// // SAFETY: as above.
    /// assert_eq!(unsafe { observer.state() }, TaskState::Complete);
    /// # drop(join);
    /// ```
    ///
    /// # Safety
    /// As for [`state`](Self::state).
    pub unsafe fn wake(self) -> Option<Wake> {
        // SAFETY: as in `state`.
        let is_woken = unsafe { self.0.as_ref() }.state.wake_if_idle();
        is_woken.then(|| Wake(self.0))
    }
}

/// A task that [`Observer::wake`] has woken. The drop queues the task, by
/// [`Schedule::schedule`], which is user code. A `Wake` that is forgotten leaks the task.
#[must_use = "the drop queues the task"]
pub struct Wake(TaskPtr);

impl Drop for Wake {
    fn drop(&mut self) {
        // SAFETY: `wake_if_idle` made this value the holder of the one `Notified`, which keeps the
        // task. The drop runs once.
        unsafe { fulfil(self.0, Duty::Submit, WakeKind::Wake) };
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Wake").finish()
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
