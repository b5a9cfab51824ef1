//! What the threads of a runtime do: its workers, and closures that block.
//!
//! A thread of the [pool](blocking_threads::Pool) runs what is queued: closures, and the cores of workers, which keep it until the runtime ends or a task gives the
//! core away. Cores are beyond the cap, which is one of closures. What is queued when the runtime ends is run: closures were spawned in time, and the tasks of cores are to be dropped.
use crate::{
    Handle,
    core::Core,
    shared::Shared,
    threads,
    trace::{self, TaskKind},
    unhandled::Overheard,
};
use blocking_threads::{Closure, Once};
use std::{borrow::Cow, io, panic::Location};
use sync_shim::sync::Arc;
use task_header::JoinHandle;
use worker_idle::Backoff;

/// The pool of one runtime.
pub(crate) type Pool = blocking_threads::Pool<Job>;

/// What a thread does.
pub(crate) enum Job {
    Closure(Closure<Option<Overheard>>),
    /// A worker, which has had no thread so far.
    Worker(Box<Core>),
    /// The core of a worker, if it is still on offer.
    Core(Arc<Shared>, usize),
}

/// Queues a closure. Refused (closed, or not a single thread to be had) it is dropped here,
/// which its handle sees as cancelled.
pub(crate) fn spawn<F, R>(
    handle: &Handle,
    name: Option<Cow<'static, str>>,
    f: F,
    at: &'static Location<'static>,
) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    let (span, future) = trace::trace(TaskKind::Blocking, name.as_deref(), at, Once::new(f));
    let heard = Overheard::by(handle);
    let (task, join) = match name {
        None => Closure::with_hook(heard, future),
        Some(name) => Closure::named(name, at, heard, future),
    };
    span.record_id(&join.id());
    drop(handle.shared().blocking.submit(Job::Closure(task)));
    join
}

/// Starts the thread of a worker that has none yet. If that can't be, or the runtime has ended, the core is gone.
pub(crate) fn start(core: Box<Core>) -> io::Result<()> {
    let (shared, index) = (core.shared.clone(), core.index);
    let started = shared
        .blocking
        .start(Job::Worker(core), &name(&shared, index));
    started.map_err(|refused| refused.why.unwrap_or(io::ErrorKind::Other.into()))
}

/// Offers a core to the threads of the pool. If none can be started it stays on offer, and goes back to who offered it.
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

/// How a thread waits a moment for the next closure, if that pays.
pub(crate) fn linger(mut linger: Backoff) -> Box<blocking_threads::BeforePark> {
    Box::new(move |look| {
        if linger.is_due() {
            linger.wait(look);
        }
    })
}

impl blocking_threads::Job for Job {
    fn run(self) {
        match self {
            Self::Closure(closure) => closure.run(),
            Self::Worker(core) => threads::drive(core),
            Self::Core(shared, index) => {
                let core = shared.remotes[index].lent.accept();
                drop(shared);
                if let Some(core) = core {
                    threads::drive(core);
                }
            }
        }
    }
}
