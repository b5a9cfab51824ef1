//! What a thread knows of the runtime it is in: as one of its workers, or by `block_on`.
use crate::{
    Handle,
    shared::{Scheduler, Shared, Task},
};
use coop_budget::{Exhausted, OnExhausted};
use queue_spmc::ring;
use std::{
    cell::{Cell, RefCell},
    future::Future,
    ptr::NonNull,
    task::Waker,
};
use sync_shim::sync::Arc;
use task_header::{JoinHandle, WakeKind};

sync_shim::thread_local! {
    static WORKER: Cell<Option<NonNull<Local>>> = const { Cell::new(None) };
    static ENTERED: RefCell<Option<Entered>> = RefCell::new(None);
}

/// The runtime of a thread that is no worker.
#[derive(Clone)]
struct Entered {
    handle: Handle,
    /// False inside `block_on`, whose future would be held up.
    may_block: bool,
}

/// The queues of a worker, which its own tasks reach from inside a poll.
pub(crate) struct Local {
    pub(crate) shared: Arc<Shared>,
    pub(crate) index: usize,
    /// The task that runs next: the one woken or spawned last. Private to the worker.
    slot: Cell<Option<Task>>,
    /// Whether an exhausted budget ended a poll: a long one, so that others may have come meanwhile.
    forced: Cell<bool>,
    /// Borrowed for one queue operation at a time, none of which runs user code.
    ring: RefCell<ring::Worker<Task>>,
}

impl Local {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, ring: ring::Worker<Task>) -> Self {
        Self {
            shared,
            index,
            slot: Cell::new(None),
            forced: Cell::new(false),
            ring: RefCell::new(ring),
        }
    }

    /// A task that its waker, or its parent, wants to run soon: to the slot. What was there goes
    /// behind the others, and only then is there something for a thief.
    #[inline]
    pub(crate) fn push_next(&self, task: Task) {
        if let Some(displaced) = self.slot.replace(Some(task)) {
            self.push_back(displaced);
            self.shared.notify();
        }
    }

    /// A new task, to the slot; once the runtime is closing it is cancelled here.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let (task, join) = task_header::new(future, Scheduler::of(&self.shared));
        self.accept(task);
        join
    }

    /// As [`spawn`](Self::spawn), without a handle.
    pub(crate) fn spawn_detached<F>(&self, future: F)
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.accept(task_header::new_detached(
            future,
            Scheduler::of(&self.shared),
        ));
    }

    #[inline]
    fn accept(&self, task: Task) {
        if self.shared.is_closing() {
            drop(task);
        } else {
            self.counters().spawned.add(1);
            self.push_next(task);
        }
    }

    /// A task that is to run after the others. The caller notifies.
    #[inline]
    pub(crate) fn push_back(&self, task: Task) {
        let mut ring = self.ring.borrow_mut();
        if ring.spare_capacity() == 0 {
            self.counters().overflows.add(1);
        }
        ring.push_or_overflow(task, &self.shared.injector);
    }

    /// A task that yielded, or was woken in its poll, goes behind the others. With ring and slot empty it
    /// is taken up again by this worker next, so nobody is woken for it.
    #[inline]
    pub(crate) fn requeue(&self, task: Task) {
        let alone = self.is_empty();
        self.push_back(task);
        if !alone {
            self.shared.notify();
        }
    }

    /// Whether slot and ring are empty.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        let slot = self.slot.take();
        let empty = slot.is_none();
        self.slot.set(slot);
        empty && self.ring.borrow().is_empty()
    }

    /// Whether an exhausted budget ended a poll since this was last asked.
    #[inline]
    pub(crate) fn was_forced(&self) -> bool {
        self.forced.take()
    }

    #[inline]
    pub(crate) fn take_slot(&self) -> Option<Task> {
        self.slot.take()
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<Task> {
        self.ring.borrow_mut().pop()
    }

    #[inline]
    pub(crate) fn with_ring<R>(&self, f: impl FnOnce(&mut ring::Worker<Task>) -> R) -> R {
        f(&mut self.ring.borrow_mut())
    }

    #[inline]
    pub(crate) fn counters(&self) -> &crate::metrics::Counters {
        &self.shared.remotes[self.index].counters
    }
}

impl OnExhausted for Local {
    /// A task that is woken in its poll goes behind the others already.
    fn defer(&self, waker: &Waker) {
        waker.wake_by_ref();
    }

    fn forced_yield(&self, _: Exhausted) {
        self.counters().forced_yields.add(1);
        self.forced.set(true);
    }
}

/// Makes this thread a worker for the length of `f`.
pub(crate) fn as_worker<R>(local: &Local, f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            WORKER.with(|worker| worker.set(None));
        }
    }
    WORKER.with(|worker| worker.set(Some(NonNull::from(local))));
    let _leave = Leave;
    f()
}

/// Runs `f` on this thread's queues if it is a worker.
#[inline]
pub(crate) fn with_worker<R>(f: impl FnOnce(&Local) -> R) -> Option<R> {
    let local = WORKER.try_with(Cell::get).ok().flatten()?;
    // SAFETY: `as_worker` sets it for as long as it borrows the `Local`, which is never moved or
    // borrowed mutably in that time.
    Some(f(unsafe { local.as_ref() }))
}

/// Queues a task with this thread's worker, or gives it back if it has none of that runtime.
#[inline]
pub(crate) fn schedule(scheduler: Scheduler, task: Task, why: WakeKind) -> Option<Task> {
    let mut task = Some(task);
    with_worker(|local| {
        if scheduler.is(&local.shared)
            && let Some(task) = task.take()
        {
            match why {
                WakeKind::Wake => local.push_next(task),
                _ => {
                    local.push_back(task);
                    local.shared.notify();
                }
            }
        }
    });
    task
}

/// Enters a runtime for the length of `f`, which is a `block_on`.
///
/// # Panics
/// When the thread is in a runtime already, and blocking it would hold up that runtime's tasks.
pub(crate) fn enter<R>(handle: &Handle, f: impl FnOnce() -> R) -> R {
    assert!(
        with_worker(|_| ()).is_none(),
        "block_on was called by a task: it would block a worker; await the future instead"
    );
    let nested = ENTERED.with(|at| at.borrow().as_ref().is_some_and(|at| !at.may_block));
    assert!(
        !nested,
        "block_on was called inside block_on: await the future instead"
    );
    within(
        Entered {
            handle: handle.clone(),
            may_block: false,
        },
        f,
    )
}

/// Enters a runtime for the length of `f`, a closure that may block.
pub(crate) fn enter_blocking<R>(handle: Handle, f: impl FnOnce() -> R) -> R {
    within(
        Entered {
            handle,
            may_block: true,
        },
        f,
    )
}

fn within<R>(entered: Entered, f: impl FnOnce() -> R) -> R {
    struct Leave(Option<Entered>);
    impl Drop for Leave {
        fn drop(&mut self) {
            let outer = self.0.take();
            let inner = ENTERED.with(|entered| entered.replace(outer));
            drop(inner); // The last handle may free the runtime: not under the borrow.
        }
    }
    let _leave = Leave(ENTERED.with(|outer| outer.replace(Some(entered))));
    f()
}

/// The runtime that this thread is in.
pub(crate) fn current() -> Option<Handle> {
    with_worker(|local| Handle::new(local.shared.clone())).or_else(|| {
        ENTERED
            .try_with(|entered| entered.borrow().as_ref().map(|at| at.handle.clone()))
            .ok()
            .flatten()
    })
}

/// Spawns a task on the current runtime; see [`Runtime::spawn`](crate::Runtime::spawn). By a task
/// it costs one allocation and no read-modify-write, and a `SeqCst` fence if it displaces another
/// from the LIFO slot.
///
/// # Panics
/// Outside a runtime.
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut future = Some(future);
    with_worker(|local| local.spawn(take(&mut future)))
        .unwrap_or_else(|| Handle::current().spawn(take(&mut future)))
}

/// Spawns a task that nobody waits for on the current runtime. Costs as [`spawn`] does.
///
/// # Panics
/// Outside a runtime.
pub fn spawn_detached<F>(future: F)
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let mut future = Some(future);
    with_worker(|local| local.spawn_detached(take(&mut future)))
        .unwrap_or_else(|| Handle::current().spawn_detached(take(&mut future)));
}

fn take<F>(future: &mut Option<F>) -> F {
    future.take().expect("a future is spawned once")
}

/// Runs `f` on the current runtime's threads for blocking work; see
/// [`Runtime::spawn_blocking`](crate::Runtime::spawn_blocking).
///
/// # Panics
/// Outside a runtime.
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Handle::current().spawn_blocking(f)
}
