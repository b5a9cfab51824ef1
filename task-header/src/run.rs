//! One run of a queued task: start, poll, and then *idle*, *queued* again, or *complete*.
//!
//! The end of a task continues in [`complete`](crate::complete).
#[cfg(feature = "std")]
use crate::current::Outer;
use crate::{
    cell::{Polled, TaskPtr, header, vtable},
    complete::complete,
    list::Keep,
    state::{Pend, Start},
};

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

/// A run whose runner panicked when it was asked for the task's list. The drop of this value ends
/// the task: it drops the future, unless the future is gone already.
struct BrokenOff(TaskPtr, Polled);

impl Drop for BrokenOff {
    fn drop(&mut self) {
        let Self(task, mut polled) = *self;
        if matches!(polled, Polled::Pending | Polled::Yielded) {
            // SAFETY: the run is a reference.
            let vtable = unsafe { vtable(task) };
            // SAFETY: this thread runs the task, whose future is not dropped yet.
            polled = unsafe { (vtable.cancel)(task) };
        }
        // SAFETY: the future is gone.
        unsafe { complete(task, Keep::Nowhere, polled == Polled::Output) };
    }
}

/// Runs a task once. After the poll, `answer` says what to do with the task.
///
/// # Safety
/// The caller holds the one `Notified`, which the call consumes.
#[inline(always)]
pub(crate) unsafe fn run(task: TaskPtr, answer: impl FnOnce() -> Answer) -> RunEnd {
    #[cfg(feature = "std")]
    let _outer = Outer::new();
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
    let header = unsafe { header(task) };
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    let polled = match header.state.start() {
        // SAFETY: this thread runs the task.
        Start::Poll => unsafe { (vtable.poll)(task) },
        // SAFETY: as above.
        Start::Cancel => unsafe { (vtable.cancel)(task) },
    };
    let has_yielded = polled == Polled::Yielded;
    let is_pending = has_yielded | (polled == Polled::Pending);
    if is_pending && header.state.is_aborted() {
        // SAFETY: this thread runs the task, whose future is still there.
        unsafe { end_aborted(task, || answer().keep) };
        return RunEnd::Complete;
    }
    let broken_off = BrokenOff(task, polled);
    let Answer { keep, again } = answer();
    core::mem::forget(broken_off);
    if !is_pending {
        // SAFETY: the future is gone.
        unsafe { complete(task, keep, polled == Polled::Output) };
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
            unsafe { complete(task, Keep::Nowhere, polled == Polled::Output) };
            RunEnd::Complete
        }
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
    let start = unsafe { header(task) }.state.start();
    debug_assert_eq!(start, Start::Cancel, "it was aborted");
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    // SAFETY: this thread runs the task, whose future is still there.
    let polled = unsafe { (vtable.cancel)(task) };
    let broken_off = BrokenOff(task, polled);
    let keep = keep();
    core::mem::forget(broken_off);
    // SAFETY: the future is gone.
    unsafe { complete(task, keep, polled == Polled::Output) };
}

/// Drops the future of a queued task instead of running it.
///
/// # Safety
/// As for [`run`].
pub(crate) unsafe fn cancel(task: TaskPtr, keep: Keep) {
    // SAFETY: the `Notified` is a reference, which becomes the run's.
    let header = unsafe { header(task) };
    let (Start::Poll | Start::Cancel) = header.state.start();
    // SAFETY: as above.
    let vtable = unsafe { vtable(task) };
    // SAFETY: this thread runs the task.
    let polled = unsafe { (vtable.cancel)(task) };
    // SAFETY: the future is gone.
    unsafe { complete(task, keep, polled == Polled::Output) };
}
