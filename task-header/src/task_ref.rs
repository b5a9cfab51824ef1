//! A task that somebody else keeps alive.
use crate::cell::{self, TaskPtr};
use core::{fmt, marker::PhantomData};

/// A task that is spoken of: nothing can be done to it. One word.
pub struct TaskRef<'a, S> {
    task: TaskPtr,
    scheduler: PhantomData<&'a S>,
}

impl<S> TaskRef<'_, S> {
    /// # Safety
    /// The caller has a reference for as long as this is there, to a task with this scheduler.
    pub(crate) unsafe fn new(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    /// The scheduler that the task was spawned with.
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
