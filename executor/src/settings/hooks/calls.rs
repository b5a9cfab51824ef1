//! The calls of hooks, and where the panics of user code go.
//!
//! A hook that is called in a task, or around a poll, cannot give the thread's core away: the call
//! is in the middle of an operation that goes on to use the core.
use super::{Hook, Hooks, TaskHook, TaskMeta};
use crate::worker::context;
use std::any::Any;
use sync_shim::panics;

impl Hooks {
    /// Calls a hook, if it is set.
    pub(crate) fn call_hook(&self, hook: &Hook) {
        if let Some(hook) = hook {
            self.contain(|| hook());
        }
    }

    /// Calls a hook for a task, if it is set.
    pub(crate) fn call_task_hook(&self, hook: &TaskHook, task: TaskMeta<'static>) {
        if let Some(hook) = hook {
            context::hold_core(|| self.contain(|| hook(task)));
        }
    }

    /// Runs user code, and passes its panic to `on_panic`, as no join handle gets that panic.
    pub(crate) fn contain(&self, f: impl FnOnce()) {
        if let Err(payload) = panics::catch(f) {
            self.panicked(&*payload);
            panics::discard(payload);
        }
    }

    /// Passes the payload of a panic of user code to `on_panic`.
    pub(crate) fn panicked(&self, payload: &(dyn Any + Send)) {
        if let Some(hook) = &self.on_panic {
            context::hold_core(|| panics::contain(|| hook(payload)));
        }
    }
}
