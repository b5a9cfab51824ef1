//! What a wake, an abort and the drop of a reference do: a transition of the state word, and then
//! what that leaves to do.
use crate::{
    cell::{Header, TaskPtr, WakeKind, header, vtable},
    complete::dealloc,
    state::Duty,
};
use waker_vtable::WakeTarget;

// SAFETY: `repr(C)`, the `WakeHeader` first, made from a vtable that begins with
// `TargetVtable::of::<Header>()`. The functions count in `state`, which is atomic.
unsafe impl WakeTarget for Header {
    unsafe fn ref_inc(this: TaskPtr) {
        // SAFETY: the waker that is cloned has a reference.
        unsafe { header(this) }.state.ref_inc();
    }

    unsafe fn ref_dec(this: TaskPtr) {
        // SAFETY: the waker's own reference lasts until this transition.
        let duty = unsafe { header(this) }.state.ref_dec();
        // SAFETY: the duty is this transition's.
        unsafe { fulfil(this, duty, WakeKind::Orphan) };
    }

    unsafe fn wake_by_ref(this: TaskPtr) {
        // SAFETY: the waker has a reference.
        let duty = unsafe { header(this) }.state.wake_by_ref();
        // SAFETY: the duty is this transition's.
        unsafe { fulfil(this, duty, WakeKind::Wake) };
    }

    unsafe fn wake_by_val(this: TaskPtr) {
        // SAFETY: the waker's own reference lasts until this transition.
        let duty = unsafe { header(this) }.state.wake_by_val();
        // SAFETY: the duty is this transition's.
        unsafe { fulfil(this, duty, WakeKind::Wake) };
    }
}

/// Asks for a task to be dropped.
///
/// # Safety
/// The caller has a reference to the task.
pub(crate) unsafe fn abort(task: TaskPtr) {
    // SAFETY: passed on.
    let duty = unsafe { header(task) }.state.abort();
    // SAFETY: the duty is this transition's.
    unsafe { fulfil(task, duty, WakeKind::Abort) };
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
