//! The blocking pool of the current runtime, as code outside of this crate finds it.
use crate::Handle;
use blocking_threads::{Boxed, CurrentPool, EnteredPool, RunBlocking};

/// The pool of a runtime. It may outlive the runtime, and then drops its jobs.
struct OfRuntime(Handle);

impl RunBlocking for OfRuntime {
    fn run_blocking(&self, job: Boxed) {
        drop(self.0.spawn_blocking(job));
    }
}

fn find() -> Option<CurrentPool> {
    let handle = Handle::try_current().ok()?;
    Some(CurrentPool::of(OfRuntime(handle)))
}

/// Runs `f`. Meanwhile the current pool of `blocking_threads` is that of the thread's runtime, if
/// `has_runtime`.
pub(crate) fn within<R>(has_runtime: bool, f: impl FnOnce() -> R) -> R {
    CurrentPool::within_found(has_runtime.then_some(find), f)
}

/// Does the same as [`within`], for a runtime, until the guard is dropped.
pub(crate) fn enter() -> EnteredPool {
    CurrentPool::enter_found(find)
}

/// Runs a closure that blocks, on a thread of the current runtime if there is one.
pub(crate) fn run_blocking(job: Boxed) {
    match Handle::try_current() {
        Ok(handle) => drop(handle.spawn_blocking(job)),
        // A job that gets no thread is dropped, and the task that waits for the job notices this.
        Err(_) => drop(std::thread::Builder::new().spawn(job)),
    }
}
