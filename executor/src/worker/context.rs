//! The core of the current thread, if the thread is a worker.
//!
//! A thread-local points to the core while the worker's tasks are polled, so that their spawns and
//! wakes find its queues. The thread-local is null while a closure of `block_in_place` runs. It
//! stays null for the rest of the poll if another thread accepted the core during the closure.
//! [`scope`](crate::scope) has the other ways in which a thread may belong to a runtime.
use crate::{
    events::ClockHold,
    scope::{self, In},
    worker::{core::Core, scheduler::Scheduler, shared::Shared},
};
use coop_budget::{Exhausted, OnExhausted};
use std::{cell::Cell, ptr, task::Waker};
use sync_shim::sync::Arc;
use task_header::Owned;
use worker_queue::RunQueue;

sync_shim::thread_local! {
    static CORE: Cell<*const Core> = const { Cell::new(ptr::null()) };
    /// Whether an `EnterGuard` may have come or gone while the thread had no core. If so, a
    /// `syscall` decides anew at its end whether spawns take the slow path.
    static MISSED: Cell<bool> = const { Cell::new(false) };
    /// Keeps a test's paused clock from jumping in the rest of a poll that has lost its core. The
    /// runtime does not know of the poll's thread then.
    static CLOCK_HOLD: Cell<Option<ClockHold>> = const { Cell::new(None) };
}

/// Runs `f` as a worker: this thread has the core until `f` returns, or a task gives the core away.
///
/// # Safety
/// The core is valid until `f` returns or a task gives the core away.
pub(crate) unsafe fn as_worker<R>(
    shared: &Arc<Shared>,
    core: *const Core,
    f: impl FnOnce() -> R,
) -> R {
    let _outer = Outer(CORE.with(Cell::get));
    // SAFETY: guaranteed by the caller.
    let index = unsafe { (*core).index };
    let run = || {
        set(core);
        f()
    };
    scope::within(In::Worker(shared, index), || {
        task_header::without_current(run)
    })
}

impl Core {
    /// Runs `f` in this worker's scope. If the thread is in that scope, just runs `f`, unless a
    /// task has leaked an `EnterGuard` there: `f` must not be in the guard's runtime. The core
    /// stays with this thread.
    pub(crate) fn as_worker<R>(&self, f: impl FnOnce() -> R) -> R {
        debug_assert!(!self.lending.is_allowed(), "it could be given away");
        // A guard in the scope makes spawns special. Hooks and listed tasks do so, too.
        let may_be_guarded = self.special_spawns.get();
        if ptr::eq(CORE.with(Cell::get), self) && !(may_be_guarded && scope::is_guarded()) {
            return f();
        }
        // SAFETY: the core is borrowed until `f` returns, and is not given away.
        unsafe { as_worker(&self.shared, self, f) }
    }
}

/// Runs user code in the middle of an operation of this thread's core. The user code cannot give
/// the core away.
pub(crate) fn hold_core<R>(f: impl FnOnce() -> R) -> R {
    struct Restore(Option<bool>);
    impl Drop for Restore {
        fn drop(&mut self) {
            if let Some(lendable) = self.0 {
                with_core(|core| core.lending.restore(lendable));
            }
        }
    }
    let _restore = Restore(with_core(|core| core.lending.forbid()));
    f()
}

/// Runs user code that must not find this thread's core: the wakes by that code take the path of
/// wakes from outside.
pub(crate) fn without_core<R>(f: impl FnOnce() -> R) -> R {
    let _outer = Outer(CORE.with(|at| at.replace(ptr::null())));
    f()
}

/// Sets the thread-local back to this pointer when the value is dropped.
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

/// Decides whether the core's spawns take the slow path: a hook is set, or an `EnterGuard`
/// redirects the spawns. Called after each change of the thread's scopes or core.
fn update_special_spawns() {
    let updated = with_core(|core| {
        let special = core.shared.settings.special_spawns || scope::is_guarded();
        core.special_spawns.set(special);
    });
    if updated.is_none() {
        let _ = MISSED.try_with(|missed| missed.set(true));
    }
}

/// Returns this thread's core, if the thread is a worker.
///
/// # Safety
/// The caller does not use the reference after a call of user code in which a task may give the
/// core away.
#[inline]
pub(crate) unsafe fn core<'a>() -> Option<&'a Core> {
    let core = CORE.try_with(Cell::get).ok()?;
    // SAFETY: the pointer is null, or valid by the contract of `as_worker`. Only `take_core` and
    // `take_core_for_call` take the core away before the end of `as_worker`. By the caller's
    // contract the reference is not used after such a call.
    unsafe { core.as_ref() }
}

/// Runs `f` on this thread's core, if the thread is a worker.
///
/// `f` calls no user code in which a task may give the core away.
#[inline]
pub(crate) fn with_core<R>(f: impl FnOnce(&Core) -> R) -> Option<R> {
    // SAFETY: by the rule of this function, `f` calls no user code that may give the core away.
    unsafe { core() }.map(f)
}

/// Returns the list that keeps a task after its poll, if this thread is still a worker.
#[inline]
pub(crate) fn after_poll<'a>() -> Option<&'a mut Owned<Scheduler>> {
    // SAFETY: the poll is over. The caller does not use the list after the task's end has called
    // user code.
    let core = unsafe { core() }?;
    // SAFETY: the poll is over, and the end of a run does not use the list across user code.
    Some(unsafe { core.owned() })
}

/// Yields in the poll that calls this function. `waker` is the waker of that poll.
///
/// If `waker` is that of the task that this thread polls, the task is requeued behind the others
/// after its poll, without a wake. Any other `waker` is woken: that of a part of a task with a
/// waker of its own, or that of a future in `block_on`.
#[inline]
pub(crate) fn yield_task(waker: &Waker) {
    if !task_header::yield_now(waker) {
        waker.wake_by_ref();
    }
}

/// Core that was taken out of the thread-local, for `block_in_place`.
pub(crate) enum TakenCore {
    /// The task may give the core away.
    Lendable(Box<Core>),
    /// The core stays with this thread. The drop of this value puts the core back.
    Pinned(#[expect(dead_code, reason = "held for its drop")] Outer),
}

/// Takes the core out of the thread-local. If the core is pinned, opens its LIFO slot to thieves.
pub(crate) fn take_core() -> Option<TakenCore> {
    let lendable = with_core(|core| {
        // The core is lent even while the runtime ends: the closure may wait for the end of a task
        // in the core's ring. The thread that accepts the core drops that task.
        let lendable = core.lending.is_allowed();
        if !lendable {
            RunQueue::open_slot(&core.queue, core);
        }
        lendable
    })?;
    let core = CORE.with(|at| at.replace(ptr::null()));
    if !lendable {
        return Some(TakenCore::Pinned(Outer(core)));
    }
    // SAFETY: `threads::drive` made the pointer of a lendable core from a box. Before this thread's
    // loop uses the core again, it looks in the thread-local whether the thread still has the core.
    Some(TakenCore::Lendable(unsafe {
        Box::from_raw(core.cast_mut())
    }))
}

/// Takes the core out of the thread-local, for a call that the monitor watches. Returns `None` if
/// there is no core, if the core stays with this thread, or if there is no monitor.
#[inline]
pub(crate) fn take_core_for_call() -> Option<Box<Core>> {
    let may =
        with_core(|core| core.lending.is_allowed() && core.shared.monitor.start(&core.shared));
    if may != Some(true) {
        return None;
    }
    let core = CORE.with(|at| at.replace(ptr::null()));
    // SAFETY: as in `take_core`.
    Some(unsafe { Box::from_raw(core.cast_mut()) })
}

/// Keeps the hold of the clock until the end of this thread's poll, which has lost its core.
pub(crate) fn keep_clock(hold: Option<ClockHold>) {
    CLOCK_HOLD.with(|at| at.set(hold));
}

/// Lets the clock go on, after this thread's poll that has lost its core.
pub(crate) fn release_clock() {
    let _: Option<ClockHold> = CLOCK_HOLD.with(Cell::take);
}

/// Puts a core into the thread-local, from which it was taken before.
pub(crate) fn put_core(core: Box<Core>) {
    set(Box::into_raw(core));
}

/// Puts back a core that was only in `Remote::call` since it was taken. The scopes that decide
/// about the core's spawns are the same as then, unless an `EnterGuard` came or went.
#[inline]
pub(crate) fn put_core_after_call(core: Box<Core>) {
    CORE.with(|at| at.set(Box::into_raw(core)));
    if MISSED.with(Cell::get) {
        catch_up();
    }
}

#[cold]
#[inline(never)]
fn catch_up() {
    MISSED.with(|missed| missed.set(false));
    update_special_spawns();
}

/// The scope of an `EnterGuard`. After the scope is entered, and after it is left, this value
/// decides anew whether spawns of this thread's core take the slow path.
pub(crate) struct Entered {
    _scope: scope::Guard,
    _after: UpdateSpecialSpawns,
}

impl Entered {
    pub(crate) fn enter(shared: Arc<Shared>) -> Self {
        let entered = Self {
            _scope: scope::Guard::enter(shared),
            _after: UpdateSpecialSpawns,
        };
        update_special_spawns();
        entered
    }
}

/// Decides about the core's spawns at its drop, which comes after that of the scope.
struct UpdateSpecialSpawns;

impl Drop for UpdateSpecialSpawns {
    fn drop(&mut self) {
        update_special_spawns();
    }
}

/// Actions of an exhausted budget on a worker. All threads share this one value.
pub(crate) struct OnWorker;

impl OnExhausted for OnWorker {
    fn defer(&self, waker: &Waker) {
        yield_task(waker);
    }

    fn forced_yield(&self, why: Exhausted) {
        with_core(|core| core.forced_yield(why));
    }
}
