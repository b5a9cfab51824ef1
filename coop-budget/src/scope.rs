//! The budget of the poll in progress, a thread-local.
//!
//! 1. A scope is the time of one [`with_budget`]. It has a number of its own in its thread, and its budget is restored to what it
//!    was around it when it ends, by return or by panic.
//! 2. A charge goes to the innermost scope. A [`Progress`] gives back its own charge, once, and only while its scope is the innermost: so
//!    refunds never exceed charges.
//! 3. Outside of all scopes (number 0) everything is granted and nothing counted.
use crate::Budget;
use std::{
    cell::Cell,
    marker::PhantomData,
    task::{Context, Poll},
};

#[derive(Clone, Copy)]
struct Scope {
    number: u64,
    budget: Budget,
}

sync_shim::thread_local! {
    static CURRENT: Cell<Scope> = Cell::new(Scope { number: 0, budget: Budget::UNLIMITED });
    static LAST: Cell<u64> = Cell::new(0);
}

/// Runs `f`, a poll or several, with `budget` in place of the one around it.
///
/// For runtimes: around every poll, or around a chain of polls that is to share one budget.
pub fn with_budget<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    struct Restore(Scope);
    impl Drop for Restore {
        fn drop(&mut self) {
            let _ = CURRENT.try_with(|current| current.set(self.0));
        }
    }
    let number = LAST.with(|last| {
        last.set(last.get() + 1);
        last.get()
    });
    let _restore = Restore(CURRENT.with(|current| current.replace(Scope { number, budget })));
    f()
}

/// What is left of the current budget; `None` without a limit or outside of a scope.
pub fn remaining() -> Option<u32> {
    CURRENT.with(Cell::get).budget.remaining()
}

/// Whether the next operation would be granted.
pub fn has_remaining() -> bool {
    CURRENT.with(Cell::get).budget.has_remaining()
}

/// For resources: call it first in every `poll` of an operation.
///
/// `Ready` grants the operation; call [`Progress::made_progress`] when it did something, or let
/// the charge be returned. `Pending` means that the task has had its share: return `Pending` too; the
/// task is woken already and runs again after the others.
///
/// A few loads and stores to a thread-local; when exhausted, a wake.
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<Progress> {
    CURRENT.with(|current| {
        let mut scope = current.get();
        if scope.budget.charge() {
            current.set(scope);
            Poll::Ready(Progress {
                scope: scope.number,
                not_send: PhantomData,
            })
        } else {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
}

/// A granted operation. Dropped, it returns its charge.
///
/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<coop_budget::Progress>();
/// ```
#[derive(Debug)]
#[must_use = "a charge that is dropped is returned: call `made_progress` if the operation did something"]
pub struct Progress {
    scope: u64,
    not_send: PhantomData<*const ()>,
}

impl Progress {
    /// Keeps the charge: the operation did something.
    pub fn made_progress(self) {
        std::mem::forget(self);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let _ = CURRENT.try_with(|current| {
            let mut scope = current.get();
            if scope.number == self.scope {
                scope.budget.refund();
                current.set(scope);
            }
        });
    }
}
