//! The budget of the poll in progress, a thread-local.
//!
//! 1. A scope is the time of one [`with_budget`], or of another of its kind here. It has a number
//!    of its own in its thread. What was around it lies in a [`Frame`] on the stack meanwhile, and
//!    is restored when it ends, by return or by panic. A *nested* scope takes its budget out of
//!    what is left in the scope around it, and puts back what it leaves: so it never exceeds that,
//!    and its charges are charges there too. An *own* scope ([`with_own_budget`],
//!    [`with_own_turns`], [`with_no_limit`]) takes nothing and puts back nothing.
//! 2. A charge goes to the innermost scope. A [`Progress`] gives back its own charge, once, to its own scope, found by
//!    number: the innermost, or one around it, whose budget is in a frame. If its scope has ended it is not found, and nothing is given back. So refunds never exceed
//!    charges.
//! 3. `Current::frame` points to the innermost scope's frame, or is null outside of all scopes, and each frame to the next.
//!    All of them are live: a frame leaves the chain before its function returns.
//! 4. Outside of all scopes (number 0) everything is granted, and so it is between the turns of an
//!    unlimited [`Turns`], unless a slice around it is over. A turn of such a one is a scope in
//!    all but its frame, which its `Turns` keeps on the stack from one turn to the next: it has a
//!    number of its own, so a charge of an earlier turn is not found. A turn elsewhere, in a
//!    `Turns` that a scope around limits or inside another turn, is a nested scope.
//! 5. `Current::slice` is the flag of the slice in progress, or [`preempt::NONE`]: one that nobody can name to set it, and that stays as it is when it is asked, or null in a model. A scope with a slice sets it, one without keeps it; it is live as the frames are:
//!    the scope that set it borrows it. A nudge is heard in whatever scope the operation is, and told to the hook of the one that has the slice.
use crate::{Budget, Preempt, preempt};
use std::{
    cell::Cell,
    fmt,
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
    slice: Cell<*const Preempt>,
}

/// The scope around, and what a scope needs only when it is exhausted.
struct Frame<'a> {
    outer_budget: Cell<Budget>,
    outer_number: u64,
    outer_frame: *const Frame<'static>,
    outer_slice: *const Preempt,
    /// Whether the budget is a part of the outer one, which gets back what is left of it.
    is_nested: bool,
    hook: Option<&'a dyn OnExhausted>,
    /// Whether the slice in progress is this scope's own.
    has_slice: bool,
    refused: Cell<bool>,
}

impl Current {
    /// Tells the scope's runtime, once, and gives it back.
    fn count_refusal(&self, why: Exhausted) -> Option<&dyn OnExhausted> {
        // SAFETY: null, or live (rule 3): the scope in which this was called has not ended.
        let frame = unsafe { self.frame.get().as_ref() }?;
        let hook = frame.hook?;
        if !frame.refused.replace(true) {
            hook.forced_yield(why);
        }
        Some(hook)
    }

    #[inline]
    fn slice(&self) -> Option<&Preempt> {
        let slice = self.slice.get();
        let is_some = !preempt::NONE.is_null() || !slice.is_null();
        // SAFETY: not null, as only where `NONE` is null a slice can be; and live (rule 5).
        is_some.then(|| unsafe { &*slice })
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.slice().is_some_and(Preempt::need_preempt)
    }

    /// Whether the slice refuses the next operation: it is over, or was nudged.
    #[inline]
    fn refuses(&self) -> bool {
        self.slice().is_some_and(Preempt::refuses)
    }

    /// Why the slice refuses this operation, if it still does. A nudge is over with that, and who gave the slice hears of it, from whatever scope within.
    #[cold]
    fn heed(&self) -> Option<Exhausted> {
        if !self.slice()?.heed_nudge() {
            return self.is_over().then_some(Exhausted::Slice);
        }
        let mut next = self.frame.get();
        // SAFETY: null, or live (rule 3).
        while let Some(frame) = unsafe { next.as_ref() } {
            if frame.has_slice {
                if let Some(hook) = frame.hook {
                    hook.forced_yield(Exhausted::Nudge);
                }
                break;
            }
            next = frame.outer_frame;
        }
        Some(Exhausted::Nudge)
    }

    /// Of the innermost scope.
    fn hook(&self) -> Option<&dyn OnExhausted> {
        // SAFETY: null, or live (rule 3): the scope in which this was called has not ended.
        unsafe { self.frame.get().as_ref() }?.hook
    }
}

sync_shim::thread_local! {
    static CURRENT: Current = const {
        Current {
            budget: Cell::new(Budget::UNLIMITED),
            number: Cell::new(0),
            last: Cell::new(0),
            frame: Cell::new(ptr::null()),
            slice: Cell::new(preempt::NONE),
        }
    }
}

/// Why an operation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// The budget's operations are used up.
    Operations,
    /// The slice was asked to end.
    Slice,
    /// The slice was [nudged](Preempt::nudge). Operations after the refused one are granted.
    Nudge,
}

/// What a runtime wants to do when a task has used up its budget.
///
/// Do not keep a hook, or the [`Preempt`] of a slice, in a thread-local of the thread that runs the
/// scope. `process::exit` inside the scope drops thread-locals while the scope is on the stack for
/// good: one that is dropped later, and asks for an operation, would use the dropped hook.
pub trait OnExhausted {
    /// Sees to it that `waker` is woken soon, but after others had their turn. Called for each refusal: a task that polls
    /// several futures may give several wakers.
    ///
    /// Without it the waker is woken at once, which a runtime may answer by running the task next.
    fn defer(&self, waker: &Waker);

    /// Counts a forced yield and its reason. Called once in a scope, at its first refusal; and for each nudge that is heard, where the scope has a slice of its own, though it is heard in a scope within.
    fn forced_yield(&self, _why: Exhausted) {}
}

/// Runs `f`, a poll or several, with at most `budget` operations.
///
/// For runtimes: around every poll, or around a chain of polls that is to share one budget. An
/// exhausted budget wakes the task at once: no [`OnExhausted`] of a scope around is called, since
/// it may belong to another runtime, one that waits for this.
///
/// Inside of another scope `f` gets no more than is left there, and what it uses is used there
/// too. So one future of several that a task polls can be given a share of the task's budget, and
/// a scope in a library cannot hold up the runtime for longer than the runtime allows. A
/// `block_on`, which keeps its thread until the future is done, takes [`with_own_budget`]: a
/// budget around it is not renewed meanwhile, and once that is used up nothing in it would
/// proceed.
///
/// Costs some loads and stores to a thread-local.
///
/// ```
/// use coop_budget::{Budget, poll_proceed, remaining, with_budget};
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// with_budget(Budget::new(10), || {
///     with_budget(Budget::new(4), || {
///         assert_eq!(remaining(), Some(4));
///         assert!(poll_proceed(&mut cx).map(|progress| progress.made_progress()).is_ready());
///     });
///     assert_eq!(remaining(), Some(9));
///     with_budget(Budget::new(200), || assert_eq!(remaining(), Some(9)));
/// });
/// assert_eq!(remaining(), None);
/// ```
#[inline]
pub fn with_budget<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    enter(Source::Nested, budget, None, Slice::Same, f)
}

/// Runs `f` with `budget`, whatever is left around it, where nothing is charged for it.
///
/// For runtimes that run inside of another's task: for each task of a local set, and for a
/// `block_on`. Such a runtime holds up the one around it by as many operations as it grants. The
/// time slice in progress stays: only [`with_no_limit`] lifts that too. With an [`OnExhausted`]:
/// `with_no_limit(|| with_budget_and(..))`.
///
/// ```
/// use coop_budget::{Budget, consume, remaining, with_budget, with_own_budget};
/// use std::{future::Future, pin::pin, task::{Context, Waker}};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// with_budget(Budget::new(1), || {
///     with_own_budget(Budget::new(5), || {
///         assert!(pin!(consume()).poll(&mut cx).is_ready());
///         assert_eq!(remaining(), Some(4));
///     });
///     assert_eq!(remaining(), Some(1));
/// });
/// ```
#[inline]
pub fn with_own_budget<R>(budget: Budget, f: impl FnOnce() -> R) -> R {
    enter(Source::Own, budget, None, Slice::Same, f)
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
    enter(Source::Nested, budget, Some(hook), Slice::Same, f)
}

/// As [`with_budget_and`], and the operations end with the slice too: with the first after its flag is set, however many are left.
///
/// A limit of operations alone is [`with_budget_and`], of time alone `Budget::UNLIMITED` here. Whoever grants the slice opens it before: a runtime that polls several
/// tasks in one slice does so once, and asks [`need_preempt`] between them.
///
/// ```
/// use coop_budget::{Budget, OnExhausted, Exhausted, Preempt, has_remaining, with_slice};
/// use std::{cell::Cell, task::Waker};
///
/// #[derive(Default)]
/// struct Worker {
///     over_time: Cell<u32>,
/// }
///
/// impl OnExhausted for Worker {
///     fn defer(&self, _: &Waker) {}
///     fn forced_yield(&self, why: Exhausted) {
///         self.over_time.set(self.over_time.get() + u32::from(why == Exhausted::Slice));
///     }
/// }
///
/// let (slice, worker) = (Preempt::new(), Worker::default());
/// slice.open_slice();
/// with_slice(Budget::DEFAULT, &slice, &worker, || {
///     assert!(has_remaining());
///     slice.request(); // What a monitor does, from its own thread.
///     assert!(!has_remaining());
/// });
/// ```
#[inline]
pub fn with_slice<R>(
    budget: Budget,
    slice: &Preempt,
    hook: &dyn OnExhausted,
    f: impl FnOnce() -> R,
) -> R {
    enter(Source::Nested, budget, Some(hook), Slice::New(slice), f)
}

/// Where the budget of a scope comes from (rule 1).
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Nested,
    Own,
}

#[derive(Clone, Copy)]
enum Slice<'a> {
    Same,
    None,
    New(&'a Preempt),
}

#[inline]
fn enter<R>(
    source: Source,
    budget: Budget,
    hook: Option<&dyn OnExhausted>,
    slice: Slice<'_>,
    f: impl FnOnce() -> R,
) -> R {
    CURRENT.with(|current| {
        let mut frame = Frame::around(current, source, hook, budget);
        frame.has_slice = matches!(slice, Slice::New(_));
        let _scope = Scope::enter(current, &frame, slice);
        f()
    })
}

impl<'a> Frame<'a> {
    /// Keeps what is around a scope, which has `budget` from here on, or what there is of it.
    #[inline]
    fn around(
        current: &Current,
        source: Source,
        hook: Option<&'a dyn OnExhausted>,
        budget: Budget,
    ) -> Self {
        let is_nested = source == Source::Nested;
        let mut outer = current.budget.get();
        current.budget.set(if is_nested {
            outer.split(budget)
        } else {
            budget
        });
        let number = current.last.get() + 1;
        current.last.set(number);
        Self {
            outer_budget: Cell::new(outer),
            outer_number: current.number.replace(number),
            outer_frame: current.frame.get(),
            outer_slice: current.slice.get(),
            is_nested,
            hook,
            has_slice: false,
            refused: Cell::new(false),
        }
    }
}

/// The scope in progress. What was around it comes back when this is dropped.
struct Scope<'a>(&'a Current, &'a Frame<'a>);

impl<'a> Scope<'a> {
    #[inline]
    fn enter(current: &'a Current, frame: &'a Frame<'a>, slice: Slice<'_>) -> Self {
        current.frame.set(ptr::from_ref(frame).cast());
        match slice {
            Slice::Same => {}
            Slice::None => current.slice.set(preempt::NONE),
            Slice::New(slice) => current.slice.set(slice),
        }
        Self(current, frame)
    }
}

impl Drop for Scope<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self(current, frame) = self;
        let mut outer = frame.outer_budget.get();
        if frame.is_nested {
            outer.join(current.budget.get());
        }
        current.budget.set(outer);
        current.number.set(frame.outer_number);
        current.frame.set(frame.outer_frame);
        current.slice.set(frame.outer_slice);
    }
}

/// Runs `f`, which polls one task after the other, each in a turn with a budget of its own: what
/// [`with_budget_and`] does for one, with less to do between two. For the loop of a worker.
///
/// Inside of a scope with a limit each turn gets no more than is left there, and what happens
/// between two turns is charged there too: a loop that is to end then asks [`has_remaining`]. A
/// worker that blocks its thread takes [`with_own_turns`].
///
/// ```
/// use coop_budget::{Budget, OnExhausted, remaining, with_turns};
/// use std::task::Waker;
///
/// struct Worker;
///
/// impl OnExhausted for Worker {
///     fn defer(&self, waker: &Waker) {
///         waker.wake_by_ref();
///     }
/// }
///
/// with_turns(&Worker, |turns| {
///     for _task in 0..3 {
///         turns.run(Budget::new(7), || assert_eq!(remaining(), Some(7)));
///         assert_eq!(remaining(), None);
///     }
/// });
/// ```
#[inline]
pub fn with_turns<R>(hook: &dyn OnExhausted, f: impl FnOnce(&Turns<'_>) -> R) -> R {
    turns(Source::Nested, hook, Slice::Same, f)
}

/// As [`with_turns`], whatever is left around, where nothing is charged for the turns.
///
/// The time slice is its own too, in place of one around: operations end with `slice`, those
/// between two turns among them. See [`with_slice`].
#[inline]
pub fn with_own_turns<R>(
    slice: &Preempt,
    hook: &dyn OnExhausted,
    f: impl FnOnce(&Turns<'_>) -> R,
) -> R {
    turns(Source::Own, hook, Slice::New(slice), f)
}

#[inline]
fn turns<R>(
    source: Source,
    hook: &dyn OnExhausted,
    slice: Slice<'_>,
    f: impl FnOnce(&Turns<'_>) -> R,
) -> R {
    enter(source, Budget::UNLIMITED, Some(hook), slice, || {
        CURRENT.with(|current| {
            // Else a scope around limits this one, and each turn is a nested scope (rule 4).
            if current.budget.get().is_unlimited() {
                current.number.set(0);
            }
            // SAFETY: live (rule 3): this is in its scope. Of a lifetime that ends before it.
            let frame = unsafe { &*current.frame.get() };
            f(&Turns { current, frame })
        })
    })
}

/// Gives budgets to polls, one after the other. By [`with_turns`].
pub struct Turns<'a> {
    current: &'a Current,
    frame: &'a Frame<'a>,
}

impl Turns<'_> {
    /// Runs `f`, as a rule the poll of a task, with this budget; what is left when it ends is
    /// gone. A turn within a turn is a scope within that, as of [`with_budget_and`].
    ///
    /// Costs some stores to a thread-local.
    #[inline]
    pub fn run<R>(&self, budget: Budget, f: impl FnOnce() -> R) -> R {
        let Self { current, frame } = *self;
        let between = current.number.get() == 0 && ptr::addr_eq(current.frame.get(), frame);
        // `f` is called in one place, so that it becomes part of the loop around.
        let within;
        let _over = if between {
            let number = current.last.get() + 1;
            current.last.set(number);
            current.number.set(number);
            current.budget.set(budget);
            frame.refused.set(false);
            Over(current, None)
        } else {
            within = Frame::around(current, Source::Nested, frame.hook, budget);
            Over(current, Some(Scope::enter(current, &within, Slice::Same)))
        };
        f()
    }
}

/// Ends a turn: one that was a scope of its own by that scope's end.
struct Over<'a>(&'a Current, Option<Scope<'a>>);

impl Drop for Over<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self(current, within) = self;
        if within.is_none() {
            current.budget.set(Budget::UNLIMITED);
            current.number.set(0);
        }
    }
}

impl fmt::Debug for Turns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

/// Runs `f` with no limit, neither of operations nor of time: for what waits on its thread, and would be refused for ever.
///
/// ```
/// use coop_budget::{Budget, has_remaining, with_budget, with_no_limit};
///
/// with_budget(Budget::new(0), || with_no_limit(|| assert!(has_remaining())));
/// ```
#[inline]
pub fn with_no_limit<R>(f: impl FnOnce() -> R) -> R {
    enter(Source::Own, Budget::UNLIMITED, None, Slice::None, f)
}

/// What is left of the current budget; `None` without a limit or outside of a scope.
#[inline]
pub fn remaining() -> Option<u32> {
    CURRENT.with(|current| current.budget.get()).remaining()
}

/// Whether budget and slice would grant the next operation. A nudge may refuse that one all the same.
#[inline]
pub fn has_remaining() -> bool {
    CURRENT.with(|current| current.budget.get().has_remaining() && !current.is_over())
}

/// Whether the slice in progress was asked to end. False without one.
#[inline]
pub fn need_preempt() -> bool {
    CURRENT.with(Current::is_over)
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
    let granted = CURRENT.with(|current| {
        let (left, is_charged) = current.budget.get().charged();
        // Stored before anything is known, so that it is one instruction on the word, which nobody else sees.
        current.budget.set(left);
        (is_charged && !current.refuses()).then(|| Progress::new(current.number.get(), 1))
    });
    granted.map_or_else(|| proceed_slowly(cx), Poll::Ready)
}

/// After a charge that was refused, or that a slice may refuse: takes it back, and looks closely. It finds the thread's state by itself, so that who calls it needs no address of that.
#[cold]
#[inline(never)]
fn proceed_slowly(cx: &mut Context<'_>) -> Poll<Progress> {
    CURRENT.with(|current| current.budget.set(current.budget.get().uncharged()));
    poll_proceed_n(cx, 1)
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
            return refuse(current, cx, Exhausted::Operations);
        }
        if current.refuses() && wanted != 0 {
            if let Some(why) = current.heed() {
                return refuse(current, cx, why);
            }
        }
        current.budget.set(budget);
        Poll::Ready(Progress::new(current.number.get(), granted))
    })
}

/// `Pending` if nothing would be granted, with `cx` woken: for those who would otherwise walk through many futures to find that out.
#[inline]
pub(crate) fn poll_has_remaining(cx: &mut Context<'_>) -> Poll<()> {
    #[cold]
    fn refuse(current: &Current, cx: &mut Context<'_>, why: Exhausted) -> Poll<()> {
        current.count_refusal(why);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    CURRENT.with(|current| {
        if !current.budget.get().has_remaining() {
            return refuse(current, cx, Exhausted::Operations);
        }
        if current.is_over() {
            return refuse(current, cx, Exhausted::Slice);
        }
        Poll::Ready(())
    })
}

#[cold]
fn refuse(current: &Current, cx: &mut Context<'_>, why: Exhausted) -> Poll<Progress> {
    let hook = match why {
        Exhausted::Nudge => current.hook(),
        why => current.count_refusal(why),
    };
    if why == Exhausted::Operations {
        if let Some(slice) = current.slice() {
            slice.hear_again();
        }
    }
    match hook {
        Some(hook) => hook.defer(cx.waker()),
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
