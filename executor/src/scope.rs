//! The scopes of a thread: which runtime it is in, and whether it may block.
//!
//! A *scope* is an operation of this crate that a thread has begun and not finished. The scopes of
//! a thread are a linked list, the innermost first.
//!
//! | scope | the thread | names its runtime | if the thread blocks here |
//! |---|---|---|---|
//! | [`Worker`](In::Worker) | is a worker, up to the end of the poll in which it may lose its core | yes | the thread holds up tasks |
//! | [`BlockOn`](In::BlockOn) | is in `block_on` | yes | the thread holds up the future |
//! | [`LocalSet`](In::LocalSet) | polls the set | no | the thread holds up the set |
//! | [`Closure`](In::Closure) | runs a closure of `spawn_blocking` | yes | that is allowed |
//! | [`BlockInPlace`](In::BlockInPlace) | runs a closure of `block_in_place` | no | that is allowed |
//! | [`LocalGuard`](In::LocalGuard) | holds a `LocalEnterGuard` | no | the next outer scope decides |
//! | [`Guard`](In::Guard) | holds an `EnterGuard` | yes | the next outer scope decides |
//! | [`Ending`](In::Ending) | has no core, and drops the futures of queued tasks | no | the next outer scope decides |
//!
//! 1. The current runtime is that of the innermost scope that names one.
//! 2. The last column says whether a thread may block on a future. The innermost scope decides,
//!    unless it leaves the decision to the next outer scope. If no scope decides, the thread may
//!    block.
//! 3. A thread may wait for a runtime's end where the thread may block on a future. The exceptions
//!    are the places where the end may wait for the thread in turn:
//!    1. in a thread of that runtime, from its start until the last destructor of its
//!       thread-locals has run;
//!    2. in any scope of that runtime, however far out, other than a guard;
//!    3. in a wake from outside. The wake may drop tasks, and the drop of a driven worker waits for
//!       that wake.
//! 4. A scope that runs a closure is stored in the stack frame that runs it. A guard may be moved,
//!    leaked, or dropped in any order. So its scope is stored in a box, and may leave the list from
//!    any position. A leaked guard's scope stays in the list, and its box is never freed.
//! 5. Only the thread itself uses its list. The thread-locals here have no destructor, as
//!    destructors of other thread-locals may use this module.
//! 6. `process::exit` may run the destructors of thread-locals while scopes are still in stack
//!    frames. These frames then stay for good. Such a destructor may drop the runtime or the local
//!    set that the caller has put into a thread-local. So the scope keeps its runtime or set alive.
//!    A driven [`Worker`](crate::Worker) that is dropped in its own poll leaks its core, because
//!    the scope points to the core. A driven worker that is dropped in its own park leaks its core,
//!    too, because the core counts as asleep then.
//! 7. While the thread is in a scope that names a runtime, the current pool of `blocking_threads`
//!    is that of the current runtime, for files and other code that was given no pool.
//! 8. `blocking_threads` has a list of entered pools, and `net_driver` one of entered drivers, each
//!    built like this one. The lists stay three: each of these crates works without the others, a
//!    program may enter a pool or a driver inside a scope, and the innermost frame of each list
//!    decides by a rule of its own. They would share the ten lines of [`enter`](Scope::enter) and
//!    [`leave`](Scope::leave).
use crate::{
    blocking,
    events::{Entered, Events},
    local::LocalTasks,
    settings::hooks::Hooks,
    worker::shared::Shared,
};
use coop_budget::Budget;
use std::{
    cell::Cell,
    ptr::{self, NonNull},
    rc::Rc,
};
use sync_shim::sync::Arc;
use worker_idle::announce;

sync_shim::thread_local! {
    static INNERMOST: Cell<*const Scope<'static>> = const { Cell::new(ptr::null()) };
    /// The address of the hooks of the runtime that started this thread. It is only compared.
    static OWN_HOOKS: Cell<*const Hooks> = const { Cell::new(ptr::null()) };
}

/// The kind of a scope, with its runtime or set.
pub(crate) enum In<'a> {
    /// With the worker's index.
    Worker(&'a Arc<Shared>, usize),
    /// With what the thread does for the tasks of a runtime of one thread.
    BlockOn(Arc<Shared>, Cell<OneThread>),
    LocalSet(Rc<LocalTasks>),
    Closure(&'a Arc<Shared>),
    BlockInPlace,
    Guard(Arc<Shared>),
    LocalGuard(Rc<LocalTasks>),
    Ending(&'a Shared),
}

/// The part of a thread in `block_on` in a runtime that has no worker threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OneThread {
    /// The runtime has worker threads, or the call is that of a handle, which runs no tasks.
    Other,
    /// The thread waits until it may run the runtime's tasks.
    Waits,
    /// The thread runs the runtime's worker.
    Drives,
}

/// The work that waits while a thread blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldsUp {
    Nothing,
    Tasks,
    BlockOn,
    LocalSet,
}

struct Scope<'a> {
    is: In<'a>,
    outer: Cell<*const Scope<'static>>,
}

impl In<'_> {
    fn runtime(&self) -> Option<&Arc<Shared>> {
        match self {
            In::Worker(shared, _) | In::Closure(shared) => Some(shared),
            In::BlockOn(shared, _) | In::Guard(shared) => Some(shared),
            In::LocalSet(_) | In::LocalGuard(_) | In::BlockInPlace | In::Ending(_) => None,
        }
    }

    fn holds_up(&self) -> Option<HoldsUp> {
        match self {
            In::Worker(..) => Some(HoldsUp::Tasks),
            In::BlockOn(..) => Some(HoldsUp::BlockOn),
            In::LocalSet(_) => Some(HoldsUp::LocalSet),
            In::Closure(_) | In::BlockInPlace => Some(HoldsUp::Nothing),
            In::Guard(_) | In::LocalGuard(_) | In::Ending(_) => None,
        }
    }
}

impl<'a> Scope<'a> {
    fn new(is: In<'a>) -> Self {
        Self {
            is,
            outer: Cell::new(ptr::null()),
        }
    }

    /// The address by which the list links this scope.
    fn link(&self) -> *const Scope<'static> {
        ptr::from_ref(self).cast()
    }

    /// Puts the scope at the front of this thread's list.
    ///
    /// # Safety
    /// The scope is in no list. Until this thread [leaves](Self::leave) the scope, the scope is not
    /// moved or freed.
    unsafe fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self.link())));
    }

    /// Takes the scope out of the list, from any position.
    fn leave(&self) {
        INNERMOST.with(|innermost| {
            let mut at = innermost;
            while at.get() != self.link() {
                // SAFETY: this scope was entered, so it is further down the list, and all scopes of
                // the list are valid (`enter`).
                at = &unsafe { &*at.get() }.outer;
            }
            at.set(self.outer.get());
        });
    }
}

/// Runs `f` in a scope.
pub(crate) fn within<R>(is: In<'_>, f: impl FnOnce() -> R) -> R {
    struct Leave<'a>(&'a Scope<'a>);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.leave();
        }
    }
    let scope = Scope::new(is);
    // SAFETY: the scope stays in this frame until `_leave` takes it out of the list.
    unsafe { scope.enter() };
    let _leave = Leave(&scope);
    let (runtime, worker) = match &scope.is {
        In::Worker(shared, worker) => (Some(*shared), Some(*worker)),
        is => (is.runtime(), None),
    };
    blocking::within(runtime.is_some(), || {
        // SAFETY: the scope keeps its runtime alive, also where `f` ends the process (rule 6).
        unsafe { Events::borrowed_scope(runtime.map(|shared| &shared.events), worker, f) }
    })
}

/// Scope of a guard, in a box. The drop leaves the scope.
pub(crate) struct Entry(NonNull<Scope<'static>>);

impl Entry {
    pub(crate) fn new(is: In<'static>) -> Self {
        let entry = Self(NonNull::from(Box::leak(Box::new(Scope::new(is)))));
        // SAFETY: the scope is new, and stays in its box until the drop of this `Entry` leaves it.
        // The `Entry` is dropped in this thread, as it is not `Send`.
        unsafe { entry.scope().enter() };
        entry
    }

    fn scope(&self) -> &Scope<'static> {
        // SAFETY: only the drop frees the box.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.scope().leave();
        // SAFETY: the pointer was made from a box, and the scope is in no list by now. (The scope
        // may have the last reference to its runtime, or to the tasks of its local set.)
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// Scope of an `EnterGuard`.
pub(crate) struct Guard {
    // Dropped first: the drop of the entry may drop the runtime.
    _pool: blocking_threads::EnteredPool,
    _entry: Entry,
    _entered: Entered,
}

impl Guard {
    /// The caller must decide anew whether spawns take the slow path: after this call, and after
    /// the drop.
    pub(crate) fn enter(shared: Arc<Shared>) -> Self {
        let entered = shared.events.enter();
        Self {
            _entry: Entry::new(In::Guard(shared)),
            _entered: entered,
            _pool: blocking::enter(),
        }
    }
}

/// The first result that `look` returns, from the innermost scope outwards. `look` calls no user
/// code.
fn innermost<R>(mut look: impl FnMut(&In<'_>) -> Option<R>) -> Option<R> {
    let mut at = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    loop {
        // SAFETY: the pointer is null or names a scope of the list. The scopes of the list are
        // valid (`Scope::enter`), and no scope leaves the list meanwhile.
        let scope = unsafe { at.as_ref() }?;
        if let Some(result) = look(&scope.is) {
            return Some(result);
        }
        at = scope.outer.get();
    }
}

/// Runtime that this thread is in (rule 1).
pub(crate) fn current() -> Option<Arc<Shared>> {
    innermost(|is| is.runtime().cloned())
}

/// Budget of a poll in the current runtime, or the default.
pub(crate) fn budget() -> Budget {
    innermost(|is| Some(is.runtime()?.settings.budget)).unwrap_or_default()
}

/// Whether the current runtime lists its tasks.
pub(crate) fn lists_tasks() -> bool {
    innermost(|is| Some(is.runtime()?.settings.lists_tasks)) == Some(true)
}

/// Whether an `EnterGuard` names the current runtime.
pub(crate) fn is_guarded() -> bool {
    innermost(|is| Some((is.runtime()?, matches!(is, In::Guard(_))).1)) == Some(true)
}

/// Innermost local set that this thread polls, or has entered.
pub(crate) fn local_set() -> Option<Rc<LocalTasks>> {
    innermost(|is| match is {
        In::LocalSet(set) | In::LocalGuard(set) => Some(Rc::clone(set)),
        _ => None,
    })
}

/// Innermost local set that this thread polls, whichever sets it has entered since.
pub(crate) fn polled_set() -> Option<Rc<LocalTasks>> {
    innermost(|is| match is {
        In::LocalSet(set) => Some(Rc::clone(set)),
        _ => None,
    })
}

/// Whether this thread polls this set, in any scope.
pub(crate) fn polls(set: &Rc<LocalTasks>) -> bool {
    let polled = |is: &In<'_>| match is {
        In::LocalSet(other) => Rc::ptr_eq(other, set).then_some(()),
        _ => None,
    };
    innermost(polled).is_some()
}

/// Whether a worker's scope of this thread, at any depth, borrows this same `Arc`, which is a field
/// of the worker's core.
pub(crate) fn is_worker_by(shared: &Arc<Shared>) -> bool {
    let by = |is: &In<'_>| match is {
        In::Worker(other, _) => ptr::eq(*other, shared).then_some(()),
        _ => None,
    };
    innermost(by).is_some()
}

/// Whether this thread is dropping the futures of this runtime's queued tasks.
pub(crate) fn is_ending(shared: &Shared) -> bool {
    let ending = |is: &In<'_>| match is {
        In::Ending(other) => ptr::eq(*other, shared).then_some(()),
        _ => None,
    };
    innermost(ending).is_some()
}

/// Returns the work that waits while this thread blocks (rule 2).
pub(crate) fn holds_up() -> HoldsUp {
    innermost(|is| is.holds_up()).unwrap_or(HoldsUp::Nothing)
}

/// Whether the work that waits while this thread blocks is that of a runtime's only thread.
pub(crate) fn holds_up_only_thread() -> bool {
    let is_only = |is: &In<'_>| match is {
        In::Worker(shared, _) => Some(shared.settings.current_thread),
        In::BlockOn(_, part) => Some(part.get() != OneThread::Other),
        is => is.holds_up().map(|_| false),
    };
    innermost(is_only) == Some(true)
}

/// Records that this thread runs the worker of the runtime whose `block_on` it is in.
pub(crate) fn drive() {
    innermost(|is| match is {
        In::BlockOn(_, part) => Some(part.replace(OneThread::Drives)),
        _ => None,
    });
}

/// Whether this thread is in the future of a `block_on` that runs a worker, or in a local set of
/// that future.
pub(crate) fn drives() -> bool {
    let drives = |is: &In<'_>| match is {
        In::BlockOn(_, part) => Some(part.get() == OneThread::Drives),
        In::LocalSet(_) | In::LocalGuard(_) | In::Guard(_) => None,
        In::Worker(..) | In::Closure(_) | In::BlockInPlace | In::Ending(_) => Some(false),
    };
    innermost(drives) == Some(true)
}

/// Checks that this thread may block on a future.
///
/// `needed` is the runtime whose `block_on` was called.
///
/// # Panics
/// If the thread may not block (rule 2).
#[track_caller]
pub(crate) fn assert_may_block_on(needed: &Arc<Shared>) {
    match holds_up() {
        HoldsUp::Nothing => {}
        HoldsUp::Tasks => panic!(
            "block_on was called in a task, or in a hook of a worker, which it would block: \
             await the future instead, or call block_on inside block_in_place{}",
            runtimes(needed),
        ),
        HoldsUp::BlockOn => panic!(
            "block_on was called inside block_on, whose future it would block: \
             await the future instead{}",
            runtimes(needed),
        ),
        HoldsUp::LocalSet => panic!(
            "block_on was called in a LocalSet or LocalRuntime, whose tasks it would block: \
             await the future instead{}",
            runtimes(needed),
        ),
    }
}

/// Returns the part of a message that names the current runtime, and the one that was needed.
fn runtimes(needed: &Arc<Shared>) -> String {
    match current() {
        Some(current) if Arc::ptr_eq(&current, needed) => {
            format!(" (all this is in {})", current.title())
        }
        Some(current) => format!(
            " (this thread is in {}, and the call is of {}, whose tasks can be awaited here)",
            current.title(),
            needed.title(),
        ),
        None => format!(" (the call is of {})", needed.title()),
    }
}

/// Marks this thread as one of a runtime's own, until it has ended.
pub(crate) fn mark_own_thread(hooks: &Arc<Hooks>) {
    OWN_HOOKS.with(|own| own.set(Arc::as_ptr(hooks)));
}

/// Whether this thread may wait for the runtime's end (rule 3).
pub(crate) fn may_wait_for_end_of(shared: &Arc<Shared>) -> bool {
    let is_own_thread = OWN_HOOKS.try_with(Cell::get).ok() == Some(Arc::as_ptr(&shared.hooks));
    let works_for = |is: &In<'_>| match is {
        In::Guard(_) => None,
        _ => is
            .runtime()
            .filter(|own| Arc::ptr_eq(own, shared))
            .map(|_| ()),
    };
    holds_up() == HoldsUp::Nothing
        && !is_own_thread
        && innermost(works_for).is_none()
        && !announce::is_announcing()
}
