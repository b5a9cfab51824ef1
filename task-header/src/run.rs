//! One run of a task, from the `Notified` that a worker took from a queue to the future's next wait
//! or its end.
//!
//! # The story
//!
//! A worker takes a [`Notified`](crate::Notified) from a queue and runs it ([`run_in_loop`]). The
//! *start* turns the `Notified` into the run. The run polls the future; only functions of the
//! task's vtable know the future's type ([`poll_future`]). When the poll is over, the run asks the
//! runner for the list that keeps the task (`answer`). Then one of these follows:
//!
//! | after the poll | the run |
//! |---|---|
//! | the future was ready, or has panicked | has dropped the future, reported the [`Outcome`] and written the output; now [`complete`](crate::complete) ends the task |
//! | the task was aborted during the poll | drops the future, and ends the task (rule 9) |
//! | the task was woken during the poll, or has yielded | goes on in a `Notified` (rule 8), which the runner queues again |
//! | nothing of these | puts the task into the list, unless it is there, and leaves the task *idle* |
//!
//! If the start finds that the task was aborted before, the run drops the future instead
//! ([`cancel_future`]).
//!
//! # Rules
//!
//! The numbered rules are those of [`state`](crate::state): rule 6 for the stage, which holds the
//! future and later the output. Every call of user code is contained ([`panics`]); where nothing
//! can be caught, a drop guard finishes the work.
//!
//! A future whose poll panics is dropped while the panic unwinds and before the panic is caught,
//! just as a local variable of the panicking code is. So the future's parts see
//! `std::thread::panicking` return true: a `MutexGuard` in the future poisons its mutex. A drop
//! after the catch would leave the mutex unpoisoned, with a change half done. tokio and async-task
//! also drop the future while the panic unwinds.
//!
//! By a rule of the language, a panic that leaves a drop during unwinding ends the process. With
//! `std`, `Unwinds` drops the future in a catch of its own, so a panic of the future's drop does
//! not leave `Unwinds`. But if that second panic unwinds through a drop that panics too, the
//! process ends. Without `std`, any panic of the future's drop during unwinding ends the process.
use crate::{
    cell::{Cell, Kind, Outcome, Output, Polled, Stage, TaskPtr, id},
    complete::complete,
    error::JoinError,
    list::Keep,
    panics::{self, Payload},
    state::{Pend, Start},
};
use core::{
    future::Future,
    marker::PhantomData,
    mem::{forget, needs_drop},
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::cell::UnsafeCell;
use waker_vtable::WakerRef;

#[cfg(feature = "std")]
pub use current::{current, without_current, yield_now};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Complete,
    Pending,
    /// The caller holds the one `Notified`, usually with the run going on in it (rule 8 of
    /// [`state`](crate::state)).
    Notified,
}

/// The runner's answer once a poll is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) keep: Keep,
    /// Whether the run goes on after a `Pending`, even if the task was not woken.
    pub(crate) again: bool,
}

/// Runs a task once. After the poll, `answer` says what to do with the task.
///
/// # Safety
/// The caller holds the one `Notified`, which the call consumes.
#[inline(always)]
pub(crate) unsafe fn run(task: TaskPtr, answer: impl FnOnce() -> Answer) -> RunEnd {
    let _outer = current::Outer::new();
    // SAFETY: the caller promises this.
    unsafe { run_in_loop(task, answer) }
}

/// Runs a task as [`run`] does. Afterwards the thread has no current task, not even a task that
/// called this function.
///
/// # Safety
/// As for [`run`].
#[inline(always)]
pub(crate) unsafe fn run_in_loop(task: TaskPtr, answer: impl FnOnce() -> Answer) -> RunEnd {
    // SAFETY: the `Notified` is a reference, which becomes the run's.
    let header = unsafe { task.as_ref() };
    let vtable = header.vtable;
    let polled = match header.state.start() {
        // SAFETY: this thread runs the task.
        Start::Poll => unsafe { (vtable.poll)(task) },
        // SAFETY: as above.
        Start::Cancel => unsafe { (vtable.cancel)(task) },
    };
    let has_yielded = matches!(polled, Polled::Yielded);
    let is_pending = has_yielded | matches!(polled, Polled::Pending);
    if is_pending && header.state.is_aborted() {
        // SAFETY: this thread runs the task, whose future is still there.
        unsafe { end_aborted(task, || answer().keep) };
        return RunEnd::Complete;
    }
    let broken_off = BrokenOff(task, polled);
    let Answer { keep, again } = answer();
    forget(broken_off);
    if !is_pending {
        // SAFETY: the future is gone.
        unsafe { complete(task, keep, matches!(polled, Polled::Output)) };
        return RunEnd::Complete;
    }
    if has_yielded | again || header.state.is_woken() {
        return RunEnd::Notified;
    }
    let mut list_it = false;
    if !matches!(keep, Keep::Nowhere) && !header.state.is_listed() {
        // SAFETY: the borrow is for the next step alone.
        let Some(list) = (unsafe { keep.list() }) else {
            return RunEnd::Notified;
        };
        // SAFETY: the task runs here and is in no list.
        unsafe { list.insert(task) };
        list_it = true;
    }
    match header.state.pend(list_it) {
        Pend::Idle => RunEnd::Pending,
        Pend::Notified => RunEnd::Notified,
        Pend::Aborted => {
            // The future's drop may give the list to another thread, so no code touches the list.
            // SAFETY: the run has become the one `Notified`.
            unsafe { end_aborted(task, || Keep::Nowhere) };
            RunEnd::Complete
        }
        Pend::Orphan => {
            // SAFETY: this thread alone owns the orphan, in the state *cancelling*.
            let polled = unsafe { (vtable.cancel)(task) };
            // SAFETY: the future is gone.
            unsafe { complete(task, Keep::Nowhere, matches!(polled, Polled::Output)) };
            RunEnd::Complete
        }
    }
}

/// Polls the future once, as the current task, and drops it if it is ready.
///
/// # Safety
/// The caller runs the task, which is of these types.
pub(crate) unsafe fn poll_future<F: Future, K: Kind>(task: TaskPtr) -> Polled {
    // SAFETY: the run holds a reference that outlives this waker.
    let waker = unsafe { WakerRef::new(task) };
    let mut cx = Context::from_waker(&waker);
    let ended = Ended::<F, K>::new(task);
    // `output` is outside of the caught closure, so that a panic of the future's drop does not drop
    // the output while it unwinds.
    let mut output = None;
    current::enter(id(task));
    // SAFETY: a running task of this type is live.
    let caught = unsafe { stage::<F, K::Scheduler>(task) }.with_mut(|stage| {
        panics::catch(|| {
            let unwinds = Unwinds(task, stage);
            // SAFETY: only the running thread touches the stage, which holds the future (rule 6).
            let future = unsafe { &mut *stage.cast::<F>() };
            // SAFETY: the cell never moves, and the future is dropped in place.
            let future = unsafe { Pin::new_unchecked(future) };
            let polled = future.poll(&mut cx);
            forget(unwinds);
            if let Poll::Ready(ready) = polled {
                output = Some(ready);
                // SAFETY: as above; this is its only drop, in place.
                unsafe { stage.cast::<F>().drop_in_place() }
            }
        })
    });
    let has_yielded = current::leave();
    match (caught, output) {
        (Ok(()), None) => ended.not_yet(has_yielded),
        (Ok(()), Some(output)) => ended.with(Ok(output)),
        (Err(payload), output) => ended.by_panic(payload, output),
    }
}

/// The end of a future: `with` and `by_panic` are called once it is gone. In a build that can't
/// catch a panic, the drop of this value completes the task while the panic unwinds; by then the
/// panic has dropped the future.
struct Ended<F: Future, K: Kind> {
    task: TaskPtr,
    types: PhantomData<(F, K)>,
}

impl<F: Future, K: Kind> Ended<F, K> {
    /// Begins with the poll or the drop of the future. The caller runs a task of these types.
    fn new(task: TaskPtr) -> Self {
        Self {
            task,
            types: PhantomData,
        }
    }

    /// Reports the outcome to the scheduler. Then writes the output, or drops the output here if no
    /// join handle will ask for it.
    #[inline(always)]
    fn with(self, output: Output<F::Output>) -> Polled {
        let outcome = match &output {
            Ok(_) => Outcome::Completed,
            Err(error) if error.is_panic() => Outcome::Panicked,
            Err(_) => Outcome::Cancelled,
        };
        // SAFETY: this thread runs a task of this kind, whose future is gone.
        panics::contain(|| unsafe { K::ended(self.task, outcome) });
        // SAFETY: the run holds a reference.
        let polled = if unsafe { self.task.as_ref() }.state.is_joined() {
            self.write(output);
            Polled::Output
        } else {
            if needs_drop::<F::Output>() || output.is_err() {
                let drop_here = || current::within(id(self.task), || drop(output));
                // SAFETY: the run holds a reference.
                unsafe { panics::contain_in(self.task, drop_here) };
            }
            Polled::NoOutput
        };
        forget(self);
        polled
    }

    /// Writes the output slot.
    fn write(&self, output: Output<F::Output>) {
        // SAFETY: this thread runs a task of this type.
        unsafe { stage::<F, K::Scheduler>(self.task) }.with_mut(|stage| {
            let slot = stage.cast::<Output<F::Output>>();
            // SAFETY: the slot is the running thread's (rule 6); the future is gone, so the slot is
            // free.
            unsafe { slot.write(output) }
        });
    }

    /// Returns to the run with the future still there.
    fn not_yet(self, has_yielded: bool) -> Polled {
        forget(self);
        if has_yielded {
            Polled::Yielded
        } else {
            Polled::Pending
        }
    }

    /// Ends the task with a panic. The first panic becomes the outcome.
    #[cold]
    #[inline(never)]
    fn by_panic(self, payload: Payload, output: Option<F::Output>) -> Polled {
        // SAFETY: the run holds a reference.
        unsafe { panics::report(self.task, &payload) };
        if output.is_none() {
            // SAFETY: this thread runs a task of this type.
            let stage = unsafe { stage::<F, K::Scheduler>(self.task) };
            // SAFETY: the poll has panicked, so `Unwinds` has written the slot. The read leaves the
            // slot free again.
            let dropped =
                stage.with_mut(|stage| unsafe { stage.cast::<Output<F::Output>>().read() });
            if let Err(Ok(again)) = dropped.map_err(JoinError::try_into_panic) {
                // SAFETY: as above.
                unsafe { panics::discard_in(self.task, again) };
            }
        }
        let id = id(self.task);
        // SAFETY: as above.
        unsafe { panics::contain_in(self.task, || current::within(id, || drop(output))) };
        self.with(Err(JoinError::panicked(id, payload)))
    }
}

impl<F: Future, K: Kind> Drop for Ended<F, K> {
    fn drop(&mut self) {
        self.write(Err(JoinError::cancelled(id(self.task))));
        // SAFETY: the future is gone, the slot is written, and only this code ends the run.
        unsafe { complete(self.task, Keep::Nowhere, true) };
    }
}

/// Ends a task that was aborted in its poll (rule 9 of [`state`](crate::state)). Calls `keep` only
/// after the future's drop, because that drop may give the task's list to another thread.
///
/// # Safety
/// The calling thread runs the task, or has its `Notified`; the future is still there.
#[cold]
#[inline(never)]
unsafe fn end_aborted(task: TaskPtr, keep: impl FnOnce() -> Keep) {
    // SAFETY: the run or the `Notified` is a reference. The start makes the run this thread's.
    let start = unsafe { task.as_ref() }.state.start();
    debug_assert_eq!(start, Start::Cancel, "it was aborted");
    // SAFETY: as above.
    let vtable = unsafe { task.as_ref() }.vtable;
    // SAFETY: this thread runs the task, whose future is still there.
    let polled = unsafe { (vtable.cancel)(task) };
    let broken_off = BrokenOff(task, polled);
    let keep = keep();
    forget(broken_off);
    // SAFETY: the future is gone.
    unsafe { complete(task, keep, matches!(polled, Polled::Output)) };
}

/// Drops the future of a queued task instead of running it.
///
/// # Safety
/// As for [`run`].
pub(crate) unsafe fn cancel(task: TaskPtr, keep: Keep) {
    // SAFETY: the `Notified` is a reference, which becomes the run's.
    let header = unsafe { task.as_ref() };
    let (Start::Poll | Start::Cancel) = header.state.start();
    // SAFETY: this thread runs the task.
    let polled = unsafe { (header.vtable.cancel)(task) };
    // SAFETY: the future is gone.
    unsafe { complete(task, keep, matches!(polled, Polled::Output)) };
}

/// Drops the future of an aborted task, instead of polling it.
///
/// # Safety
/// As for [`poll_future`].
pub(crate) unsafe fn cancel_future<F: Future, K: Kind>(task: TaskPtr) -> Polled {
    let ended = Ended::<F, K>::new(task);
    // SAFETY: a running task of this type is live.
    let dropped = unsafe { stage::<F, K::Scheduler>(task) }.with_mut(|stage| {
        let drop_future = || {
            // SAFETY: only the running thread touches the stage, which holds the future (rule 6);
            // this is its only drop, in place.
            unsafe { stage.cast::<F>().drop_in_place() }
        };
        current::within(id(task), || panics::catch(drop_future))
    });
    match dropped {
        Ok(()) => ended.with(Err(JoinError::cancelled(id(task)))),
        Err(payload) => {
            // SAFETY: the run holds a reference.
            unsafe { panics::report(task, &payload) };
            ended.with(Err(JoinError::panicked(id(task), payload)))
        }
    }
}

/// A run whose runner panicked when it was asked for the task's list. The drop of this value ends
/// the task: it drops the future, unless the future is gone already.
struct BrokenOff(TaskPtr, Polled);

impl Drop for BrokenOff {
    fn drop(&mut self) {
        let Self(task, mut polled) = *self;
        if matches!(polled, Polled::Pending | Polled::Yielded) {
            // SAFETY: the run is a reference.
            let vtable = unsafe { task.as_ref() }.vtable;
            // SAFETY: this thread runs the task, whose future is not dropped yet.
            polled = unsafe { (vtable.cancel)(task) };
        }
        // SAFETY: the future is gone.
        unsafe { complete(task, Keep::Nowhere, matches!(polled, Polled::Output)) };
    }
}

/// Drops the future while the panic of its poll unwinds. The slot then says whether the drop
/// panicked as well.
struct Unwinds<F: Future>(TaskPtr, *mut Stage<F>);

impl<F: Future> Drop for Unwinds<F> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let Self(task, stage) = *self;
        let id = id(task);
        // SAFETY: only the running thread touches the stage, which holds the future (rule 6), and
        // its poll is over. This is its only drop, in place.
        let dropped = panics::catch(|| unsafe { stage.cast::<F>().drop_in_place() });
        let error = dropped.map_or_else(
            |payload| JoinError::panicked(id, payload),
            |()| JoinError::cancelled(id),
        );
        // SAFETY: the slot is the running thread's; the future is gone, so the slot is free.
        unsafe { stage.cast::<Output<F::Output>>().write(Err(error)) };
    }
}

/// Drops an output that no join handle takes, and contains a panic of that drop.
///
/// # Safety
/// The caller owns the written output slot of a task of these types (rule 6), and drops it once.
pub(crate) unsafe fn drop_output<F: Future, S>(task: TaskPtr) {
    // SAFETY: the caller owns the output slot of a task of this type (rule 6).
    let stage = unsafe { stage::<F, S>(task) };
    stage.with_mut(|stage| {
        let drop_in_place = || {
            // SAFETY: the slot is written; this is its only drop.
            unsafe { stage.cast::<Output<F::Output>>().drop_in_place() }
        };
        // SAFETY: the owner of the slot has a reference.
        unsafe { panics::contain_in(task, || current::within(id(task), drop_in_place)) };
    });
}

/// Returns the future or the output of a live task.
///
/// # Safety
/// The caller has a reference for `'a` to a task of these types.
unsafe fn stage<'a, F: Future + 'a, S: 'a>(task: TaskPtr) -> &'a UnsafeCell<Stage<F>> {
    // The types of the fields behind the stage do not change its offset.
    let cell = task.cast::<Cell<F, S, (), ()>>();
    // SAFETY: the caller has a reference to a task of this type; the stage is only borrowed shared.
    unsafe { &(*cell.as_ptr()).stage }
}

/// Returns the address of the output, an `Output<F::Output>`. The caller moves the output out at
/// once. The move is not part of this function, so that only the output's own bytes are moved.
///
/// # Safety
/// The caller is the join handle of a complete task of these types, and takes the output once.
pub(crate) unsafe fn output<F: Future, S>(task: TaskPtr) -> *mut () {
    // SAFETY: the task is complete, so the slot is the join handle's (rule 6).
    unsafe { stage::<F, S>(task) }.with_mut(<*mut _>::cast)
}

#[cfg(feature = "std")]
mod current {
    //! The task that this thread polls: its id, for code inside the task, and whether it has
    //! yielded.
    //!
    //! A thread-local word holds the id of the innermost task whose future or output the thread
    //! polls or drops, or 0. The word has no destructor, so destructors of other thread-locals may
    //! read it.
    //!
    //! 1. A poll begins with [`enter`], which sets the word, and ends with [`leave`], which clears
    //!    it. A panic does not skip [`leave`], because each panic in between is caught. The drops
    //!    of a cancelled future and of an output are [`within`] the task.
    //! 2. A run may be nested in the poll of another task. So a run restores the word of the outer
    //!    task ([`Outer`]). The runs in a worker's loop need not restore it
    //!    ([`Notified::run_in_loop`]), because the loop as a whole restores it
    //!    ([`without_current`]).
    //! 3. An id is the address of a task's header, so its lowest bit is clear. [`yield_now`] sets
    //!    that bit if the waker that it gets wakes the current task. [`leave`] tells the run, which
    //!    then goes on after the poll (rule 8 of [`state`](crate::state)). So a task yields without
    //!    a read-modify-write, on whatever executor it runs.
    //!
    //! [`Notified::run_in_loop`]: crate::Notified::run_in_loop
    use crate::id::Id;
    use core::{cell::Cell, num::NonZeroUsize, task::Waker};

    sync_shim::thread_local! {
        static CURRENT: Cell<usize> = const { Cell::new(0) };
    }

    /// The bit of the word that says that the task has yielded in this poll.
    const YIELDED: usize = 1;

    /// Returns the id of the task that this thread runs, if it runs one.
    ///
    /// A thread runs a task while it polls the task's future, while a run or an abort drops that
    /// future, and while a run or the drop of the join handle drops the output. If a task's poll
    /// runs another task, this returns the id of the inner one. Apart from these drops, no task is
    /// current from the end of a poll to the end of that run, such as in the scheduler's hooks and
    /// in the wake of a join waker. This holds even if the run is nested in the poll of an outer
    /// task. Costs a load of a thread-local.
    ///
    /// ```
    /// use task_header::{Builder, current};
    ///
    /// let (task, mut join) = Builder::new().spawn_with(async { current() }, drop);
    /// let id = task.id();
    /// assert_eq!(current(), None);
    /// task.run();
    /// assert_eq!(join.try_join().unwrap().unwrap(), Some(id));
    /// ```
    #[inline]
    pub fn current() -> Option<Id> {
        NonZeroUsize::new(word() & !YIELDED).map(Id)
    }

    /// Requests another poll of the task that this thread polls, if `waker` wakes that task.
    /// Returns whether `waker` does.
    ///
    /// After `true`, the poll should return `Pending`. The task's run then ends as
    /// [`Ran::Notified`]: the runner queues the task again, usually behind others. So a future
    /// yields without a wake. After `false`, `waker` belongs to something else that is polled on
    /// this thread, as in `join_all` or `block_on`: call `waker.wake_by_ref()` instead.
    ///
    /// Costs a load and a store of a thread-local, and no read-modify-write. The task's next start
    /// costs no read-modify-write either, unless the task is woken meanwhile.
    ///
    /// ```
    /// use std::{future::poll_fn, task::Poll};
    /// use task_header::{Ran, spawn, yield_now};
    ///
    /// let mut yielded = false;
    /// let future = poll_fn(move |cx| {
    ///     if std::mem::replace(&mut yielded, true) {
    ///         return Poll::Ready(());
    ///     }
    ///     if !yield_now(cx.waker()) {
    ///         cx.waker().wake_by_ref();
    ///     }
    ///     Poll::Pending
    /// });
    /// let (task, join) = spawn(future, |_| unreachable!("it is not woken"));
    /// let Ran::Notified(task) = task.run() else { panic!() };
    /// assert!(matches!(task.run(), Ran::Complete));
    /// assert!(join.is_finished());
    /// ```
    ///
    /// [`Ran::Notified`]: crate::Ran::Notified
    #[inline]
    pub fn yield_now(waker: &Waker) -> bool {
        let wakes = current().is_some_and(|task| task.is_woken_by(waker));
        if wakes {
            set(word() | YIELDED);
        }
        wakes
    }

    /// Runs `f` as if outside of all tasks: [`current`] returns `None` until `f` runs a task. After
    /// `f`, the task that called this function is the current one again.
    ///
    /// Pass the loop of a worker as `f` if the loop may be called in a task and calls
    /// [`run_in_loop`](crate::Notified::run_in_loop). Costs a load and two stores of a
    /// thread-local.
    ///
    /// ```
    /// use task_header::{Builder, current, without_current};
    ///
    /// let hides = async { (without_current(current), current().is_some()) };
    /// let (task, mut join) = Builder::new().spawn_with(hides, drop);
    /// task.run();
    /// assert_eq!(join.try_join().unwrap().unwrap(), (None, true));
    /// ```
    #[inline]
    pub fn without_current<R>(f: impl FnOnce() -> R) -> R {
        let _outer = Outer::new();
        set(0);
        f()
    }

    /// The word of an outer task. The drop of this value puts the word back.
    pub(super) struct Outer(usize);

    impl Outer {
        #[inline(always)]
        pub(super) fn new() -> Self {
            Self(word())
        }
    }

    impl Drop for Outer {
        #[inline(always)]
        fn drop(&mut self) {
            set(self.0);
        }
    }

    /// Runs `f`, a drop of a part of the task `id`, with that task as the current one.
    #[inline]
    pub(super) fn within<R>(id: Id, f: impl FnOnce() -> R) -> R {
        let _outer = Outer::new();
        enter(id);
        f()
    }

    /// Makes `id` the current task.
    #[inline(always)]
    pub(super) fn enter(id: Id) {
        set(id.0.get());
    }

    /// Leaves the current task. Returns whether it has yielded.
    #[inline(always)]
    pub(super) fn leave() -> bool {
        let has_yielded = word() & YIELDED != 0;
        set(0);
        has_yielded
    }

    #[inline(always)]
    fn word() -> usize {
        // Only a model's thread-locals are ever gone.
        CURRENT.try_with(Cell::get).unwrap_or(0)
    }

    #[inline(always)]
    fn set(word: usize) {
        // As in `word`.
        let _ = CURRENT.try_with(|current| current.set(word));
    }
}

/// Without `std` no task is current.
#[cfg(not(feature = "std"))]
mod current {
    use crate::id::Id;

    pub(super) struct Outer;

    impl Outer {
        pub(super) fn new() -> Self {
            Self
        }
    }

    pub(super) fn within<R>(_: Id, f: impl FnOnce() -> R) -> R {
        f()
    }

    pub(super) fn enter(_: Id) {}

    pub(super) fn leave() -> bool {
        false
    }
}

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
