//! The end of a task, from the run whose future is gone ([`run`](crate::run)) to the free of its
//! memory. The file reads in this order:
//!
//! | step | function | skipped if |
//! |---|---|---|
//! | 1 the task leaves its owner's list | [`complete`] | it is in no list, or in another owner's list |
//! | 2 the state word becomes `COMPLETE` | `publish` | |
//! | 3 the join waker is woken | `wake_join` | no join handle has left a waker |
//! | 4 the task is sent to its owner, or freed | `release` | it is in no other owner's list, and others have references |
//! | 5 the memory is freed | [`free`] | |
//!
//! Only step 5 knows the task's types; it is a function of the vtable. If the last reference is
//! dropped after step 2, the holder of that reference performs step 5, through [`dealloc`].
//!
//! Rule 7 of [`state`](crate::state) says who has the join waker's slot. Every call of user code is
//! contained ([`panics`]); where nothing can be caught, a drop guard finishes the work.
use crate::{
    blocks::dealloc as free_block,
    cell::{Cell, Join, JoinWaker, TaskPtr},
    list::{self, Keep},
    panics,
    releases::Releases,
    state::{Complete, Duty, State},
};
use core::{
    future::Future,
    mem::{ManuallyDrop, needs_drop},
    ptr::NonNull,
    task::Waker,
};
use sync_shim::{alloc::Layout, atomic::Retire, cell::UnsafeCell};

/// The list of a task whose run ends.
#[derive(Clone, Copy)]
enum Listing {
    Unlisted,
    /// The task was in the list of the thread that ends the run, until just now. `LISTED` is still
    /// set.
    Removed,
    /// The task is in the list of this other owner.
    Elsewhere(NonNull<Releases>),
}

/// Steps 1 to 5, for a run whose future is gone. Its output is in the slot (`has_output`), or gone
/// as well.
///
/// # Safety
/// The calling thread runs the task, and `has_output` is true exactly if the slot is written. The
/// slot may be empty only if there is no join handle.
pub(crate) unsafe fn complete(task: TaskPtr, keep: Keep, has_output: bool) {
    // SAFETY: the run is a reference.
    let header = unsafe { task.as_ref() };
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

/// Step 2. Marks the task complete, and performs the steps that remain.
///
/// # Safety
/// As for [`complete`].
unsafe fn publish(task: TaskPtr, listing: Listing, has_output: bool) {
    // SAFETY: the run is a reference.
    let header = unsafe { task.as_ref() };
    match header
        .state
        .complete(has_output, matches!(listing, Listing::Removed))
    {
        Complete::DropOutput => {
            // SAFETY: as above.
            let vtable = unsafe { task.as_ref() }.vtable;
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

/// Step 3. Moves the join waker out, wakes it, and then releases the run's reference.
///
/// # Safety
/// The task is complete with `JOIN_WAKER` set, and the run's reference is not released.
unsafe fn wake_join(task: TaskPtr, listing: Listing) {
    // SAFETY: the run is still a reference, and a join handle existed, since it left the waker.
    let slot = unsafe { join_waker(task) };
    // SAFETY: the waker is this thread's for good, and no thread writes the slot (rule 7).
    let waker = slot.with(|slot| unsafe { slot.read() });
    let _woken = Woken(task, listing);
    if let Some(waker) = ManuallyDrop::into_inner(waker) {
        // SAFETY: the run is a reference until its release.
        unsafe { panics::contain_in(task, || waker.wake()) };
    }
}

/// A run that wakes the join waker. The drop of this value releases the run's reference, also while
/// a panic of the wake unwinds.
struct Woken(TaskPtr, Listing);

impl Drop for Woken {
    fn drop(&mut self) {
        let Self(task, listing) = *self;
        // SAFETY: the run is a reference until its release.
        let state = &unsafe { task.as_ref() }.state;
        let duty = state.release_run(matches!(listing, Listing::Removed));
        // SAFETY: the duty came from the transition.
        unsafe { release(task, listing, duty) };
    }
}

/// Returns the slot of the join waker of a live task.
///
/// # Safety
/// The caller has a reference for all of `'a` to a task that was made with a join handle.
pub(crate) unsafe fn join_waker<'a>(task: TaskPtr) -> &'a UnsafeCell<ManuallyDrop<Option<Waker>>> {
    // SAFETY: the caller promises this.
    let offset = unsafe { task.as_ref() }.vtable.join_waker;
    // SAFETY: the vtable is the cell's own, so the offset is within the cell.
    let waker = unsafe { task.byte_add(offset) }.cast::<JoinWaker>();
    // SAFETY: the slot is only ever borrowed shared; it exists, since the task was made with a join
    // handle.
    &unsafe { waker.as_ref() }.0
}

/// Step 4. Frees the cell if no reference is left, or sends the task to the owner whose list it is
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
    let vtable = unsafe { task.as_ref() }.vtable;
    // SAFETY: as above.
    unsafe { (vtable.dealloc)(task) };
}

/// Step 5. Frees a cell whose future and output are gone. Contains a panic in the drops of the join
/// waker, of the scheduler and of the details. Until the details are dropped, an
/// [`Observer`](crate::Observer) may read the state word.
///
/// # Safety
/// The task is of these types, and no reference to it is left.
pub(crate) unsafe fn free<F: Future, S, J: Join, M>(task: TaskPtr) {
    let cell = task.cast::<Cell<F, S, J, M>>().as_ptr();
    // SAFETY: no reference is left, so the slot is the caller's alone.
    let slot = unsafe { &mut (*cell).join_waker }.slot();
    // SAFETY: the cell is live. The state is borrowed shared, as observers may read it.
    let state = unsafe { &(*cell).header.state };
    let waker = slot.and_then(|slot| left_waker(slot, state));
    let dealloc = move || {
        sync_shim::sim::freed(cell.addr());
        // SAFETY: the details are gone, and with them the last observer, so that the cell is the
        // caller's alone.
        retire(unsafe { &mut *cell });
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

/// Takes the waker that a join handle has left in the slot, unless a completion has moved it out.
/// The caller holds the last reference.
fn left_waker(slot: &mut JoinWaker, state: &State) -> Option<Waker> {
    slot.0.with_mut(|slot| {
        // SAFETY: the slot is borrowed mutably.
        let slot = unsafe { &mut *slot };
        if slot.is_none() || state.gave_join_waker() {
            return None;
        }
        // SAFETY: no completion has moved the waker out, and this is the last use of the slot.
        unsafe { ManuallyDrop::take(slot) }
    })
}

/// Retires the atomics and the `UnsafeCell`s just before the cell is freed.
fn retire<F: Future, S, J: Join, M>(cell: &mut Cell<F, S, J, M>) {
    cell.header.state.retire();
    cell.header.queue_next.retire();
    cell.header.place.retire();
    cell.stage.retire();
    if let Some(slot) = cell.join_waker.slot() {
        slot.0.retire();
    }
}
