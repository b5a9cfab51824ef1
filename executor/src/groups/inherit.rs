//! Finds the group of a spawn: the group of the task, or of the closure, that spawns.
//!
//! 1. A task that a worker runs belongs to the group that has the worker's turn.
//! 2. A closure of `spawn_blocking` or `block_in_place`, and the rest of a poll that has given its
//!    worker away, have no turn. Their group is kept here, by a counted reference. If the group is
//!    destroyed meanwhile, their spawns go to main.
//! 3. Everything else belongs to main, such as a `block_on`, and the wakers and hooks that a
//!    worker calls between two polls.
use super::group::Group;
use crate::worker::{
    context::with_core, core::Core, identity::RuntimePtr, scheduler::Scheduler, shared::Shared,
};
use std::{
    cell::RefCell,
    mem,
    num::NonZero,
    ptr::{self, NonNull},
    sync::Arc,
};

sync_shim::simulated_thread_local! {
    /// The group of a thread without a turn (rule 2).
    static INHERITED: RefCell<Option<Arc<Group>>> = const { RefCell::new(None) };
}

/// Replaces the thread's group, and returns the group that it replaces.
fn replace(group: Option<Arc<Group>>) -> Option<Arc<Group>> {
    let replaced = INHERITED.try_with(|at| {
        at.try_borrow_mut()
            .map(|mut at| mem::replace(&mut *at, group))
    });
    // A thread whose thread-locals are gone inherits nothing.
    replaced.ok().and_then(Result::ok).flatten()
}

fn get() -> Option<Arc<Group>> {
    let group = INHERITED.try_with(|at| at.try_borrow().ok()?.clone());
    group.ok().flatten()
}

/// The group that the tasks spawned by this thread inherit, until this value is dropped. The value
/// holds the group that it replaces, or nothing if the thread keeps its group.
pub(crate) struct Inherited(Option<Option<Arc<Group>>>);

impl Inherited {
    /// Makes spawns of this thread inherit the group of the core's turn, for a poll that is about
    /// to lose or to hide the core.
    pub(crate) fn of_turn(core: &Core) -> Self {
        let turn = core.queue.turn();
        // SAFETY: rule 3 of `turns`.
        let group = (!turn.is_main()).then(|| unsafe { turn.counted() });
        Self(Some(replace(group)))
    }

    /// As [`of_turn`](Self::of_turn), if this thread has a core. Otherwise the thread's group
    /// stays.
    pub(crate) fn of_thread() -> Self {
        with_core(Self::of_turn).unwrap_or(Self(None))
    }

    /// Lets the tasks that the rest of the poll spawns, without a core, inherit the group. The
    /// thread's loop calls [`clear`](Self::clear) when the poll is over.
    pub(crate) fn keep(&mut self) {
        drop(self.0.take());
    }

    /// Inherits nothing from now on: the poll that lost the thread's core is over.
    pub(crate) fn clear() {
        drop(replace(None));
    }
}

impl Drop for Inherited {
    fn drop(&mut self) {
        if let Some(replaced) = self.0.take() {
            drop(replace(replaced));
        }
    }
}

/// Returns a closure that runs `f`. Spawns of `f` inherit the group of the task or closure that
/// calls this function.
pub(crate) fn within<R, F: FnOnce() -> R>(shared: &Shared, f: F) -> impl FnOnce() -> R + use<R, F> {
    let group = current(shared).filter(|group| !group.is_main);
    move || {
        let _inherited = group.map(|group| Inherited(Some(replace(Some(group)))));
        f()
    }
}

/// The group of the task or closure that this thread runs in this runtime, if there is one.
pub(super) fn current(shared: &Shared) -> Option<Arc<Group>> {
    let is_ours = |core: &Core| ptr::eq(&*core.shared, shared);
    // SAFETY: rule 3 of `turns`.
    let turn = with_core(|core| is_ours(core).then(|| unsafe { core.queue.turn().counted() }));
    match turn {
        Some(turn) => turn,
        None => get().filter(|group| group.runtime() == shared.address()),
    }
}

/// The bit in a scheduler's address for a group other than main.
const OTHER: usize = 1;

impl Scheduler {
    /// The scheduler of main's tasks.
    pub(crate) fn of(shared: &Shared) -> Self {
        shared.groups.main_scheduler
    }

    /// The scheduler of the task that runs the futures of `at_exit`, in a group made for it.
    pub(crate) fn at_exit(shared: &Shared) -> Self {
        shared.groups.enter_at_exit()
    }

    pub(crate) fn in_group(group: &Arc<Group>) -> Self {
        const { assert!(align_of::<Group>() > OTHER) };
        // `Arc::as_ptr` returns a pointer with the provenance that `counted` needs.
        let at = NonNull::new(Arc::as_ptr(group).cast_mut()).expect("an `Arc` is not null");
        let is_main = group.is_main;
        Self(match is_main {
            true => at,
            false => at.map_addr(|address| address | OTHER),
        })
    }

    #[inline]
    pub(crate) fn group(self) -> NonNull<Group> {
        self.0.map_addr(|address| {
            // SAFETY: no group is at the address `OTHER`, as a group's alignment is greater. So the
            // address without the bit is not 0.
            unsafe { NonZero::new_unchecked(address.get() & !OTHER) }
        })
    }

    /// Whether the group is its runtime's main group.
    #[inline(always)]
    pub(crate) fn is_main(self) -> bool {
        self.0.addr().get() & OTHER == 0
    }

    /// Takes a task out of a group other than main. With C's calling convention
    /// the compiler knows that this function does not unwind. So a task of main costs no
    /// `catch_unwind`.
    ///
    /// # Safety
    /// `group` is the group of a task that has not left the group before.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe extern "C" fn leave_group(group: NonNull<Group>) {
        // SAFETY: the task is in its group until now (rule 5 of `groups`).
        unsafe { group.as_ref() }.leave();
    }

    /// A counted reference to the group.
    ///
    /// # Safety
    /// The group is in memory.
    pub(crate) unsafe fn counted(self) -> Arc<Group> {
        // SAFETY: the pointer comes from an `Arc`. The caller guarantees that the group is in
        // memory, so a counted reference to the group still exists.
        unsafe { Arc::increment_strong_count(self.group().as_ptr()) };
        // SAFETY: as above; the line before has added the count for this `Arc`.
        unsafe { Arc::from_raw(self.group().as_ptr()) }
    }

    /// Enters the group of the task or closure that this thread runs, for a task that this thread
    /// spawns. Enters main if there is no such group, or if it is gone or of another runtime.
    pub(crate) fn inherited(shared: &Shared) -> Self {
        let on_worker = with_core(|core| {
            let is_ours = ptr::eq(&*core.shared, shared);
            is_ours.then(|| core.queue.inherit())
        });
        if let Some(Some(scheduler)) = on_worker {
            return scheduler;
        }
        if !shared.groups.is_used() {
            return Self::of(shared);
        }
        match current(shared) {
            Some(group) if group.enter() => Self::in_group(&group),
            _ => Self::of(shared),
        }
    }

    /// As [`inherited`](Self::inherited), for a task that the running task of this core spawns.
    #[inline]
    pub(crate) fn inherited_on(core: &Core) -> Self {
        core.queue.inherit()
    }

    /// Whether the task is of this runtime.
    #[inline]
    pub(crate) fn is(self, shared: &Shared) -> bool {
        self == Self::of(shared) || self.is_group_of(shared)
    }

    #[cold]
    fn is_group_of(self, shared: &Shared) -> bool {
        if !shared.groups.is_used() {
            return false;
        }
        // SAFETY: the caller has a `Notified` of the group (rule 5 of `groups`).
        let group = unsafe { self.group().as_ref() };
        group.runtime() == shared.address()
    }

    /// The runtime.
    ///
    /// # Safety
    /// The caller has a `Notified` with this scheduler.
    pub(crate) unsafe fn runtime(self) -> RuntimePtr {
        // SAFETY: the `Notified` keeps the group (rule 5 of `groups`).
        unsafe { self.group().as_ref() }.runtime()
    }
}
