//! What a thread knows of the runtime it is in: as one of its workers, or by `block_on`.
//!
//! | | `CORE` | `ENTERED` |
//! |---|---|---|
//! | a worker | its core | nothing |
//! | in `block_on` | null | the runtime, blocking refused |
//! | in a closure of `spawn_blocking`, or under an `EnterGuard` | null | the runtime, blocking allowed |
//! | in a closure of `block_in_place` | null | the runtime, blocking allowed |
//! | in the rest of that poll, if the core was taken over meanwhile | null | the runtime, blocking refused |
use crate::{
    Handle,
    core::Core,
    local,
    shared::{Scheduler, Task},
};
use coop_budget::{Budget, Exhausted, OnExhausted};
use std::{
    cell::{Cell, RefCell},
    ptr,
    task::Waker,
};
use sync_shim::sync::Arc;
use task_header::{After, WakeKind};

sync_shim::thread_local! {
    static CORE: Cell<*const Core> = const { Cell::new(ptr::null()) };
    static ENTERED: RefCell<Option<Entered>> = const { RefCell::new(None) };
    /// Whether a task had asked to go behind the others before its poll lost the core, which knew.
    static GAVE_WAY: Cell<bool> = const { Cell::new(false) };
}

/// The runtime of a thread that is no worker.
#[derive(Clone)]
struct Entered {
    handle: Handle,
    /// False where a future would be held up.
    may_block: bool,
}

/// Makes this thread a worker for as long as it lives, or until a task gives the core away.
pub(crate) struct Seat {
    outer: *const Core,
}

impl Seat {
    /// # Safety
    /// The core is good until the seat is dropped, or until it was given away by [`give`].
    pub(crate) unsafe fn take(core: *const Core) -> Self {
        Self {
            outer: CORE.with(|at| at.replace(core)),
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        CORE.with(|at| at.set(self.outer));
    }
}

/// This thread's core if it is a worker.
///
/// # Safety
/// What this gives is not used after a call of user code in which a task may give the core away.
#[inline]
pub(crate) unsafe fn core<'a>() -> Option<&'a Core> {
    let core = CORE.try_with(Cell::get).ok()?;
    // SAFETY: null, or good by the `Seat`'s contract for as long as it is there; only `give` takes it away.
    unsafe { core.as_ref() }
}

/// Runs `f` on this thread's core if it is a worker.
///
/// `f` runs no code of users, while a task may give the core away.
#[inline]
pub(crate) fn with_core<R>(f: impl FnOnce(&Core) -> R) -> Option<R> {
    // SAFETY: `f` calls no such code.
    unsafe { core() }.map(f)
}

/// What becomes of a task after its poll: the list that it is kept in, if this thread is a worker still, and whether it gives way.
#[inline]
pub(crate) fn after_poll<'a>() -> After<'a, Scheduler> {
    // SAFETY: the poll is over, and the list is not used after what user code its end calls.
    let Some(core) = (unsafe { core() }) else {
        return After {
            owned: None,
            again: GAVE_WAY.with(Cell::take),
        };
    };
    After {
        // SAFETY: the poll is over, and what ends a run doesn't use the list across user code.
        owned: Some(unsafe { core.owned() }),
        again: core.end_poll(),
    }
}

/// Has a task go behind the others when its poll is over. The waker's poll is the one that calls this; a task of this worker's needs no wake for that, while
/// anything else with a waker does: a part of a task, a future in `block_on`, another runtime's.
#[inline]
pub(crate) fn give_way(waker: &Waker) {
    if with_core(|core| core.give_way(waker)) != Some(true) {
        waker.wake_by_ref();
    }
}

/// Takes the core off this thread, if its task may give it away.
pub(crate) fn give() -> Option<Box<Core>> {
    if !with_core(|core| core.lendable.get())? {
        return None;
    }
    let core = CORE.with(|at| at.replace(ptr::null()));
    // SAFETY: a core that may be given away was made from a box by its thread's loop, which looks here
    // before it uses it again.
    Some(unsafe { Box::from_raw(core.cast_mut()) })
}

/// The core is gone, of which a task in its poll had asked, or not, to go behind the others.
pub(crate) fn lose(gave_way: bool) {
    GAVE_WAY.with(|at| at.set(gave_way));
}

/// Makes this thread the worker again that it was.
pub(crate) fn give_back(core: Box<Core>) {
    CORE.with(|at| at.set(Box::into_raw(core)));
}

/// What an exhausted budget does: there is one of it for all threads.
pub(crate) struct OnWorker;

impl OnExhausted for OnWorker {
    fn defer(&self, waker: &Waker) {
        give_way(waker);
    }

    fn forced_yield(&self, why: Exhausted) {
        with_core(|core| core.forced_yield(why));
    }
}

/// Queues a task with this thread's worker, or gives it back if it has none of that runtime.
#[inline]
pub(crate) fn schedule(scheduler: Scheduler, task: Task, why: WakeKind) -> Option<Task> {
    let mut task = Some(task);
    with_core(|core| {
        if scheduler.is(&core.shared)
            && let Some(task) = task.take()
        {
            core.schedule(task, why);
        }
    });
    task
}

/// Enters a runtime for the length of `f`, which is a `block_on`.
///
/// # Panics
/// When the thread is in a runtime already, and blocking it would hold up that runtime's tasks.
pub(crate) fn enter<R>(handle: &Handle, f: impl FnOnce() -> R) -> R {
    assert_may_block_on();
    let _within = Within::enter(handle.clone(), false);
    f()
}

/// # Panics
/// As for [`enter`].
pub(crate) fn assert_may_block_on() {
    assert!(
        !local::is_polled(),
        "block_on was called in a local set: await the future instead"
    );
    assert!(
        with_core(|_| ()).is_none(),
        "block_on was called by a task: it would block a worker; await the future instead"
    );
    assert!(
        may_block() != Some(false),
        "block_on was called inside block_on: await the future instead"
    );
}

/// Whether blocking is allowed in the runtime that this thread is in as no worker.
pub(crate) fn may_block() -> Option<bool> {
    let may_block = |at: &RefCell<Option<Entered>>| at.borrow().as_ref().map(|at| at.may_block);
    ENTERED.try_with(may_block).ok().flatten()
}

/// The budget of a poll in the runtime that this thread is in.
pub(crate) fn budget() -> Option<Budget> {
    with_core(|core| core.budget).or_else(|| {
        let budget = |at: &Entered| at.handle.shared().settings.budget;
        let entered = ENTERED.try_with(|at| at.borrow().as_ref().map(budget));
        entered.ok().flatten()
    })
}

/// A thread in a runtime, as no worker.
pub(crate) struct Within {
    outer: Option<Entered>,
}

impl Within {
    pub(crate) fn enter(handle: Handle, may_block: bool) -> Self {
        let inner = Some(Entered { handle, may_block });
        Self {
            outer: ENTERED.with(|at| at.replace(inner)),
        }
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        let outer = self.outer.take();
        let inner = ENTERED.with(|at| at.replace(outer));
        drop(inner); // The last handle may free the runtime: not under the borrow.
    }
}

/// Out of the runtime that a poll without its core was in.
pub(crate) fn leave() {
    drop(Within { outer: None });
}

/// Allows or forbids blocking from here on.
pub(crate) fn set_may_block(may_block: bool) {
    ENTERED.with(|at| {
        if let Some(at) = at.borrow_mut().as_mut() {
            at.may_block = may_block;
        }
    });
}

/// The runtime that this thread is in.
pub(crate) fn current() -> Option<Handle> {
    with_core(|core| Handle::new(core.shared.clone())).or_else(|| {
        ENTERED
            .try_with(|entered| entered.borrow().as_ref().map(|at| at.handle.clone()))
            .ok()
            .flatten()
    })
}

/// Whether this thread is one that a runtime's end would wait for, or that must not wait: it polls futures.
pub(crate) fn must_not_wait_for(handle: &Handle) -> bool {
    let own = |other: &Handle| Arc::ptr_eq(handle.shared(), other.shared());
    with_core(|_| ()).is_some()
        || may_block() == Some(false)
        || current().is_some_and(|current| own(&current))
}
