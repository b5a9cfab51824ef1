//! The allocation of a process, and its start.
//!
//! The other operations on a cell are in files of their own: `run.rs`, `end.rs`, `restart.rs`, and,
//! for threads without the token, `notify.rs` and `any.rs`. `related.rs` has the lists of
//! relations.
//!
//! | field | who touches it |
//! |---|---|
//! | `core` | all threads: see `core.rs` |
//! | `inner` | the owner of the token |
//! | `related` | all threads, under its lock |
//! | the other fields | all threads; they are written before the cell is shared |
//!
//! # Rules
//!
//! 1. The token of a process is its [`Runnable`], an `Arc` of the cell: the owner of the token may
//!    run the process. A cell is freed when the token, the registry's `Arc`, and all addresses,
//!    wakers and completers are gone.
//! 2. `inner` belongs to the owner of the token. User code that the owner runs reaches the cell
//!    only through `core` and `related`.
//! 3. A body is moved out of `inner` once, and is then closed and dropped. A body whose `init` has
//!    not run, and which is no upgrade, is dropped without a close: its spawn was refused.
//! 4. The end for good drops what the process owns: its body, its handler, its events, and what its
//!    supervisor would restart it from. So an address, a waker or a completer keeps only the cell.
//! 5. User code (a step, a close, a drop, a handler, a waker, a relay) runs under `catch_unwind`,
//!    and outside of every lock. Each value of the user is dropped under a guard of its own. The
//!    closures of a spawn and of a child, the handlers and the relay are [`Guarded`], wherever they
//!    are dropped. An [`Input`] guards its own value.
//!
//! [`Guarded`]: crate::guard::Guarded
use crate::{
    BoxProcess, Context, ExitReason, Handle, InitError, Input, Mailbox, Pid, Process, SpawnError,
    events::{CoreOf, Pending},
    guard::guarded,
    lane::Taken,
    pool,
    process::HandlerOf,
    runnable::Runnable,
    state::Wait,
    supervised::Restart,
    trace::ProcessSpan,
    worker,
};
use queue_global::mpsc::Batch;
use related::{Related, RelationLists};
use std::{any::type_name, panic::Location, sync::Arc};
use sync_shim::{cell::UnsafeCell, sync::Mutex};

mod any;
mod end;
mod notify;
mod related;
mod restart;
mod run;

pub(crate) struct ProcessCell<P: Process> {
    core: CoreOf<P::Message, P::Output, P::Error>,
    inner: UnsafeCell<CellInner<P>>,
    related: Mutex<Related>,
    handle: Handle,
    pid: Pid,
    traps_exits: bool,
}

// SAFETY: the core is `Sync`. The owner of the token alone touches `inner`, whose parts are `Send`
// (rule 2). The other fields are `Sync`.
unsafe impl<P: Process> Sync for ProcessCell<P> {}
// SAFETY: a cell owns its parts, which are `Send`.
unsafe impl<P: Process> Send for ProcessCell<P> {}

struct CellInner<P: Process> {
    body: Body<P>,
    pending: Pending<P::Message, P::Output, P::Error>,
    waits: Option<Wait>,
    cancelled: bool,
    handler: Option<HandlerOf<P>>,
    restart: Option<Box<Restart<P>>>,
    span: ProcessSpan,
}

enum Body<P: Process> {
    Own(P),
    Upgraded(BoxProcess<P::Message, P::Cmd, P::Output, P::Error>),
    Closed,
}

/// The parts of a new cell.
pub(crate) struct CellParts<P: Process> {
    pub(crate) body: P,
    /// The node in the process's pid.
    pub(crate) node: u32,
    pub(crate) handle: Handle,
    pub(crate) handler: Option<HandlerOf<P>>,
    pub(crate) mailbox: Mailbox,
    pub(crate) traps_exits: bool,
    pub(crate) restart: Option<Box<Restart<P>>>,
}

impl<P: Process> ProcessCell<P> {
    pub(crate) fn new(parts: CellParts<P>) -> Arc<Self> {
        let related = match &parts.restart {
            None => Related::None,
            Some(restart) => Related::Some(Box::new(RelationLists {
                supervisor: Some(restart.child.supervisor),
                ..RelationLists::default()
            })),
        };
        pool::new_arc(Self {
            core: CoreOf::<P::Message, P::Output, P::Error>::new(parts.mailbox),
            inner: UnsafeCell::new(CellInner {
                body: Body::Own(parts.body),
                pending: Pending {
                    urgent: Batch::default(),
                    messages: Taken::default(),
                },
                waits: None,
                cancelled: false,
                handler: parts.handler,
                restart: parts.restart,
                span: ProcessSpan::none(),
            }),
            related: Mutex::new(related),
            handle: parts.handle,
            pid: Pid::none(parts.node),
            traps_exits: parts.traps_exits,
        })
    }

    /// Sets the pid of a new cell, before any code except the registry has it.
    pub(crate) fn set_pid(&mut self, pid: Pid) {
        self.pid = pid;
    }

    /// Returns the pid of a cell that has a slot in the registry.
    pub(crate) fn own_pid(&self) -> Pid {
        self.pid
    }

    /// Calls `f` with the lists of relations, under their lock. `None` if the process has ended.
    fn with_relations<R>(&self, f: impl FnOnce(&mut RelationLists) -> R) -> Option<R> {
        let mut related = self.related.lock();
        if let Related::None = *related {
            *related = Related::Some(Box::default());
        }
        match &mut *related {
            Related::Some(lists) => Some(f(lists)),
            _ => None,
        }
    }

    /// Takes out the reason of the kill. Returns `Killed` if there is none.
    fn killed(&self) -> ExitReason {
        let killed = self.with_relations(|lists| lists.killed.take()).flatten();
        killed.unwrap_or(ExitReason::Killed)
    }

    /// Queues the token, if the caller has got it.
    fn submit(&self, token: Option<Runnable>) {
        if let Some(token) = token {
            worker::submit(&self.handle.shared, token);
        }
    }

    /// Calls the body's `init`. Only the owner of the token calls this.
    fn init(
        self: &Arc<Self>,
        inner: &mut CellInner<P>,
        method: &str,
        input: Input,
    ) -> Result<(), SpawnError> {
        let cx = Context {
            pid: self.pid,
            handle: &self.handle,
            receiver: self.clone(),
            method: std::marker::PhantomData,
        };
        let Body::Own(body) = &mut inner.body else {
            return Err(SpawnError::Closed);
        };
        let span = &inner.span;
        match span.catch(|| body.init(&cx, method, input)) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(InitError::UnknownMethod)) => Err(SpawnError::UnknownMethod(method.to_owned())),
            Ok(Err(InitError::Failed(why))) => Err(SpawnError::Init(why)),
            Err(panic) => {
                let ExitReason::Panicked(why) = self.panicked(panic) else {
                    unreachable!("it panicked")
                };
                Err(SpawnError::Panicked(why))
            }
        }
    }

    /// Starts a new process. `self` is its token, which `start` submits if `init` succeeds, after a
    /// call of `then`. A panic of `then` is dropped.
    pub(crate) fn start(
        self: Arc<Self>,
        handle: &Handle,
        name: Option<&str>,
        method: &str,
        input: Input,
        at: &'static Location<'static>,
        then: impl FnOnce(Pid),
    ) -> Result<(), SpawnError> {
        let inner = self.inner.with_mut(|inner| inner);
        // SAFETY: rule 2: a new cell's token is with the caller.
        let inner = unsafe { &mut *inner };
        inner.span = ProcessSpan::new(self.pid, name, type_name::<P>(), at);
        if let Err(error) = self.init(inner, method, input) {
            self.core.state.begin();
            self.close_body(inner);
            // If `init` fails, the spawner gets the error, and the supervisor does not restart the
            // process.
            drop(inner.restart.take());
            self.end(inner, ExitReason::failed(&error));
            return Err(error);
        }
        guarded(|| then(self.pid));
        worker::submit(&handle.shared, Runnable(self));
        Ok(())
    }
}

/// Returns the size of a process's cell in bytes.
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
pub(crate) const fn bytes_of<P: Process>() -> usize {
    size_of::<ProcessCell<P>>()
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;
    use crate::from_fn;

    fn cell_size<P: Process>(_: &P) -> usize {
        bytes_of::<P>()
    }

    /// Fails if a process that has ended stays among the watchers of another process, or if the
    /// watchers of dropped `Exit` futures pile up there.
    #[test]
    fn watchers_that_wait_no_longer_are_removed() {
        let handle = crate::shared::models::without_threads();
        let [server, live] = [(); 2].map(|()| models::spawn(&handle, None));
        let watchers = || server.with_relations(|lists| lists.watchers.len());
        handle.monitor(live.pid, server.pid);
        for _ in 0..100 {
            let client = models::spawn(&handle, None);
            handle.monitor(client.pid, server.pid);
            let gone = client.pid;
            client.abandon();
            handle.monitor(gone, server.pid);
        }
        assert_eq!(watchers(), Some(1));
        for _ in 0..100 {
            drop(handle.exit_of(server.pid));
        }
        assert!(watchers() < Some(10));
        server.abandon();
        assert_eq!(live.core.take_urgent().count(), 1);
        assert_eq!(live.with_relations(|lists| lists.monitored.len()), Some(0));
        live.abandon();
    }

    /// Adds up the cell, the two counts of its `Arc`, its slot in the registry (24 bytes), and the
    /// at most 16 bytes by which glibc's allocator enlarges a block.
    #[test]
    fn idle_process_takes_at_most_400_bytes() {
        let process = from_fn(|_: u64, _| ());
        let counts = 2 * size_of::<usize>();
        let bytes = cell_size(&process) + counts + 24 + 16;
        println!("{bytes} bytes an idle process");
        assert!(bytes <= 400, "{bytes}");
    }
}

#[cfg(test)]
pub(crate) mod models;
