//! The threads of a runtime, which run its workers and its blocking closures.
//!
//! A thread of the [pool](blocking_threads::Pool) runs queued jobs: closures and workers' cores. A
//! core keeps its thread until the runtime ends or a task gives the core away. The pool's cap
//! bounds the threads for closures, not those for cores. The pool also runs the jobs that are
//! queued when the runtime ends, for two reasons: the closures were spawned in time, and the thread
//! that runs a core drops the core's tasks.
use crate::{
    fork::Process,
    observe::trace::{self, TaskKind},
    worker::{
        core::Core,
        shared::{Job, PanicReporter, Shared},
        threads,
        unpark::Unstarted,
    },
};
use blocking_threads::{BeforePark, Closure, Once};
use std::{borrow::Cow, io, panic::Location};
use sync_shim::sync::Arc;
use task_header::JoinHandle;
use worker_idle::Backoff;

/// Queues a closure.
///
/// The pool refuses the closure if the pool is closed, or if the pool can start no thread at all.
/// Then this function drops the closure, and the handle returns that the closure was cancelled.
///
/// # Panics
/// In a child made by `fork`.
#[track_caller]
pub(crate) fn spawn<F, R>(
    shared: &Arc<Shared>,
    name: Option<Cow<'static, str>>,
    f: F,
    at: &'static Location<'static>,
) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    shared.assert_is_not_in_forked_child("spawn_blocking");
    let (span, future) = trace::trace(TaskKind::Blocking, name.as_deref(), at, Once::new(f));
    let on_panic = PanicReporter::by(shared);
    let (task, join) = match name {
        None => Closure::with_hook(on_panic, future),
        Some(name) => Closure::named(name, at, on_panic, future),
    };
    span.record_id(&join.id());
    let job = Job::Closure(task, shared.events.hold_clock());
    drop(shared.blocking.submit(job));
    join
}

impl Unstarted for Core {
    fn start(self: Box<Self>) -> bool {
        // A runtime's copy in a child of `fork` has no threads, and starts none.
        self.shared.is_in_forked_child() || start(self).is_ok()
    }
}

/// Starts the thread of a worker.
///
/// If the thread cannot be started, or the runtime has ended, the core is dropped.
pub(crate) fn start(core: Box<Core>) -> io::Result<()> {
    let (shared, index) = (core.shared.clone(), core.index);
    // The paused clock does not know this worker before the worker's thread runs.
    let hold = shared.events.hold_clock();
    let started = shared
        .blocking
        .start(Job::Worker(core, hold), &name(&shared, index));
    started.map_err(|refused| refused.why.unwrap_or(io::ErrorKind::Other.into()))
}

/// Offers a core to the threads of the pool.
///
/// If no thread can be started, the core stays on offer until the calling thread takes it back.
pub(crate) fn offer(shared: &Arc<Shared>, core: Box<Core>) {
    let index = core.index;
    let lent = &shared.remotes[index].lent;
    let offered = lent.offer(core);
    debug_assert!(offered.before.is_none(), "a worker has one core");
    if offered.request {
        let job = Job::Core(shared.clone(), index);
        if shared
            .blocking
            .submit_now(job, &name(shared, index))
            .is_err()
        {
            lent.cancel_request();
        }
    }
}

fn name(shared: &Shared, index: usize) -> String {
    format!("{}-{index}", shared.settings.thread_name)
}

/// Returns a function that makes a thread's hook: the thread waits a moment for the next closure
/// before it parks, if such waits have paid so far and the rule of `backoff` allows them.
pub(crate) fn before_park(
    backoff: Backoff,
) -> std::sync::Arc<dyn Fn() -> Box<BeforePark> + Send + Sync> {
    let process = Process::this();
    std::sync::Arc::new(move || {
        let mut backoff = backoff;
        Box::new(move |look| {
            process.end_in_child();
            if backoff.is_due() {
                backoff.wait(look);
            }
        })
    })
}

impl blocking_threads::Job for Job {
    fn run(self) {
        match self {
            Self::Closure(closure, _hold) => {
                let process = Process::now();
                closure.run();
                process.end_in_child();
            }
            Self::Worker(core, hold) => threads::drive(core, Some(hold)),
            Self::Core(shared, index) => {
                let core = shared.remotes[index].lent.accept();
                drop(shared);
                if let Some(core) = core {
                    threads::drive(core, None);
                }
            }
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
