//! Wakes, aborts, and drops of references. Each is a transition of the state word, followed by the
//! duty that the transition returns.
#[cfg(feature = "std")]
use crate::panics;
use crate::{
    cell::{Header, TaskPtr, WakeKind},
    complete::dealloc,
    id::Id,
    state::Duty,
};
use core::task::{RawWakerVTable, Waker};
use waker_vtable::{WakeTarget, vtable_of};

/// The vtable of all tasks' wakers. A static has one address, so `will_wake` compares tasks.
static WAKER: RawWakerVTable = vtable_of::<Header>();

// SAFETY: the table is that of `Header`. The functions count in `state`, which is atomic.
unsafe impl WakeTarget for Header {
    #[inline]
    fn vtable() -> &'static RawWakerVTable {
        &WAKER
    }

    unsafe fn ref_inc(this: TaskPtr) {
        // SAFETY: the waker that is cloned has a reference.
        unsafe { this.as_ref() }.state.ref_inc();
    }

    unsafe fn ref_dec(this: TaskPtr) {
        // SAFETY: the waker's own reference lasts until this transition.
        let duty = unsafe { this.as_ref() }.state.ref_dec();
        // SAFETY: the duty came from this transition.
        unsafe { fulfil(this, duty, WakeKind::Orphan) };
    }

    unsafe fn wake_by_ref(this: TaskPtr) {
        // SAFETY: the waker has a reference.
        let duty = unsafe { this.as_ref() }.state.wake_by_ref();
        // SAFETY: the duty came from this transition.
        unsafe { fulfil(this, duty, WakeKind::Wake) };
    }

    unsafe fn wake_by_val(this: TaskPtr) {
        // SAFETY: the waker's own reference lasts until this transition.
        let duty = unsafe { this.as_ref() }.state.wake_by_val();
        // SAFETY: the duty came from this transition.
        unsafe { fulfil(this, duty, WakeKind::Wake) };
    }
}

impl Id {
    /// Returns whether `waker` wakes this task. Compares two addresses, so the answer is right only
    /// while the task is not freed.
    ///
    /// A poll uses this to tell its task's own waker from another waker: some futures poll their
    /// parts with wakers of their own.
    #[inline]
    pub fn is_woken_by(self, waker: &Waker) -> bool {
        waker_vtable::try_target::<Header>(waker).is_some_and(|task| task.addr() == self.0)
    }
}

/// Requests the drop of the future.
///
/// # Safety
/// The caller has a reference to the task.
pub(crate) unsafe fn abort(task: TaskPtr) {
    // SAFETY: the caller promises this.
    let duty = unsafe { task.as_ref() }.state.abort();
    // SAFETY: the duty came from this transition.
    unsafe { fulfil(task, duty, WakeKind::Abort) };
}

/// Performs the duty that a transition returned. A panic of the scheduler unwinds out of this call,
/// unless another panic unwinds already, through the drop of the task's last reference.
///
/// # Safety
/// `duty` came from a transition of this task by the caller. The caller has not performed the duty
/// yet.
pub(crate) unsafe fn fulfil(task: TaskPtr, duty: Duty, why: WakeKind) {
    match duty {
        Duty::Nothing => {}
        Duty::Submit => {
            // SAFETY: the duty makes the caller the holder of the `Notified`, which keeps the task
            // live.
            let vtable = unsafe { task.as_ref() }.vtable;
            #[cfg(feature = "std")]
            if matches!(why, WakeKind::Orphan) {
                return schedule_orphan(|| {
                    // SAFETY: the caller holds the one `Notified`.
                    unsafe { (vtable.schedule)(task, why) }
                });
            }
            // SAFETY: as above.
            unsafe { (vtable.schedule)(task, why) };
        }
        // SAFETY: the duty says that no reference is left.
        Duty::Dealloc => unsafe { dealloc(task) },
    }
}

/// Schedules a task whose last reference was dropped. If that drop is part of an unwinding,
/// contains the scheduler's panic, which would end the process. This is a cold function, so that
/// the usual drop saves no registers for it.
#[cfg(feature = "std")]
#[cold]
#[inline(never)]
fn schedule_orphan(schedule: impl FnOnce()) {
    if std::thread::panicking() {
        panics::contain(schedule);
    } else {
        schedule();
    }
}
