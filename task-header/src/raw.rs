//! The protocol over a task of unknown type: run, complete, and what a transition obliges to.
use crate::{
    WakeKind,
    cell::{TaskPtr, header, join_waker, vtable},
    list::{self, List, Releases},
    panics,
    stage::Polled,
    state::{Complete, Duty, Pend, Start},
};
use core::{mem::ManuallyDrop, ptr::NonNull};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Complete,
    Pending,
    /// The caller holds the one `Notified`, most often with the run in it (rule 8 of [`state`](crate::state)).
    Notified,
}

/// Where a task that waits is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Keep {
    /// In no list.
    Nowhere,
    /// In this list, which is live and the caller's for as long as the value is held. Nothing borrows it
    /// for longer than a step that runs no code of users.
    In(NonNull<List>),
    /// The owner whose list it was to be is gone: a task in no list is to be queued again, to find one.
    Requeue,
}

/// What the runner says of a task once its poll is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    pub(crate) keep: Keep,
    /// Whether a task that waits goes on at once, woken or not.
    pub(crate) again: bool,
}

impl Keep {
    /// # Safety
    /// No borrow that this has given is in use, and none is kept beyond a step that runs no code of users.
    unsafe fn list<'a>(self) -> Option<&'a mut List> {
        match self {
            // SAFETY: live and the caller's alone, by what `In` says.
            Self::In(mut list) => Some(unsafe { list.as_mut() }),
            Self::Nowhere | Self::Requeue => None,
        }
    }
}

/// Does what a transition obliges to.
///
/// # Safety
/// `duty` came from a transition of this task by the caller, who has not acted on it yet.
pub(crate) unsafe fn fulfil(task: TaskPtr, duty: Duty, why: WakeKind) {
    match duty {
        Duty::Nothing => {}
        Duty::Submit => {
            // SAFETY: the `Notified` is a reference, so the task is live.
            let vtable = unsafe { vtable(task) };
            // SAFETY: the caller holds the one `Notified`.
            unsafe { (vtable.schedule)(task, why) };
        }
        // SAFETY: the duty says that no reference is left.
        Duty::Dealloc => unsafe { dealloc(task) },
    }
}

/// A run whose owner panicked when it was asked for its list: it ends by cancelling the task.
struct BrokenOff(TaskPtr, Polled);

impl Drop for BrokenOff {
    fn drop(&mut self) {
        let Self(task, mut polled) = *self;
        if polled == Polled::Pending {
            // SAFETY: the run is a reference.
            let vtable = unsafe { vtable(task) };
            // SAFETY: this thread runs the task, whose future is there.
            polled = unsafe { (vtable.cancel)(task) };
        }
        // SAFETY: the future is gone.
        unsafe { complete(task, Keep::Nowhere, polled == Polled::Output) };
    }
}

/// Runs a task once, and asks after the poll what is to become of it.
///
/// # Safety
/// The caller holds the one `Notified`, which this consumes.
#[inline(always)]
pub(crate) unsafe fn run(task: TaskPtr, after: impl FnOnce() -> After) -> RunEnd {
    // SAFETY: the `Notified` is a reference, which the run turns into its own.
    let header = unsafe { header(task) };
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    let polled = match header.state.start() {
        // SAFETY: this thread runs the task.
        Start::Poll => unsafe { (vtable.poll)(task) },
        // SAFETY: as above.
        Start::Cancel => unsafe { (vtable.cancel)(task) },
    };
    if polled == Polled::Pending && header.state.is_aborted() {
        // SAFETY: this thread runs the task, whose future is there.
        unsafe { end_aborted(task, || after().keep) };
        return RunEnd::Complete;
    }
    let broken_off = BrokenOff(task, polled);
    let After { keep, again } = after();
    core::mem::forget(broken_off);
    if polled != Polled::Pending {
        // SAFETY: the future is gone.
        unsafe { complete(task, keep, polled == Polled::Output) };
        return RunEnd::Complete;
    }
    if again || header.state.is_woken() {
        return RunEnd::Notified;
    }
    let mut list_it = false;
    if !matches!(keep, Keep::Nowhere) && !header.state.is_listed() {
        // SAFETY: for the next step alone.
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
            // The list is not touched after the future's drop, which may have given it away.
            // SAFETY: the run has become the one `Notified`.
            unsafe { end_aborted(task, || Keep::Nowhere) };
            RunEnd::Complete
        }
        Pend::Orphan => {
            // SAFETY: an orphan is this thread's, as running.
            let polled = unsafe { (vtable.cancel)(task) };
            // SAFETY: the future is gone.
            unsafe { complete(task, Keep::Nowhere, polled == Polled::Output) };
            RunEnd::Complete
        }
    }
}

/// Ends a task that was aborted in its poll (rule 9 of [`state`](crate::state)). Asks for the list
/// that it is kept in after the future's drop, which may give a list to another thread.
///
/// # Safety
/// The calling thread runs the task, or has its `Notified`; the future is there.
#[cold]
#[inline(never)]
unsafe fn end_aborted(task: TaskPtr, keep: impl FnOnce() -> Keep) {
    // SAFETY: the run or the `Notified` is a reference. The start makes it this thread's run.
    let start = unsafe { header(task) }.state.start();
    debug_assert_eq!(start, Start::Cancel, "it was aborted");
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    // SAFETY: this thread runs the task, whose future is there.
    let polled = unsafe { (vtable.cancel)(task) };
    let broken_off = BrokenOff(task, polled);
    let keep = keep();
    core::mem::forget(broken_off);
    // SAFETY: the future is gone.
    unsafe { complete(task, keep, polled == Polled::Output) };
}

/// Drops the future of a queued task in place of running it.
///
/// # Safety
/// As for [`run`].
pub(crate) unsafe fn cancel(task: TaskPtr, keep: Keep) {
    // SAFETY: the `Notified` is a reference, which the run turns into its own.
    let header = unsafe { header(task) };
    let (Start::Poll | Start::Cancel) = header.state.start();
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    // SAFETY: this thread runs the task.
    let polled = unsafe { (vtable.cancel)(task) };
    // SAFETY: the future is gone.
    unsafe { complete(task, keep, polled == Polled::Output) };
}

/// Ends a run whose future is gone, and whose output is in the slot (`has_output`) or gone, too.
///
/// A listed task that ends elsewhere than with its owner goes over the owner's release stack,
/// where its `LISTED` keeps it alive.
///
/// # Safety
/// The calling thread runs the task, and says the truth of its slot. Only where nobody joins may it be empty.
pub(crate) unsafe fn complete(task: TaskPtr, keep: Keep, has_output: bool) {
    // SAFETY: the run is a reference.
    let header = unsafe { header(task) };
    let mut listing = Listing::Unlisted;
    if header.state.is_listed() {
        // SAFETY: `start` has acquired the listing.
        let owner = unsafe { list::releases(task) };
        listing = Listing::Elsewhere(owner);
        // SAFETY: for the next step alone.
        let list = unsafe { keep.list() };
        if let Some(list) = list.filter(|list| list.releases == owner) {
            // SAFETY: the task is in this list, and never queued again.
            unsafe { list.remove(task) };
            listing = Listing::Removed;
        }
    }
    // SAFETY: the run goes on, and its listing is as just found.
    unsafe { end(task, listing, has_output) };
}

/// Where a task whose run ends is listed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    Unlisted,
    /// In this owner's list, out of which it was just taken; `LISTED` is still set.
    Removed,
    /// In another's, who is to hear of it.
    Elsewhere(NonNull<Releases>),
}

/// # Safety
/// As for [`complete`].
unsafe fn end(task: TaskPtr, listing: Listing, has_output: bool) {
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
                // SAFETY: nobody joins, so the slot is still the run's.
                || unsafe { (vtable.drop_output)(task) },
                // SAFETY: the run goes on, without an output.
                || unsafe { end(task, listing, false) },
            );
        }
        Complete::WakeJoin => {
            // SAFETY: the run is still a reference, and somebody joins.
            let slot = unsafe { join_waker(task) };
            // SAFETY: complete with JOIN_WAKER set: the waker is this thread's for good, and nobody writes the slot (rule 7 of `state`).
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
                    let duty = header.state.release_run(listing == Listing::Removed);
                    // SAFETY: the duty is the transition's.
                    unsafe { settle(task, listing, duty) };
                },
            );
        }
        // SAFETY: the duty is the transition's.
        Complete::Done => unsafe { settle(task, listing, Duty::Nothing) },
        // SAFETY: as above.
        Complete::Dealloc => unsafe { settle(task, listing, Duty::Dealloc) },
    }
}

/// # Safety
/// The run has ended with this duty.
unsafe fn settle(task: TaskPtr, listing: Listing, duty: Duty) {
    match (duty, listing) {
        // SAFETY: no reference is left.
        (Duty::Dealloc, _) => unsafe { dealloc(task) },
        (_, Listing::Elsewhere(owner)) => {
            // SAFETY: complete, in that list, and pushed by the one thread that completed it.
            // LISTED, which only the owner takes back, and after this push, keeps both alive.
            unsafe { Releases::push(owner, task) };
        }
        _ => {}
    }
}

/// Frees the cell.
///
/// # Safety
/// No reference is left, and future and output are gone.
pub(crate) unsafe fn dealloc(task: TaskPtr) {
    #[cfg(all(test, feature = "std"))]
    crate::exposed::check::with(|exposed| exposed.remove(&task.addr()));
    // SAFETY: the caller says that it is alone with a live cell.
    let vtable = unsafe { vtable(task) };
    // SAFETY: as above.
    unsafe { (vtable.dealloc)(task) };
}
