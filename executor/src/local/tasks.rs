//! The tasks of a [`LocalSet`](crate::LocalSet), and its policy for their panics.
use std::{cell::Cell, ops::Deref};

/// The tasks of a set, and its policy for their panics.
#[derive(Default)]
pub(crate) struct LocalTasks {
    pub(crate) set: task_set::LocalSet,
    /// Whether a panic ends the set.
    pub(crate) ends_by_panic: Cell<bool>,
    /// Whether a panic has ended the set.
    pub(crate) has_panicked: Cell<bool>,
    /// Whether the set was dropped. A guard, or a scope on the stack, may keep this value longer.
    pub(crate) is_over: Cell<bool>,
}

impl Deref for LocalTasks {
    type Target = task_set::LocalSet;

    fn deref(&self) -> &task_set::LocalSet {
        &self.set
    }
}

impl LocalTasks {
    /// Cancels all tasks. A cancel may call wakers that spawn tasks: these are cancelled, too.
    pub(crate) fn cancel_left(&self) {
        while !self.set.is_empty() {
            self.set.cancel_all();
        }
    }

    /// Notes that a poll of a task has panicked. The set's poll goes on, and drops the other tasks.
    #[cold]
    pub(crate) fn panicked(&self) {
        if self.ends_by_panic.get() {
            self.has_panicked.set(true);
            self.set.abort_all();
        }
    }
}
