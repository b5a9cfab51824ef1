//! The protocol over a task of unknown type: run, complete, and what a transition obliges to.
use crate::{
    WakeKind,
    cell::{TaskPtr, header, trailer, vtable},
    owned::{Links, Releases},
    panics,
    state::{Complete, Duty, Pend, Start},
};
use core::ptr::{self, NonNull};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Complete,
    Pending,
    /// The caller holds the one `Notified` again.
    Notified,
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

/// Runs a task once, in `list` if there is one.
///
/// # Safety
/// The caller holds the one `Notified`, which this consumes.
pub(crate) unsafe fn run(task: TaskPtr, mut list: Option<&mut Links>) -> RunEnd {
    // SAFETY: the `Notified` is a reference, which the run turns into its own.
    let header = unsafe { header(task) };
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    let done = match header.state.start() {
        // SAFETY: this thread runs the task.
        Start::Poll => unsafe { (vtable.poll)(task) },
        Start::Cancel => {
            // SAFETY: this thread runs the task.
            unsafe { (vtable.cancel)(task) };
            true
        }
    };
    if done {
        // SAFETY: the output is written.
        unsafe { complete(task, list) };
        return RunEnd::Complete;
    }
    let link = match &mut list {
        Some(list) if !header.state.is_listed() => {
            // SAFETY: the task runs here and is in no list.
            unsafe { list.link(task) };
            true
        }
        _ => false,
    };
    match header.state.pend(link) {
        Pend::Idle => RunEnd::Pending,
        Pend::Notified => RunEnd::Notified,
        Pend::Orphan => {
            // SAFETY: an orphan is this thread's, as running.
            unsafe { (vtable.cancel)(task) };
            // SAFETY: the output is written.
            unsafe { complete(task, None) };
            RunEnd::Complete
        }
    }
}

/// Drops the future of a queued task in place of running it.
///
/// # Safety
/// As for [`run`].
pub(crate) unsafe fn cancel(task: TaskPtr, list: Option<&mut Links>) {
    // SAFETY: the `Notified` is a reference, which the run turns into its own.
    let header = unsafe { header(task) };
    let (Start::Poll | Start::Cancel) = header.state.start();
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    // SAFETY: this thread runs the task.
    unsafe { (vtable.cancel)(task) };
    // SAFETY: the output is written.
    unsafe { complete(task, list) };
}

/// Ends a run whose output is written.
///
/// A listed task that ends elsewhere than with its owner goes over the owner's release stack,
/// where its `LISTED` keeps it alive.
///
/// # Safety
/// The calling thread runs the task, and has written its output slot.
pub(crate) unsafe fn complete(task: TaskPtr, list: Option<&mut Links>) {
    // SAFETY: the run is a reference.
    let header = unsafe { header(task) };
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    let listed = header.state.is_listed();
    let owner: *const Releases = if listed {
        // SAFETY: constant since the listing, which `start` has acquired.
        header.owner.with(|owner| unsafe { *owner })
    } else {
        ptr::null()
    };
    let mut unlisted = false;
    if let Some(list) = list
        && listed
        && list.owns(owner)
    {
        // SAFETY: the task is in this list, and never queued again.
        unsafe { list.unlink(task) };
        unlisted = true;
    }
    let mut has_output = true;
    let end = loop {
        match header.state.complete(has_output, unlisted) {
            Complete::DropOutput => {
                // SAFETY: nobody joins, so the slot is still the run's.
                unsafe { (vtable.drop_output)(task) };
                has_output = false;
            }
            Complete::WakeJoin => {
                // SAFETY: the run is still a reference.
                let trailer = unsafe { trailer(task) };
                // SAFETY: complete with JOIN_WAKER set: the slot is this thread's for good.
                let waker = trailer
                    .join_waker
                    .with_mut(|slot| unsafe { (*slot).take() });
                if let Some(waker) = waker {
                    panics::contain(|| waker.wake());
                }
                break header.state.release_run(unlisted);
            }
            Complete::Done => break Duty::Nothing,
            Complete::Dealloc => break Duty::Dealloc,
        }
    };
    match end {
        // SAFETY: no reference is left.
        Duty::Dealloc => unsafe { dealloc(task) },
        _ if listed && !unlisted => {
            // SAFETY: a listed task's owner is not null.
            let releases = unsafe { NonNull::new_unchecked(owner.cast_mut()) };
            // SAFETY: complete, in that list, and pushed by the one thread that completed it.
            // LISTED, which only the owner takes back, and after this push, keeps both alive.
            unsafe { Releases::push(releases, task) };
        }
        _ => {}
    }
}

/// Frees the cell.
///
/// # Safety
/// No reference is left, and future and output are gone.
pub(crate) unsafe fn dealloc(task: TaskPtr) {
    // SAFETY: the caller says that it is alone with a live cell.
    let vtable = unsafe { vtable(task) };
    // SAFETY: as above.
    unsafe { (vtable.dealloc)(task) };
}
