//! A borrowed task.
use crate::cell::{self, TaskPtr};
use core::{fmt, marker::PhantomData};

/// A borrowed task, kept alive by its lender. It can be looked at, and nothing else. One word.
pub struct TaskRef<'a, S> {
    task: TaskPtr,
    scheduler: PhantomData<&'a S>,
}

impl<S> TaskRef<'_, S> {
    /// # Safety
    /// The caller has a reference, for as long as this value exists, to a task with this scheduler.
    pub(crate) unsafe fn new(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    /// Returns the scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: by the contract of `new`.
        unsafe { cell::scheduler(self.task) }
    }

    cell::accessors!(|this| this.task);
}

impl<S> fmt::Debug for TaskRef<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskRef").field(&self.id()).finish()
    }
}
