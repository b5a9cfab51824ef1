//! The budget of the poll in progress, a thread-local.
//!
//! 1. A scope is the time of one [`with_budget`] or [`with_budget_and`]. It has a number of its own in its thread. What was around it lies
//!    in a [`Frame`] on the stack meanwhile, and is restored when it ends, by return or by panic.
//! 2. A charge goes to the innermost scope. A [`Progress`] gives back its own charge, once, to its own scope, found by
//!    number: the innermost, or one around it, whose budget is in a frame. If its scope has ended it is not found, and nothing is given back. So refunds never exceed
//!    charges.
//! 3. `Current::frame` points to the innermost scope's frame, or is null outside of all scopes, and each frame to the next.
//!    All of them are live: a frame leaves the chain before its function returns.
//! 4. Outside of all scopes (number 0) everything is granted.
use crate::Budget;
use std::{
    cell::Cell,
    marker::PhantomData,
    ptr,
    task::{Context, Poll, Waker},
};

/// The innermost scope.
struct Current {
    budget: Cell<Budget>,
    number: Cell<u64>,
    /// The last number given out.
    last: Cell<u64>,
    frame: Cell<*const Frame<'static>>,
}

/// The scope around, and what a scope needs only when it is exhausted.
struct Frame<'a> {
    outer_budget: Cell<Budget>,
    outer_number: u64,
    outer_frame: *const Frame<'static>,
    hook: Option<&'a dyn OnExhausted>,
    refused: Cell<bool>,
}

sync_shim::thread_local! {
    static CURRENT: Current = const {
        Current {
            budget: Cell::new(Budget::UNLIMITED),
            number: Cell::new(0),
            last: Cell::new(0),
            frame: Cell::new(ptr::null()),
        }
    }
}

/// What a runtime wants to do when a task has used up its budget.
pub trait OnExhausted {
    /// Sees to it that `waker` is woken soon, but after others had their turn. Called for each refusal: a task that polls
    /// several futures may give several wakers.
    ///
    /// Without it the waker is woken at once, which a runtime may answer by running the task next.
    fn defer(&self, waker: &Waker);

    /// Counts a forced yield. Called once in a scope, at its first refusal.
    fn forced_yield(&self) {}
}

/// Runs `f`, a poll or several, with `budget` in place of the one around it.
///
/// For runtimes: around every poll, or around a chain of polls that is to share one budget. An exhausted budget wakes the task at once.
/// Scopes nest; nothing of the one around is used, nor its [`OnExhausted`], which may belong to another runtime, one that is waiting for this.
///
/// Costs some loads and stores to a thread-local.
///
/// ```
/// use coop_budget::{Budget, remaining, with_budget};
///
/// with_budget(Budget::new(5), || {
///     assert_eq!(remaining(), Some(5));
///     with_budget(Budget::new(1), || assert_eq!(remaining(), Some(1)));
///     assert_eq!(remaining(), Some(5));
/// });
/// assert_eq!(remaining(), None);
/// ```
#[inline]
pub fn with_budget<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    enter(budget, None, f)
}

/// As [`with_budget`], and `hook` hears of the exhausted budget in place of the waker.
///
/// ```
/// use coop_budget::{Budget, OnExhausted, consume, with_budget_and};
/// use std::{cell::RefCell, future::Future, pin::pin, task::{Context, Waker}};
///
/// #[derive(Default)]
/// struct Worker {
///     deferred: RefCell<Vec<Waker>>,
/// }
///
/// impl OnExhausted for Worker {
///     fn defer(&self, waker: &Waker) {
///         self.deferred.borrow_mut().push(waker.clone());
///     }
/// }
///
/// let worker = Worker::default();
/// let mut task = pin!(async {
///     loop {
///         consume().await;
///     }
/// });
/// let mut cx = Context::from_waker(Waker::noop());
/// let polled = with_budget_and(Budget::DEFAULT, &worker, || task.as_mut().poll(&mut cx));
/// assert!(polled.is_pending());
/// // When the worker has done its round:
/// for waker in worker.deferred.take() {
///     waker.wake();
/// }
/// ```
#[inline]
pub fn with_budget_and<R>(budget: Budget, hook: &dyn OnExhausted, f: impl FnOnce() -> R) -> R {
    enter(budget, Some(hook), f)
}

#[inline]
fn enter<R>(budget: Budget, hook: Option<&dyn OnExhausted>, f: impl FnOnce() -> R) -> R {
    struct Leave<'a>(&'a Current, &'a Frame<'a>);

    impl Drop for Leave<'_> {
        #[inline]
        fn drop(&mut self) {
            let Self(current, frame) = self;
            current.budget.set(frame.outer_budget.get());
            current.number.set(frame.outer_number);
            current.frame.set(frame.outer_frame);
        }
    }

    CURRENT.with(|current| {
        let number = current.last.get() + 1;
        current.last.set(number);
        let frame = Frame {
            outer_budget: Cell::new(current.budget.replace(budget)),
            outer_number: current.number.replace(number),
            outer_frame: current.frame.get(),
            hook,
            refused: Cell::new(false),
        };
        current.frame.set(ptr::from_ref(&frame).cast());
        let _leave = Leave(current, &frame);
        f()
    })
}

/// What is left of the current budget; `None` without a limit or outside of a scope.
#[inline]
pub fn remaining() -> Option<u32> {
    CURRENT.with(|current| current.budget.get()).remaining()
}

/// Whether the next operation would be granted.
#[inline]
pub fn has_remaining() -> bool {
    CURRENT.with(|current| current.budget.get()).has_remaining()
}

/// For resources: call it first in every `poll` of an operation.
///
/// `Ready` grants the operation; call [`Progress::made_progress`] when it did something, or let
/// the charge be returned. `Pending` means that the task has had its share: return `Pending` too; the
/// task is woken already, or its runtime will see to it, and runs again after the others.
///
/// A few loads and stores to a thread-local; when exhausted, a wake or what [`OnExhausted::defer`] does.
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<Progress> {
    CURRENT.with(|current| {
        let mut budget = current.budget.get();
        if !budget.charge() {
            return refuse(current, cx);
        }
        current.budget.set(budget);
        Poll::Ready(Progress::new(current.number.get(), 1))
    })
}

/// As [`poll_proceed`], for a batch: grants up to `wanted` operations, at least one.
///
/// [`Progress::granted`] tells how many; give what was not done back with [`Progress::made_progress_n`]. Who wants none is granted none, and not refused.
///
/// ```
/// use coop_budget::{Budget, poll_proceed_n, remaining, with_budget};
/// use std::task::{Context, Poll, Waker};
///
/// with_budget(Budget::new(10), || {
///     let mut cx = Context::from_waker(Waker::noop());
///     let Poll::Ready(progress) = poll_proceed_n(&mut cx, 32) else { unreachable!() };
///     assert_eq!(progress.granted(), 10);
///     // Only 4 items were there.
///     progress.made_progress_n(4);
///     assert_eq!(remaining(), Some(6));
/// });
/// ```
#[inline]
pub fn poll_proceed_n(cx: &mut Context<'_>, wanted: u32) -> Poll<Progress> {
    CURRENT.with(|current| {
        let mut budget = current.budget.get();
        let granted = budget.charge_n(wanted);
        if granted == 0 && wanted != 0 {
            return refuse(current, cx);
        }
        current.budget.set(budget);
        Poll::Ready(Progress::new(current.number.get(), granted))
    })
}

#[cold]
fn refuse(current: &Current, cx: &mut Context<'_>) -> Poll<Progress> {
    let frame = current.frame.get();
    // SAFETY: null, or live (rule 3): the scope in which this was called has not ended.
    let frame = unsafe { frame.as_ref() };
    match frame.and_then(|frame| Some((frame, frame.hook?))) {
        Some((frame, hook)) => {
            if !frame.refused.replace(true) {
                hook.forced_yield();
            }
            hook.defer(cx.waker());
        }
        None => cx.waker().wake_by_ref(),
    }
    Poll::Pending
}

/// A granted operation, or a batch. Dropped, it returns its charge to the scope that it came from, if that has not ended.
///
/// It belongs to the thread of its scope:
///
/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<coop_budget::Progress>();
/// ```
///
/// and says once how it went:
///
/// ```compile_fail
/// fn twice(progress: coop_budget::Progress) {
///     progress.made_progress();
///     progress.made_progress();
/// }
/// ```
#[derive(Debug)]
#[must_use = "a charge that is dropped is returned: call `made_progress` if the operation did something"]
pub struct Progress {
    scope: u64,
    charge: u32,
    not_send: PhantomData<*const ()>,
}

static_assertions::assert_not_impl_any!(Progress: Send, Sync, Clone);

impl Progress {
    #[inline]
    const fn new(scope: u64, charge: u32) -> Self {
        Self {
            scope,
            charge,
            not_send: PhantomData,
        }
    }

    /// How many operations were granted.
    #[inline]
    pub const fn granted(&self) -> u32 {
        self.charge
    }

    /// Keeps the charge: the operation did something. Free.
    #[inline]
    pub fn made_progress(self) {
        std::mem::forget(self);
    }

    /// Keeps the charge of `done` operations and returns that of the others. More than were granted count as all.
    #[inline]
    pub fn made_progress_n(mut self, done: u32) {
        self.charge = self.charge.saturating_sub(done);
    }
}

impl Drop for Progress {
    #[inline]
    fn drop(&mut self) {
        // A thread whose locals are gone has no scope left.
        let _ = CURRENT.try_with(|current| {
            if current.number.get() == self.scope {
                refund(&current.budget, self.charge);
            } else {
                refund_outer(current, self);
            }
        });
    }
}

#[inline]
fn refund(budget: &Cell<Budget>, operations: u32) {
    let mut more = budget.get();
    more.refund_n(operations);
    budget.set(more);
}

/// Looks for the scope around the innermost.
#[cold]
fn refund_outer(current: &Current, progress: &Progress) {
    let mut next = current.frame.get();
    // SAFETY: null, or live (rule 3).
    while let Some(frame) = unsafe { next.as_ref() } {
        if frame.outer_number == progress.scope {
            return refund(&frame.outer_budget, progress.charge);
        }
        next = frame.outer_frame;
    }
}
