//! Panics that somebody wants to hear of. Only in runtimes with such a builder do tasks and closures know theirs.
use crate::{Handle, UnhandledPanic, scope};
use blocking_threads::Hear;
use std::any::Any;
use sync_shim::sync::Arc;

/// What a task or a closure holds, where its panics are heard of: its runtime. Also when that has ended, as an output may be dropped later.
pub(crate) struct Overheard(Handle);

impl Overheard {
    /// If this runtime's builder has somebody who wants to hear.
    pub(crate) fn by(handle: &Handle) -> Option<Self> {
        let observed = handle.shared().hooks.observe_panics();
        observed.then(|| Self(handle.clone()))
    }
}

impl Hear for Overheard {
    /// Somebody's code has panicked, in a runtime's task or closure or where its handle is dropped: that may be another runtime's thread, or nobody's.
    fn panicked(&self, payload: &(dyn Any + Send)) {
        let Self(handle) = self;
        let shared = handle.shared();
        let at_home = scope::current().is_some_and(|here| Arc::ptr_eq(here.shared(), shared));
        let entered = (!at_home).then(|| handle.enter());
        shared.hooks.panicked(payload);
        drop(entered);
        if shared.hooks.policy == UnhandledPanic::Shutdown {
            shared.close();
        }
    }
}
