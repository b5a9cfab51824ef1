//! The scopes of a thread: they say which budget, hook and time slice the poll in progress has.
//!
//! # States
//!
//! A thread is *outside* of all scopes, or *inside* one or several. A scope begins with a call of
//! [`Scope::run`] or [`Scope::turns`], and ends when that call returns or panics. Scopes nest: the
//! newest scope that has not ended is the *innermost*, and each scope but the first has an *outer*
//! one.
//!
//! | field of [`Current`] | outside | inside |
//! |---|---|---|
//! | `budget` | unlimited | what is left in the innermost scope |
//! | `number` | 0 | the innermost scope's number, or 0 between two unlimited turns (rule 4) |
//! | `frame` | null | the innermost scope's [`Frame`]: the outer scope's state, and the hook |
//! | `slice` | [`preempt::NONE`] | the time slice in force, or `none` (rule 5) |
//! | `none` | [`preempt::NONE`] | the same, or a flag that is *watched* (rule 7) |
//! | `watch` | null | the innermost watch, or null (rule 7) |
//!
//! `task` is 0 or the task whose poll it is, whatever the scopes are.
//!
//! # Rules
//!
//! 1. A *nested* scope takes its budget out of what is left in the outer one, and returns what it
//!    did not use. So it never exceeds the outer budget, and its charges count there too. An *own*
//!    scope takes nothing from the outer one and returns nothing.
//! 2. A charge goes to the innermost scope. A [`Progress`] refunds its own charge, once, to the
//!    scope that the charge came from. It finds that scope by number. The scope is the innermost
//!    one, or an outer one: the budget of an outer scope is in the frame of the next inner scope.
//!    If the scope has ended, no scope has the number, and nothing is refunded. So refunds never
//!    exceed charges.
//! 3. `Current::frame` points to the innermost scope's frame, and each frame points to the frame of
//!    its outer scope. All frames of this chain are live: each is on the stack of a function, and
//!    leaves the chain before that function returns.
//! 4. Outside of all scopes every operation is granted. Between the turns of an unlimited [`Turns`]
//!    every operation is granted too, unless the time slice refuses it. A turn of an unlimited
//!    `Turns` is a scope without a frame of its own: it uses the frame of its `Turns`. Each turn
//!    has a number of its own, so a [`Progress`] of an earlier turn does not find a later one. Any
//!    other turn is a nested scope: a turn of a `Turns` with a limit, or a turn inside another turn
//!    or scope.
//! 5. `Current::slice` is live, as frames are: the scope that set the slice borrows it. A scope
//!    without a slice keeps the slice around it, but an unlimited scope has none.
//!    [`preempt::NONE`] stands for no slice: a flag that nobody else can reach to set it, or null
//!    under a model checker. A nudge refuses an operation in any scope that has set or kept the
//!    slice, and is reported to the hook of the scope that set it.
//! 6. A refusal relies on the poll to return. Code inside the poll may instead poll a future until
//!    it is ready: a `block_on` of another crate does. So a scope that has refused
//!    [`REFUSALS_BEFORE_GRANT`] operations grants each [`GRANT_EVERY`]th from then on, at no
//!    charge.
//! 7. A [`watch`](crate::watch) sets the slice in force to *watched*, and `none` to a flag in that
//!    state. So each charge takes the slow path, which records the charge, and returns a
//!    [`Progress`] whose number is that of no scope. The refund of such a charge takes the slow
//!    path, too. Like a frame, a watch is on the stack of a function that has not returned.
use crate::{
    Budget, Preempt, WaitsOn, preempt,
    watch::{self, Watch},
};
use std::{
    cell::Cell,
    fmt,
    marker::PhantomData,
    mem::{MaybeUninit, forget},
    ptr,
    task::{Context, Poll, Waker},
};

/// The state of the innermost scope.
pub(crate) struct Current {
    budget: Cell<Budget>,
    number: Cell<u64>,
    /// The number of the newest scope or turn of this thread.
    last: Cell<u64>,
    frame: Cell<*const Frame<'static>>,
    pub(crate) slice: Cell<*const Preempt>,
    /// The slice of a scope that has none.
    pub(crate) none: Cell<*const Preempt>,
    pub(crate) watch: Cell<*const Watch<'static>>,
    /// The number of the newest watch of this thread.
    pub(crate) last_watch: Cell<u64>,
    /// The task whose poll this is, or 0: see `holder`.
    pub(crate) task: Cell<u32>,
}

/// The state of the outer scope, and the fields that a scope needs only once it is exhausted.
struct Frame<'a> {
    outer_budget: Cell<Budget>,
    outer_number: u64,
    outer_frame: *const Frame<'static>,
    outer_slice: *const Preempt,
    /// Whether the budget is a part of the outer scope's budget. If so, the rest returns there when
    /// this scope ends.
    is_nested: bool,
    hook: Option<&'a dyn OnExhausted>,
    /// Whether this scope has set the time slice.
    has_slice: bool,
    /// Whether the thread may block in this scope.
    may_block: bool,
    /// How many operations the scope has refused.
    refusals: Cell<u32>,
}

/// The refusals after which a scope takes the poll for one that does not return (rule 6). The poll
/// of a set of futures may go on for as many refusals as the set has futures.
const REFUSALS_BEFORE_GRANT: u32 = 1 << 14;

/// From then on, the scope grants one of this many operations that it would otherwise refuse.
const GRANT_EVERY: u32 = 64;

impl Current {
    /// Counts a refusal of the innermost scope, and reports the first one to the scope's hook.
    /// Returns whether the operation must be granted instead (rule 6).
    fn count_refusal(&self, why: Exhausted) -> bool {
        // SAFETY: the frame is null, or live (rule 3), as its scope has not ended.
        let Some(frame) = (unsafe { self.frame.get().as_ref() }) else {
            return false;
        };
        let refusals = frame.refusals.get().checked_add(1);
        let refusals = refusals.unwrap_or(REFUSALS_BEFORE_GRANT);
        frame.refusals.set(refusals);
        if let Some(hook) = frame.hook.filter(|_| refusals == 1) {
            hook.forced_yield(why);
        }
        refusals >= REFUSALS_BEFORE_GRANT && refusals % GRANT_EVERY == 0
    }

    #[inline]
    fn slice(&self) -> Option<&Preempt> {
        let slice = self.slice.get();
        let is_some = !preempt::NONE.is_null() || !slice.is_null();
        // SAFETY: the pointer is live (rule 5). It is not null: either `NONE` is not null, and then
        // no slice is null, or the line above has tested this pointer.
        is_some.then(|| unsafe { &*slice })
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.slice().is_some_and(Preempt::need_preempt)
    }

    /// Returns whether the slice is over, was nudged, or is watched.
    #[inline]
    fn is_special(&self) -> bool {
        self.slice().is_some_and(Preempt::is_special)
    }

    /// Returns why the slice refuses this operation, if it still does. Ends a nudge, and reports
    /// the nudge to the hook of the scope that set the slice.
    #[cold]
    fn take_refusal(&self) -> Option<Exhausted> {
        if !self.slice()?.take_nudge() {
            return self.is_over().then_some(Exhausted::Slice);
        }
        let mut next = self.frame.get();
        // SAFETY: the frame is null, or live (rule 3).
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

    /// Returns the hook of the innermost scope.
    fn hook(&self) -> Option<&dyn OnExhausted> {
        // SAFETY: the frame is null, or live (rule 3), as its scope has not ended.
        unsafe { self.frame.get().as_ref() }?.hook
    }
}

sync_shim::thread_local! {
    pub(crate) static CURRENT: Current = const {
        Current {
            budget: Cell::new(Budget::UNLIMITED),
            number: Cell::new(0),
            last: Cell::new(0),
            frame: Cell::new(ptr::null()),
            slice: Cell::new(preempt::NONE),
            none: Cell::new(preempt::NONE),
            watch: Cell::new(ptr::null()),
            last_watch: Cell::new(0),
            task: Cell::new(0),
        }
    }
}

/// Why an operation was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exhausted {
    /// The operations of the budget are used up.
    Operations,
    /// The time slice was asked to end.
    Slice,
    /// The time slice was [nudged](Preempt::nudge). The operations after this one are granted.
    Nudge,
}

/// A runtime's hook for refused operations.
///
/// Do not keep a hook, or the [`Preempt`] of a slice, in a thread-local of the thread that runs the
/// scope. `process::exit` inside the scope drops thread-locals while the scope stays on the stack.
/// If another thread-local is dropped later and its drop does an operation, that operation would
/// use the dropped hook. That is undefined behaviour in safe code. No safe borrow can exclude it:
/// [`LocalKey::with`](std::thread::LocalKey::with) lends a reference until its closure returns, and
/// here the closure never returns. A borrow by [`std::thread::scope`] has the same hole.
pub trait OnExhausted {
    /// Arranges that `waker` is woken soon, after other tasks have had their turn.
    ///
    /// Called for each refusal: a task that polls several futures may pass several wakers. Without
    /// a hook the waker is woken at once, and a runtime may then run the same task next.
    fn defer(&self, waker: &Waker);

    /// Counts a forced yield and its reason.
    ///
    /// Called once in a scope or turn, at its first refusal that is not for a nudge. For a nudge it
    /// is called each time, on the hook of the scope that set the time slice.
    fn forced_yield(&self, _why: Exhausted) {}
}

/// Limits the operations of a poll, or of several polls. A scope has a budget, and optionally a
/// hook and a time slice.
///
/// A runtime makes a scope for each poll, or for a chain of polls that share a budget, and
/// [runs](Self::run) the polls in it. A loop that polls many tasks uses [`turns`](Self::turns).
///
/// # Scopes in scopes
///
/// | scope | grants | charges the scope around it |
/// |---|---|---|
/// | [`new`](Self::new): nested | at most what is left around it | all that it uses |
/// | [`own`](Self::own) | its whole budget | nothing |
/// | [`unlimited`](Self::unlimited) | everything, whatever the time slice says | nothing |
///
/// A nested scope keeps to the limits of its runtime. So a library may use one, for example to give
/// one of several futures a share of its task's budget. A `block_on`, which keeps its thread until
/// its future is done, takes an own scope. A budget around the `block_on` is not renewed meanwhile,
/// so a nested scope would refuse every operation once that budget is used up.
///
/// A scope costs some loads and stores to a thread-local.
///
/// ```
/// use coop_budget::{Budget, Scope, poll_proceed, remaining};
/// use std::task::{Context, Waker};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// Scope::new(Budget::new(10)).run(|| {
///     Scope::new(Budget::new(4)).run(|| {
///         assert_eq!(remaining(), Some(4));
///         assert!(poll_proceed(&mut cx).map(|progress| progress.made_progress()).is_ready());
///     });
///     assert_eq!(remaining(), Some(9));
///     Scope::new(Budget::new(200)).run(|| assert_eq!(remaining(), Some(9)));
/// });
/// assert_eq!(remaining(), None);
/// ```
#[derive(Clone, Copy)]
#[must_use = "a scope limits only what it runs"]
pub struct Scope<'a> {
    source: Source,
    budget: Budget,
    hook: Option<&'a dyn OnExhausted>,
    slice: Slice<'a>,
    may_block: bool,
}

/// Where the budget of a scope comes from (rule 1).
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Nested,
    Own,
}

/// The time slice of a scope (rule 5).
#[derive(Clone, Copy)]
enum Slice<'a> {
    Keep,
    None,
    Set(&'a Preempt),
}

impl<'a> Scope<'a> {
    /// Creates a nested scope of at most `budget` operations.
    ///
    /// An exhausted budget wakes the task at once, unless the scope has a [`hook`](Self::hook). The
    /// hook of an outer scope is not called, as the outer scope may belong to another runtime,
    /// which waits for the runtime of this scope.
    #[inline]
    pub const fn new(budget: Budget) -> Self {
        Self {
            source: Source::Nested,
            budget,
            hook: None,
            slice: Slice::Keep,
            may_block: false,
        }
    }

    /// Creates a scope of `budget` operations, whatever is left around it.
    ///
    /// It is for runtimes that run inside a task of another runtime: for each task of a local set,
    /// and for a `block_on`. Such a runtime delays the outer one by as many operations as its own
    /// scopes grant. The time slice in progress still applies, unless this scope has its own: only
    /// [`unlimited`](Self::unlimited) lifts it.
    ///
    /// ```
    /// use coop_budget::{Budget, Scope, consume, remaining};
    /// use std::{future::Future, pin::pin, task::{Context, Waker}};
    ///
    /// let mut cx = Context::from_waker(Waker::noop());
    /// Scope::new(Budget::new(1)).run(|| {
    ///     Scope::own(Budget::new(5)).run(|| {
    ///         assert!(pin!(consume()).poll(&mut cx).is_ready());
    ///         assert_eq!(remaining(), Some(4));
    ///     });
    ///     assert_eq!(remaining(), Some(1));
    /// });
    /// ```
    #[inline]
    pub const fn own(budget: Budget) -> Self {
        Self {
            source: Source::Own,
            ..Self::new(budget)
        }
    }

    /// Creates a scope that limits neither operations nor time.
    ///
    /// It is for code that blocks its thread until a future is done: a limit would refuse the
    /// future's operations forever. In it [`may_block`] returns true.
    ///
    /// ```
    /// use coop_budget::{Budget, Scope, has_remaining};
    ///
    /// Scope::new(Budget::new(0)).run(|| Scope::unlimited().run(|| assert!(has_remaining())));
    /// ```
    #[inline]
    pub const fn unlimited() -> Self {
        Self {
            may_block: true,
            ..Self::unconstrained()
        }
    }

    /// Creates a scope that limits neither operations nor time, for the poll of a future.
    #[inline]
    pub(crate) const fn unconstrained() -> Self {
        Self {
            slice: Slice::None,
            ..Self::own(Budget::UNLIMITED)
        }
    }

    /// Calls `hook` for each refused operation, instead of waking the task.
    ///
    /// ```
    /// use coop_budget::{Budget, OnExhausted, Scope, consume};
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
    /// let scope = Scope::new(Budget::DEFAULT).hook(&worker);
    /// assert!(scope.run(|| task.as_mut().poll(&mut cx)).is_pending());
    /// // When the worker has polled the other tasks:
    /// for waker in worker.deferred.take() {
    ///     waker.wake();
    /// }
    /// ```
    #[inline]
    pub const fn hook(mut self, hook: &'a dyn OnExhausted) -> Self {
        self.hook = Some(hook);
        self
    }

    /// Limits the time too: operations are refused once `slice` was asked to end, however many are
    /// left.
    ///
    /// `slice` replaces the time slice of an outer scope. For a limit by time alone, use
    /// [`Budget::UNLIMITED`]. The runtime opens the slice before the scope begins. A runtime that
    /// polls several tasks in one slice opens the slice once, and checks [`need_preempt`] between
    /// the tasks.
    ///
    /// ```
    /// use coop_budget::{Budget, Exhausted, OnExhausted, Preempt, Scope, has_remaining};
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
    /// Scope::new(Budget::DEFAULT).slice(&slice).hook(&worker).run(|| {
    ///     assert!(has_remaining());
    ///     slice.request(); // A monitor does this, from its own thread.
    ///     assert!(!has_remaining());
    /// });
    /// ```
    #[inline]
    pub const fn slice(mut self, slice: &'a Preempt) -> Self {
        self.slice = Slice::Set(slice);
        self
    }

    /// Runs `f`, which does one poll or several, in this scope.
    #[inline]
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        CURRENT.with(|current| {
            let mut frame = Frame::enter(current, self.source, self.hook, self.budget);
            frame.has_slice = matches!(self.slice, Slice::Set(_));
            frame.may_block = self.may_block;
            let _entered = Entered::new(current, &frame, self.slice);
            f()
        })
    }

    /// Runs `f`, which polls one task after another, each in a [turn](Turns::run) with a budget of
    /// its own.
    ///
    /// For the loop of a worker: a turn costs less than a scope. The budget of this scope is
    /// usually [`Budget::UNLIMITED`]. If the budget is limited, or the scope is nested in a limited
    /// one, then each turn gets at most what is left of that limit. Operations between two turns
    /// are charged to the limit too. A loop with such a limit checks [`has_remaining`].
    ///
    /// ```
    /// use coop_budget::{Budget, OnExhausted, Scope, remaining};
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
    /// Scope::new(Budget::UNLIMITED).hook(&Worker).turns(|turns| {
    ///     for _task in 0..3 {
    ///         turns.run(Budget::new(7), || assert_eq!(remaining(), Some(7)));
    ///         assert_eq!(remaining(), None);
    ///     }
    /// });
    /// ```
    #[inline]
    pub fn turns<R>(self, f: impl FnOnce(&Turns<'_>) -> R) -> R {
        self.run(|| {
            CURRENT.with(|current| {
                // If an outer scope limits this one, each turn is a nested scope (rule 4).
                if current.budget.get().is_unlimited() {
                    current.number.set(0);
                }
                // SAFETY: the frame is live (rule 3), as this closure runs inside the scope. The
                // reference is not used after the closure.
                let frame = unsafe { &*current.frame.get() };
                f(&Turns { current, frame })
            })
        })
    }
}

impl fmt::Debug for Scope<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl<'a> Frame<'a> {
    /// Keeps the state of the outer scope, and sets the budget and the number of the new one.
    #[inline]
    fn enter(
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
            may_block: false,
            refusals: Cell::new(0),
        }
    }
}

/// A scope in progress. Its drop restores the state of the outer scope.
struct Entered<'a>(&'a Current, &'a Frame<'a>);

impl<'a> Entered<'a> {
    #[inline]
    fn new(current: &'a Current, frame: &'a Frame<'a>, slice: Slice<'_>) -> Self {
        current.frame.set(ptr::from_ref(frame).cast());
        match slice {
            Slice::Keep => {}
            Slice::None => current.slice.set(current.none.get()),
            Slice::Set(slice) => current.slice.set(slice),
        }
        Self(current, frame)
    }
}

impl Drop for Entered<'_> {
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

/// Gives budgets to polls, one after another. Made by [`Scope::turns`].
pub struct Turns<'a> {
    current: &'a Current,
    frame: &'a Frame<'a>,
}

impl Turns<'_> {
    /// Runs `f`, usually the poll of a task, with this budget.
    ///
    /// A turn within another turn, or within a limited scope, is a nested scope: what `f` does not
    /// use returns to the scope around it. In any other turn what `f` does not use is lost. A turn
    /// costs some stores to a thread-local.
    #[inline]
    pub fn run<R>(&self, budget: Budget, f: impl FnOnce() -> R) -> R {
        let Self { current, frame } = *self;
        let is_between = current.number.get() == 0 && ptr::addr_eq(current.frame.get(), frame);
        // The code calls `f` in one place only, so that the compiler inlines it into the worker's
        // loop.
        let mut inner = MaybeUninit::uninit();
        let nested = if is_between {
            let number = current.last.get() + 1;
            current.last.set(number);
            current.number.set(number);
            current.budget.set(budget);
            frame.refusals.set(0);
            None
        } else {
            Some(nest(current, frame.hook, budget, &mut inner))
        };
        let _turn = Turn { current, nested };
        f()
    }
}

/// Begins a turn that is a nested scope (rule 4). This is a cold function, so that the state of
/// such a scope costs the other turns nothing.
#[cold]
#[inline(never)]
fn nest<'a>(
    current: &Current,
    hook: Option<&'a dyn OnExhausted>,
    budget: Budget,
    inner: &'a mut MaybeUninit<Frame<'a>>,
) -> &'a Frame<'a> {
    let frame = inner.write(Frame::enter(current, Source::Nested, hook, budget));
    forget(Entered::new(current, frame, Slice::Keep));
    frame
}

/// A turn in progress. If the turn is a nested scope (rule 4), `nested` is its frame.
struct Turn<'a> {
    current: &'a Current,
    nested: Option<&'a Frame<'a>>,
}

impl Drop for Turn<'_> {
    #[inline]
    fn drop(&mut self) {
        let Self { current, nested } = *self;
        match nested {
            None => {
                current.budget.set(Budget::UNLIMITED);
                current.number.set(0);
            }
            Some(frame) => leave_nested(current, frame),
        }
    }
}

#[cold]
#[inline(never)]
fn leave_nested(current: &Current, frame: &Frame<'_>) {
    drop(Entered(current, frame));
}

impl fmt::Debug for Turns<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

/// Returns how many operations are left of the current budget: `None` without a limit, or outside
/// of a scope.
#[inline]
pub fn remaining() -> Option<u32> {
    CURRENT.with(|current| current.budget.get()).remaining()
}

/// Returns whether the budget and the time slice would grant the next operation.
///
/// A nudge may refuse that operation all the same.
///
/// ```
/// use coop_budget::{Budget, Scope, has_remaining};
///
/// assert!(has_remaining(), "there is no scope");
/// Scope::new(Budget::new(0)).run(|| assert!(!has_remaining()));
/// ```
#[inline]
pub fn has_remaining() -> bool {
    CURRENT.with(|current| current.budget.get().has_remaining() && !current.is_over())
}

/// Returns whether this thread may block: it is outside of all scopes, or the innermost scope is
/// one of [`Scope::unlimited`]. In any other scope the thread polls tasks, which would wait for it.
///
/// ```
/// use coop_budget::{Budget, Scope, may_block};
///
/// assert!(may_block());
/// Scope::new(Budget::DEFAULT).run(|| {
///     assert!(!may_block());
///     Scope::unlimited().run(|| assert!(may_block()));
/// });
/// ```
#[inline]
pub fn may_block() -> bool {
    CURRENT.with(|current| {
        // SAFETY: the frame is null, or live (rule 3), as its scope has not ended.
        let frame = unsafe { current.frame.get().as_ref() };
        frame.is_none_or(|frame| frame.may_block)
    })
}

/// Returns whether the time slice in progress was asked to end. Returns false without a slice.
///
/// A loop that does no operations calls this, and yields when it returns true.
///
/// ```
/// use coop_budget::{Budget, Preempt, Scope, need_preempt};
///
/// let slice = Preempt::new();
/// Scope::new(Budget::UNLIMITED).slice(&slice).run(|| {
///     let mut steps = 0;
///     while !need_preempt() {
///         steps += 1;
///         if steps == 10 {
///             slice.request(); // A monitor does this, from its own thread.
///         }
///     }
///     assert_eq!(steps, 10);
/// });
/// ```
#[inline]
pub fn need_preempt() -> bool {
    CURRENT.with(Current::is_over)
}

/// Charges one operation, if it is granted. A resource calls this first in each `poll` of an
/// operation.
///
/// - `Ready` grants the operation. Call [`Progress::made_progress`] if the operation made progress.
///   If the [`Progress`] is dropped instead, its charge is refunded. A [`watch`](crate::watch)
///   takes the drop for a wait. So call [`Progress::cancel`] before a `Ready` without progress.
/// - `Pending` refuses the operation, as the budget is used up, or the time slice was asked to end
///   or nudged. Return `Pending` too: the task is already woken, or its runtime's hook will wake
///   it. If a poll goes on after 16,384 refusals, each 64th operation is granted: the poll may be
///   in a `block_on` of another crate, which polls until its future is ready.
///
/// Costs a few loads and stores to a thread-local. A refusal costs a wake, or a call of
/// [`OnExhausted::defer`].
///
/// ```
/// use coop_budget::poll_proceed;
/// use std::{collections::VecDeque, task::{Context, Poll, Waker, ready}};
///
/// fn poll_receive(queue: &mut VecDeque<u8>, cx: &mut Context<'_>) -> Poll<u8> {
///     let progress = ready!(poll_proceed(cx));
///     match queue.pop_front() {
///         Some(item) => {
///             progress.made_progress();
///             Poll::Ready(item)
///         }
///         None => Poll::Pending, // A real queue keeps the waker. The charge is refunded.
///     }
/// }
///
/// let mut cx = Context::from_waker(Waker::noop());
/// assert_eq!(poll_receive(&mut [7].into(), &mut cx), Poll::Ready(7));
/// ```
#[inline]
pub fn poll_proceed(cx: &mut Context<'_>) -> Poll<Progress> {
    let granted = CURRENT.with(|current| {
        let (left, is_charged) = current.budget.get().charged();
        // The new budget is stored before the charge is checked. So the charge is one instruction
        // on a word that only this thread reads.
        current.budget.set(left);
        (is_charged && !current.is_special()).then(|| Progress::new(current.number.get(), 1))
    });
    granted.map_or_else(|| proceed_slowly(cx), Poll::Ready)
}

/// Undoes a charge that the budget refused, or that the time slice may refuse, and then checks
/// both. This function looks up the thread's state itself, so that its caller need not keep the
/// address.
#[cold]
#[inline(never)]
fn proceed_slowly(cx: &mut Context<'_>) -> Poll<Progress> {
    CURRENT.with(|current| current.budget.set(current.budget.get().uncharged()));
    poll_proceed_n(cx, 1)
}

/// Charges a batch of operations, if it is granted: up to `wanted`, and at least one.
///
/// [`Progress::granted`] returns how many operations were granted. [`Progress::made_progress_n`]
/// refunds those that were not done. A batch of 0 is never refused.
///
/// ```
/// use coop_budget::{Budget, Scope, poll_proceed_n, remaining};
/// use std::task::{Context, Poll, Waker};
///
/// Scope::new(Budget::new(10)).run(|| {
///     let mut cx = Context::from_waker(Waker::noop());
///     let Poll::Ready(progress) = poll_proceed_n(&mut cx, 32) else { unreachable!() };
///     assert_eq!(progress.granted(), 10);
///     // The resource had only 4 items.
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
        if current.is_special() && wanted != 0 {
            return grant_slowly(current, cx, budget, granted);
        }
        current.budget.set(budget);
        Poll::Ready(Progress::new(current.number.get(), granted))
    })
}

/// Grants operations if the slice is watched. `left` is the budget without them. Otherwise refuses
/// them, unless the nudge or the slice has ended meanwhile.
#[cold]
#[inline(never)]
fn grant_slowly(
    current: &Current,
    cx: &mut Context<'_>,
    left: Budget,
    granted: u32,
) -> Poll<Progress> {
    if let Some(why) = current.take_refusal() {
        return refuse(current, cx, why);
    }
    current.budget.set(left);
    let scope = watch::record(current, current.number.get(), granted);
    Poll::Ready(Progress::new(scope, granted))
}

/// Returns `Pending` and wakes the task if the budget is used up or the time slice is over. A set
/// of futures then yields at once, and does not poll each future to find out.
#[inline]
pub(crate) fn poll_has_remaining(cx: &mut Context<'_>) -> Poll<()> {
    #[cold]
    fn refuse(current: &Current, cx: &mut Context<'_>, why: Exhausted) -> Poll<()> {
        if current.count_refusal(why) {
            return Poll::Ready(());
        }
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
    // The operation after a nudge is granted anyway.
    if why != Exhausted::Nudge && current.count_refusal(why) {
        // No scope has this number, so nothing is refunded.
        return Poll::Ready(Progress::new(u64::MAX, 1));
    }
    watch::note_refusal(current, why);
    if why == Exhausted::Operations {
        if let Some(slice) = current.slice() {
            slice.accept_nudges();
        }
    }
    match current.hook() {
        Some(hook) => hook.defer(cx.waker()),
        None => cx.waker().wake_by_ref(),
    }
    Poll::Pending
}

/// A granted operation, or a batch of them.
///
/// If it is dropped, its charge is refunded to the scope that the charge came from, unless that
/// scope has ended.
///
/// ```
/// use coop_budget::{Budget, Progress, Scope, has_remaining, poll_proceed};
/// use std::task::{Context, Poll, Waker};
///
/// Scope::new(Budget::new(1)).run(|| {
///     let granted: Poll<Progress> = poll_proceed(&mut Context::from_waker(Waker::noop()));
///     assert!(!has_remaining());
///     drop(granted);
///     assert!(has_remaining());
/// });
/// ```
///
/// It belongs to the thread of its scope:
///
/// ```compile_fail
/// fn is_send<T: Send>() {}
/// is_send::<coop_budget::Progress>();
/// ```
///
/// It reports the outcome once:
///
/// ```compile_fail
/// fn twice(progress: coop_budget::Progress) {
///     progress.made_progress();
///     progress.made_progress();
/// }
/// ```
#[derive(Debug)]
#[must_use = "a dropped charge is refunded: call `made_progress` if work was done"]
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

    /// Returns how many operations were granted.
    ///
    /// ```
    /// use coop_budget::poll_proceed;
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let Poll::Ready(progress) = poll_proceed(&mut Context::from_waker(Waker::noop())) else {
    ///     panic!("outside of a scope each operation is granted");
    /// };
    /// assert_eq!(progress.granted(), 1);
    /// ```
    #[inline]
    pub const fn granted(&self) -> u32 {
        self.charge
    }

    /// Keeps the charge, as the operation made progress. The call costs nothing.
    ///
    /// ```
    /// use coop_budget::{Budget, Scope, has_remaining, poll_proceed};
    /// use std::task::{Context, Poll, Waker};
    ///
    /// Scope::new(Budget::new(1)).run(|| {
    ///     let mut cx = Context::from_waker(Waker::noop());
    ///     let Poll::Ready(progress) = poll_proceed(&mut cx) else { unreachable!() };
    ///     progress.made_progress();
    ///     assert!(!has_remaining());
    /// });
    /// ```
    #[inline]
    pub fn made_progress(self) {
        std::mem::forget(self);
    }

    /// Refunds the charge, as a drop does. If the poll is [watched](crate::watch), `what` says what
    /// the operation waits for. Otherwise `what` is not called, and the call costs as much as the
    /// drop.
    ///
    /// ```
    /// use coop_budget::{poll_proceed, watch};
    /// use std::{cell::RefCell, task::{Context, Poll, Waker}};
    ///
    /// let waits = RefCell::new(Vec::new());
    /// let note = |what| waits.borrow_mut().extend(what);
    /// watch(&note, |_| {
    ///     let mut cx = Context::from_waker(Waker::noop());
    ///     let Poll::Ready(progress) = poll_proceed(&mut cx) else { unreachable!() };
    ///     progress.waits_for(|| "a bus".into());
    /// });
    /// assert_eq!(waits.into_inner(), ["a bus".into()]);
    /// ```
    #[inline]
    pub fn waits_for(self, what: impl FnOnce() -> WaitsOn) {
        let progress = std::mem::ManuallyDrop::new(self);
        progress.give_back(Refund::Wait(Some(what)));
    }

    /// Refunds the charge, of an operation that returns `Ready` without progress, or that only
    /// asked for its turn. To a [watch](crate::watch) that is neither progress nor a wait. The call
    /// costs as much as a drop.
    ///
    /// ```
    /// use coop_budget::{poll_proceed, watch};
    /// use std::task::{Context, Poll, Waker};
    ///
    /// let watched = watch(&|_| unreachable!("it waits for nothing"), |watching| {
    ///     let mut cx = Context::from_waker(Waker::noop());
    ///     let Poll::Ready(progress) = poll_proceed(&mut cx) else { unreachable!() };
    ///     progress.cancel();
    ///     watching.so_far()
    /// });
    /// assert!(!watched.has_progressed);
    /// ```
    #[inline]
    pub fn cancel(self) {
        let progress = std::mem::ManuallyDrop::new(self);
        progress.give_back(Refund::<fn() -> WaitsOn>::Cancel);
    }

    /// Keeps the charge of `done` operations and refunds the others. If `done` exceeds the granted
    /// number, all charges are kept. To a [watch](crate::watch), 0 is neither progress nor a wait.
    ///
    /// ```
    /// use coop_budget::{Budget, Scope, has_remaining, poll_proceed};
    /// use std::task::{Context, Poll, Waker};
    ///
    /// Scope::new(Budget::new(1)).run(|| {
    ///     let mut cx = Context::from_waker(Waker::noop());
    ///     let Poll::Ready(progress) = poll_proceed(&mut cx) else { unreachable!() };
    ///     progress.made_progress_n(0); // The charge is refunded.
    ///     assert!(has_remaining());
    /// });
    /// ```
    #[inline]
    pub fn made_progress_n(self, done: u32) {
        let mut progress = std::mem::ManuallyDrop::new(self);
        progress.charge = progress.charge.saturating_sub(done);
        progress.give_back(Refund::<fn() -> WaitsOn>::Cancel);
    }
}

impl Drop for Progress {
    #[inline]
    fn drop(&mut self) {
        self.give_back(Refund::<fn() -> WaitsOn>::Wait(None));
    }
}

/// The reason for a refund, for a watch.
enum Refund<F> {
    /// The operation waits, for an event that it may name.
    Wait(Option<F>),
    Cancel,
}

impl Progress {
    #[inline]
    fn give_back(&self, why: Refund<impl FnOnce() -> WaitsOn>) {
        // A thread whose thread-locals are gone has no scope left.
        let _ = CURRENT.try_with(|current| {
            if current.number.get() == self.scope {
                refund(&current.budget, self.charge);
            } else {
                give_back_slowly(current, self.scope, self.charge, why);
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

#[cold]
#[inline(never)]
fn give_back_slowly(
    current: &Current,
    scope: u64,
    charge: u32,
    why: Refund<impl FnOnce() -> WaitsOn>,
) {
    if !watch::is_recorded(scope) {
        return refund_outer(current, scope, charge);
    }
    if let Some(given) = watch::give_back(current, scope, charge) {
        refund_outer(current, given.scope, charge);
        if let Refund::Wait(what) = why {
            given.note(what);
        }
    }
}

/// Refunds a charge to the scope of this number, if there still is one.
#[cold]
fn refund_outer(current: &Current, scope: u64, charge: u32) {
    if current.number.get() == scope {
        return refund(&current.budget, charge);
    }
    let mut next = current.frame.get();
    // SAFETY: the frame is null, or live (rule 3).
    while let Some(frame) = unsafe { next.as_ref() } {
        if frame.outer_number == scope {
            return refund(&frame.outer_budget, charge);
        }
        next = frame.outer_frame;
    }
}
