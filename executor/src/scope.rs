//! What a thread is in the middle of; and so, which runtime it is in, and whether it may wait.
//!
//! A thread's scopes are a list, the innermost first.
//!
//! | scope | names its runtime | a wait |
//! |---|---|---|
//! | [`Worker`](In::Worker): it is a worker, to the end of the poll whose core went to another | yes | would hold up tasks |
//! | [`BlockOn`](In::BlockOn) | yes | would hold up the future |
//! | [`LocalSet`](In::LocalSet): the set is polled | no | would hold up the set |
//! | [`Closure`](In::Closure) of `spawn_blocking` | yes | is what it is for |
//! | [`BlockInPlace`](In::BlockInPlace): a closure of `block_in_place` | no | is what it is for |
//! | [`Guard`](In::Guard) | yes | is not its concern |
//! | [`Ending`](In::Ending): a thread without a core drops the futures of queued tasks | no | is not its concern |
//!
//! 1. The current runtime is that of the innermost scope that names one.
//! 2. A future may be waited for (`block_on`) unless the innermost scope that is concerned says what that would hold up.
//! 3. A runtime's end may be waited for where a future may, but not by who is waited for in turn: a thread of its own, from its start to the last of its
//!    thread-locals' destructors, and a thread with a scope of it, however far out, guards apart. Nor by a thread in
//!    a wake from outside, which may drop tasks: the drop of a driven worker waits for that wake.
//! 4. A scope that runs a closure lies in the frame of who runs it. A guard may be moved, dropped in any order, or leaked: its scope lies in a box, and is taken
//!    out of the list wherever it is there; a leaked one stays, with its box.
//! 5. The list is its thread's. No thread-local here has a destructor: all this goes on in those of others.
//! 6. `process::exit` may run the thread's thread-local destructors while the frames of scopes lie on the stack, for good.
//!    So a scope keeps what the caller may have put into a thread-local: its runtime or local set. A driven
//!    [`Worker`](crate::Worker) that is dropped in its own poll leaks its core, which the scope names.
use crate::{Handle, context, hooks::Hooks, shared::Shared};
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
    /// The hooks of the runtime that this thread was started by. Compared only.
    static HOME: Cell<*const Hooks> = const { Cell::new(ptr::null()) };
}

/// What a scope is.
pub(crate) enum In<'a> {
    Worker(&'a Arc<Shared>),
    BlockOn(Arc<Shared>),
    LocalSet(Rc<task_set::LocalSet>),
    Closure(&'a Arc<Shared>),
    BlockInPlace,
    Guard(Handle),
    Ending(&'a Shared),
}

/// What a wait would hold up.
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
            In::Worker(shared) | In::Closure(shared) => Some(shared),
            In::BlockOn(shared) => Some(shared),
            In::Guard(handle) => Some(handle.shared()),
            In::LocalSet(_) | In::BlockInPlace | In::Ending(_) => None,
        }
    }

    fn holds_up(&self) -> Option<HoldsUp> {
        match self {
            In::Worker(_) => Some(HoldsUp::Tasks),
            In::BlockOn(_) => Some(HoldsUp::BlockOn),
            In::LocalSet(_) => Some(HoldsUp::LocalSet),
            In::Closure(_) | In::BlockInPlace => Some(HoldsUp::Nothing),
            In::Guard(_) | In::Ending(_) => None,
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

    /// The list's name for it.
    fn link(&self) -> *const Scope<'static> {
        ptr::from_ref(self).cast()
    }

    /// # Safety
    /// It is in no list, and stays where it is until it is [left](Self::leave), by this thread.
    unsafe fn enter(&self) {
        INNERMOST.with(|innermost| self.outer.set(innermost.replace(self.link())));
    }

    /// Takes it out of the list, wherever it is there.
    fn leave(&self) {
        INNERMOST.with(|innermost| {
            let mut at = innermost;
            while at.get() != self.link() {
                // SAFETY: it was entered, so it comes in the list, all of which is good (`enter`).
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
    // SAFETY: it stays in this frame until it is left, below.
    unsafe { scope.enter() };
    let _leave = Leave(&scope);
    f()
}

/// The scope of a guard.
pub(crate) struct Guard(NonNull<Scope<'static>>);

impl Guard {
    pub(crate) fn enter(handle: Handle) -> Self {
        let guard = Self(NonNull::from(Box::leak(Box::new(Scope::new(In::Guard(
            handle,
        ))))));
        // SAFETY: it is in a box until the drop leaves it, in this thread: a `Guard` is not `Send`.
        unsafe { guard.scope().enter() };
        context::look_for_guards();
        guard
    }

    fn scope(&self) -> &Scope<'static> {
        // SAFETY: the box is freed by the drop alone.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.scope().leave();
        context::look_for_guards();
        // SAFETY: made from a box, and in no list by now. The last handle may free the runtime.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

/// What `look` says of the innermost scope of which it says something. It calls no code of users.
fn innermost<R>(mut look: impl FnMut(&In<'_>) -> Option<R>) -> Option<R> {
    let mut at = INNERMOST.try_with(Cell::get).unwrap_or(ptr::null());
    loop {
        // SAFETY: null, or in the list, and so good (`Scope::enter`); nothing leaves it meanwhile.
        let scope = unsafe { at.as_ref() }?;
        if let Some(said) = look(&scope.is) {
            return Some(said);
        }
        at = scope.outer.get();
    }
}

/// The runtime that this thread is in (rule 1).
pub(crate) fn current() -> Option<Handle> {
    innermost(|is| is.runtime().cloned()).map(Handle::new)
}

/// The budget of a poll in it.
pub(crate) fn budget() -> Budget {
    innermost(|is| Some(is.runtime()?.settings.budget)).unwrap_or_default()
}

/// Whether a guard names the current runtime.
pub(crate) fn is_guarded() -> bool {
    innermost(|is| Some((is.runtime()?, matches!(is, In::Guard(_))).1)) == Some(true)
}

/// The local set that this thread polls.
pub(crate) fn local_set() -> Option<Rc<task_set::LocalSet>> {
    innermost(|is| match is {
        In::LocalSet(set) => Some(Rc::clone(set)),
        _ => None,
    })
}

/// Whether this thread is in a poll of this set.
pub(crate) fn polls(set: &Rc<task_set::LocalSet>) -> bool {
    let polled = |is: &In<'_>| match is {
        In::LocalSet(other) => Rc::ptr_eq(other, set).then_some(()),
        _ => None,
    };
    innermost(polled).is_some()
}

/// Whether this thread is a worker by this very field of a core, in whatever scope.
pub(crate) fn is_worker_by(shared: &Arc<Shared>) -> bool {
    let by = |is: &In<'_>| match is {
        In::Worker(other) => ptr::eq(*other, shared).then_some(()),
        _ => None,
    };
    innermost(by).is_some()
}

/// Whether this thread is in the middle of dropping the futures of this runtime's queued tasks.
pub(crate) fn is_ending(shared: &Shared) -> bool {
    let ending = |is: &In<'_>| match is {
        In::Ending(other) => ptr::eq(*other, shared).then_some(()),
        _ => None,
    };
    innermost(ending).is_some()
}

/// What a wait would hold up (rule 2).
pub(crate) fn holds_up() -> HoldsUp {
    innermost(|is| is.holds_up()).unwrap_or(HoldsUp::Nothing)
}

/// # Panics
/// Where a future may not be waited for (rule 2).
#[track_caller]
pub(crate) fn assert_may_block_on() {
    match holds_up() {
        HoldsUp::Nothing => {}
        HoldsUp::Tasks => panic!(
            "block_on was called in a task, or in a hook of a worker, which it would block: \
             await the future instead, or call block_on inside block_in_place"
        ),
        HoldsUp::BlockOn => panic!(
            "block_on was called inside block_on, whose future it would block: \
             await the future instead"
        ),
        HoldsUp::LocalSet => panic!(
            "block_on was called in a LocalSet or LocalRuntime, whose tasks it would block: \
             await the future instead"
        ),
    }
}

/// Makes this thread one of a runtime's own, until it is gone.
pub(crate) fn belong_to(hooks: &Arc<Hooks>) {
    HOME.with(|home| home.set(Arc::as_ptr(hooks)));
}

/// Whether this thread may wait for the runtime's end (rule 3).
pub(crate) fn may_wait_for_end_of(shared: &Arc<Shared>) -> bool {
    let at_home = HOME.try_with(Cell::get).ok() == Some(Arc::as_ptr(&shared.hooks));
    let works_for = |is: &In<'_>| match is {
        In::Guard(_) => None,
        _ => is
            .runtime()
            .filter(|own| Arc::ptr_eq(own, shared))
            .map(|_| ()),
    };
    holds_up() == HoldsUp::Nothing
        && !at_home
        && innermost(works_for).is_none()
        && !announce::is_announcing()
}
