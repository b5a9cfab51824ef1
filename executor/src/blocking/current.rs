//! The blocking pool of the current runtime, as code outside of this crate finds it.
use crate::Handle;
use blocking_threads::{Boxed, Current, Entered, RunBlocking};

/// The pool of the runtime that the thread is in.
struct OfRuntime;

impl RunBlocking for OfRuntime {
    fn run_blocking(&self, job: Boxed) {
        run_blocking(job);
    }
}

/// Makes the blocking pool of the thread's runtime the current one of `blocking_threads`, until the
/// guard is dropped.
pub(crate) fn enter() -> Entered {
    Current::of_static(&OfRuntime).enter()
}

/// Runs a closure that blocks, on a thread of the current runtime if there is one.
pub(crate) fn run_blocking(job: Boxed) {
    match Handle::try_current() {
        Ok(handle) => drop(handle.spawn_blocking(job)),
        // A job that gets no thread is dropped, and the task that waits for the job notices this.
        Err(_) => drop(std::thread::Builder::new().spawn(job)),
    }
}
