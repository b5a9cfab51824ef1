//! The end of a task, from its last poll to the free of its memory. The file reads in this order:
//!
//! | step | function | skipped if |
//! |---|---|---|
//! | 1 the future is polled or cancelled, and dropped | [`poll`], [`cancel`] | |
//! | 2 the scheduler gets the outcome, and the output is written | `Ended::with` | there is no join handle: the output is dropped |
//! | 3 the task leaves its owner's list | [`complete`] | it is in no list, or in another owner's list |
//! | 4 the state word becomes `COMPLETE` | `publish` | |
//! | 5 the join waker is woken | `wake_join` | no join handle has left a waker |
//! | 6 the task is sent to its owner, or freed | `release` | it is in no other owner's list, and others have references |
//! | 7 the memory is freed | [`free`] | |
//!
//! Steps 1, 2 and 7 know the task's types, and are functions of its vtable. The other steps do not
//! know the types. If the last reference is dropped after step 4, the holder of that reference
//! performs step 7, through [`dealloc`].
//!
//! The rules cited here are those of [`state`](crate::state): rule 6 for the stage, rule 7 for the
//! join waker's slot. Every call of user code is contained ([`panics`]); where nothing can be
//! caught, a drop guard finishes the work.
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
#[cfg(feature = "std")]
use crate::current;
use crate::{
    blocks::dealloc as free_block,
    cell::{
        Cell, Join, Kind, Outcome, Output, Polled, Stage, TaskPtr, header, id, join_waker, stage,
        vtable,
    },
    error::JoinError,
    list::{self, Keep},
    panics::{self, Payload},
    releases::Releases,
    state::{Complete, Duty},
};
use core::{
    future::Future,
    marker::PhantomData,
    mem::{ManuallyDrop, forget, needs_drop},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll},
};
use sync_shim::alloc::Layout;
use waker_vtable::WakerRef;

/// Without `std` no task is current.
#[cfg(not(feature = "std"))]
mod current {
    pub(super) fn within<R>(_: crate::Id, f: impl FnOnce() -> R) -> R {
        f()
    }
}

/// Step 1. Polls the future, and drops it if it is ready.
///
/// # Safety
/// The caller runs the task, which is of these types.
pub(crate) unsafe fn poll<F: Future, K: Kind>(task: TaskPtr) -> Polled {
    // SAFETY: the run holds a reference that outlives this waker.
    let waker = unsafe { WakerRef::new(task) };
    let mut cx = Context::from_waker(&waker);
    let ended = Ended::<F, K>::new(task);
    // `output` is outside of the caught closure, so that a panic of the future's drop does not drop
    // the output while it unwinds.
    let mut output = None;
    #[cfg(feature = "std")]
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
    #[cfg(feature = "std")]
    let has_yielded = current::leave();
    #[cfg(not(feature = "std"))]
    let has_yielded = false;
    match (caught, output) {
        (Ok(()), None) => ended.not_yet(has_yielded),
        (Ok(()), Some(output)) => ended.with(Ok(output)),
        (Err(payload), output) => ended.by_panic(payload, output),
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

/// Step 1 for a task that was aborted. Drops the future instead of polling it.
///
/// # Safety
/// As for [`poll`].
pub(crate) unsafe fn cancel<F: Future, K: Kind>(task: TaskPtr) -> Polled {
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

/// Step 2. The future is gone when `with` or `by_panic` is called. In a build that can't catch a
/// panic, the drop of this value completes the task while the panic unwinds; by then the panic has
/// dropped the future.
struct Ended<F: Future, K: Kind> {
    task: TaskPtr,
    types: PhantomData<(F, K)>,
}

impl<F: Future, K: Kind> Ended<F, K> {
    /// Begins step 2. The caller runs a task of these types.
    fn new(task: TaskPtr) -> Self {
        Self {
            task,
            types: PhantomData,
        }
    }

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
        let polled = if unsafe { header(self.task) }.state.is_joined() {
            self.write(output);
            Polled::Output
        } else {
            if needs_drop::<F::Output>() || output.is_err() {
                let drop_output = || current::within(id(self.task), || drop(output));
                // SAFETY: the run holds a reference.
                unsafe { panics::contain_in(self.task, drop_output) };
            }
            Polled::NoOutput
        };
        forget(self);
        polled
    }

    fn write(&self, output: Output<F::Output>) {
        // SAFETY: this thread runs a task of this type.
        unsafe { stage::<F, K::Scheduler>(self.task) }.with_mut(|stage| {
            let slot = stage.cast::<Output<F::Output>>();
            // SAFETY: the slot is the running thread's (rule 6); the future is gone, so the slot is
            // free.
            unsafe { slot.write(output) }
        });
    }
}

impl<F: Future, K: Kind> Drop for Ended<F, K> {
    fn drop(&mut self) {
        self.write(Err(JoinError::cancelled(id(self.task))));
        // SAFETY: the future is gone, the slot is written, and only this code ends the run.
        unsafe { complete(self.task, Keep::Nowhere, true) };
    }
}

/// The list of a task whose run ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    Unlisted,
    /// The task was in the list of the thread that ends the run, until just now. `LISTED` is still
    /// set.
    Removed,
    /// The task is in the list of this other owner.
    Elsewhere(NonNull<Releases>),
}

/// Steps 3 to 7, for a run whose future is gone. Its output is in the slot (`has_output`), or gone
/// as well.
///
/// # Safety
/// The calling thread runs the task, and `has_output` is true exactly if the slot is written. The
/// slot may be empty only if there is no join handle.
pub(crate) unsafe fn complete(task: TaskPtr, keep: Keep, has_output: bool) {
    // SAFETY: the run is a reference.
    let header = unsafe { header(task) };
    let mut listing = Listing::Unlisted;
    if header.state.is_listed() {
        // SAFETY: `start` has acquired the listing.
        let owner = unsafe { list::releases(task) };
        listing = Listing::Elsewhere(owner);
        // SAFETY: the borrow is for the next step alone.
        let list = unsafe { keep.list() };
        if let Some(list) = list.filter(|list| list.releases == owner) {
            // SAFETY: the task is in this list, and is never queued again.
            unsafe { list.remove(task) };
            listing = Listing::Removed;
        }
    }
    // SAFETY: this thread still runs the task, and `listing` was read just now.
    unsafe { publish(task, listing, has_output) };
}

/// Step 4. Marks the task complete, and performs the steps that remain.
///
/// # Safety
/// As for [`complete`].
unsafe fn publish(task: TaskPtr, listing: Listing, has_output: bool) {
    // SAFETY: the run is a reference.
    let header = unsafe { header(task) };
    match header
        .state
        .complete(has_output, listing == Listing::Removed)
    {
        Complete::DropOutput => {
            // SAFETY: as above.
            let vtable = unsafe { vtable(task) };
            panics::contain_then(
                // SAFETY: there is no join handle, so the slot still belongs to the run.
                || unsafe { (vtable.drop_output)(task) },
                // SAFETY: this thread still runs the task, which has no output any more.
                || unsafe { publish(task, listing, false) },
            );
        }
        // SAFETY: the task is complete with JOIN_WAKER set, and the run's reference is kept.
        Complete::WakeJoin => unsafe { wake_join(task, listing) },
        // SAFETY: the duty came from the transition.
        Complete::Done => unsafe { release(task, listing, Duty::Nothing) },
        // SAFETY: as above.
        Complete::Dealloc => unsafe { release(task, listing, Duty::Dealloc) },
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
        let drop = || {
            // SAFETY: the slot is written; this is its only drop.
            unsafe { stage.cast::<Output<F::Output>>().drop_in_place() }
        };
        // SAFETY: the owner of the slot has a reference.
        unsafe { panics::contain_in(task, || current::within(id(task), drop)) };
    });
}

/// Step 5. Moves the join waker out, wakes it, and then releases the run's reference.
///
/// # Safety
/// The task is complete with `JOIN_WAKER` set, and the run's reference is not released.
unsafe fn wake_join(task: TaskPtr, listing: Listing) {
    // SAFETY: the run is still a reference, and a join handle existed, since it left the waker.
    let slot = unsafe { join_waker(task) };
    // SAFETY: the waker is this thread's for good, and no thread writes the slot (rule 7).
    let waker = slot.with(|slot| unsafe { slot.read() });
    let wake = || {
        if let Some(waker) = ManuallyDrop::into_inner(waker) {
            waker.wake();
        }
    };
    panics::contain_then(
        // SAFETY: the run is a reference until its release.
        || unsafe { panics::contain_in(task, wake) },
        || {
            // SAFETY: as above.
            let state = unsafe { &header(task).state };
            let duty = state.release_run(listing == Listing::Removed);
            // SAFETY: the duty came from the transition.
            unsafe { release(task, listing, duty) };
        },
    );
}

/// Step 6. Frees the cell if no reference is left, or sends the task to the owner whose list it is
/// still in. `LISTED` keeps the task alive until that owner releases it.
///
/// # Safety
/// The run has ended with this duty.
unsafe fn release(task: TaskPtr, listing: Listing, duty: Duty) {
    match (duty, listing) {
        // SAFETY: no reference is left.
        (Duty::Dealloc, _) => unsafe { dealloc(task) },
        (_, Listing::Elsewhere(owner)) => {
            // SAFETY: the task is complete and in that owner's list, and only the thread that
            // completed it pushes it. LISTED keeps the task and the stack alive. Only the owner
            // releases LISTED, and only after this push.
            unsafe { Releases::push(owner, task) };
        }
        _ => {}
    }
}

/// Frees the cell of a task of any type.
///
/// # Safety
/// No reference is left, and the future and the output are gone.
pub(crate) unsafe fn dealloc(task: TaskPtr) {
    #[cfg(all(test, feature = "std"))]
    crate::exposed::check::with(|exposed| exposed.remove(&task.addr()));
    // SAFETY: the caller promises that no reference is left, and the cell is still live.
    let vtable = unsafe { vtable(task) };
    // SAFETY: as above.
    unsafe { (vtable.dealloc)(task) };
}

/// Step 7. Frees a cell whose future and output are gone. Contains a panic in the drops of the join
/// waker, of the scheduler and of the details. Until the details are dropped, an
/// [`Observer`](crate::Observer) may read the state word.
///
/// # Safety
/// The task is of these types, and no reference to it is left.
pub(crate) unsafe fn free<F: Future, S, J: Join, M>(task: TaskPtr) {
    let cell = task.cast::<Cell<F, S, J, M>>().as_ptr();
    // SAFETY: no reference is left, so the slot is the caller's alone.
    let slot = unsafe { &mut (*cell).join_waker };
    // SAFETY: the cell is live. The state is borrowed shared, as observers may read it.
    let waker = slot.left(unsafe { &(*cell).header.state });
    let dealloc = move || {
        // SAFETY: the details are gone, and with them the last observer, so that the cell is the
        // caller's alone.
        unsafe { &mut *cell }.retire();
        // SAFETY: `allocate` allocated the block with this layout.
        unsafe { free_block(cell.cast(), Layout::new::<Cell<F, S, J, M>>()) }
    };
    // A plain task has at most an empty waker slot left, so there is nothing to drop.
    if needs_drop::<S>() || needs_drop::<M>() || waker.is_some() {
        // Each value is dropped on its own, because two panics at once would end the process. The
        // waker comes first, because a panic of its drop is reported to the scheduler.
        // SAFETY: the cell is live until it is freed at the end of this function.
        let drop_waker = || unsafe { panics::contain_in(task, || drop(waker)) };
        // SAFETY: a field of a live cell.
        let scheduler = unsafe { &raw mut (*cell).scheduler };
        // SAFETY: the scheduler is dropped once, and not used afterwards.
        let drop_scheduler = || unsafe { scheduler.drop_in_place() };
        // SAFETY: as for the scheduler.
        let details = unsafe { &raw mut (*cell).details };
        // SAFETY: as for the scheduler.
        let drop_details = || unsafe { details.drop_in_place() };
        panics::contain_then(drop_waker, || {
            panics::contain_then(drop_scheduler, || {
                panics::contain_then(drop_details, dealloc);
            });
        });
    } else {
        dealloc();
    }
}
