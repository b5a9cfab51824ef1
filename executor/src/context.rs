//! A thread's core, if it is a worker: what it is to a runtime beside that is told in [`scope`](crate::scope).
//!
//! The core is here while tasks of its worker are polled, and what these do finds it here; not while a closure of `block_in_place` runs, and not in the rest of a
//! poll if the core was taken over meanwhile.
use crate::{
    core::Core,
    scope::{self, In},
    shared::{Shared, Task},
    wake::Scheduler,
};
use coop_budget::{Exhausted, OnExhausted};
use std::{cell::Cell, ptr, task::Waker};
use sync_shim::sync::Arc;
use task_header::{After, WakeKind};

sync_shim::thread_local! {
    static CORE: Cell<*const Core> = const { Cell::new(ptr::null()) };
    /// Whether a task had asked to go behind the others before its poll lost the core, which knew. Set by each loss.
    static GAVE_WAY: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread a worker while `f` runs, or until a task gives the core away.
///
/// # Safety
/// The core is good until `f` is done, or until it was given away.
pub(crate) unsafe fn seated<R>(
    shared: &Arc<Shared>,
    core: *const Core,
    f: impl FnOnce() -> R,
) -> R {
    let _outer = Outer(CORE.with(Cell::get));
    scope::within(In::Worker(shared), || {
        set(core);
        f()
    })
}

/// Brings a core back when it is dropped.
pub(crate) struct Outer(*const Core);

impl Drop for Outer {
    fn drop(&mut self) {
        set(self.0);
    }
}

fn set(core: *const Core) {
    CORE.with(|at| at.set(core));
    update_special_spawns();
}

/// After a change of scopes, or of the core: the fast way to spawn is for those that no guard leads elsewhere.
pub(crate) fn update_special_spawns() {
    with_core(|core| {
        let special = core.shared.settings.special_spawns || scope::is_guarded();
        core.special_spawns.set(special);
    });
}

/// This thread's core if it is a worker.
///
/// # Safety
/// What this gives is not used after a call of user code in which a task may give the core away.
#[inline]
pub(crate) unsafe fn core<'a>() -> Option<&'a Core> {
    let core = CORE.try_with(Cell::get).ok()?;
    // SAFETY: null, or good by the contract of `seated` for as long as it is there; only `take_off` takes it away.
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
            again: GAVE_WAY.with(Cell::get),
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

/// A core that was taken off its thread.
pub(crate) enum Off {
    /// All of it: the task may give it away.
    Whole(Box<Core>),
    /// It stays this thread's, which has it again when this is dropped.
    Held(#[expect(dead_code, reason = "its drop")] Outer),
}

/// Takes the core off this thread. What is in the slot of one that stays is left to others.
pub(crate) fn take_off() -> Option<Off> {
    let whole = with_core(|core| {
        // Also where the runtime ends: what the closure waits for may be a task in this ring, which the next thread drops.
        let whole = core.lendable.get();
        if !whole {
            core.queue.open_slot(core);
        }
        whole
    })?;
    let core = CORE.with(|at| at.replace(ptr::null()));
    if !whole {
        return Some(Off::Held(Outer(core)));
    }
    // SAFETY: a core that may be given away was made from a box by its thread's loop, which looks here
    // before it uses it again.
    Some(Off::Whole(unsafe { Box::from_raw(core.cast_mut()) }))
}

/// The core is gone, of which a task in its poll had asked, or not, to go behind the others.
pub(crate) fn lose(gave_way: bool) {
    GAVE_WAY.with(|at| at.set(gave_way));
}

/// Makes this thread the worker again that it was.
pub(crate) fn give_back(core: Box<Core>) {
    set(Box::into_raw(core));
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
