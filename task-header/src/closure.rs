//! Tasks whose scheduler is a closure.
use crate::{
    cell::{self, Kind, TaskPtr, WakeKind, vtable},
    join::AbortHandle,
    notified::{Notified, Schedule},
};
use core::{marker::PhantomData, mem::needs_drop};

/// A task whose scheduler is a closure, whichever that is.
pub type Runnable = Notified<Closure>;

/// The scheduler type of all [`Runnable`]s. It says nothing of the closure's type, which would have
/// to contain itself.
#[derive(Debug)]
pub struct Closure(());

impl Schedule for Closure {
    fn schedule(task: Notified<Self>, why: WakeKind) {
        let task = task.into_task();
        // SAFETY: this was the one `Notified`, which keeps the task alive.
        let vtable = unsafe { vtable(task) };
        // SAFETY: as above; the vtable's knows the closure's type.
        unsafe { (vtable.schedule)(task, why) };
    }
}

/// Tasks with a closure in the scheduler's place.
pub(crate) struct ByClosure<C>(PhantomData<C>);

impl<C: Fn(Runnable)> Kind for ByClosure<C> {
    type Scheduler = C;

    unsafe fn schedule(task: TaskPtr, _: WakeKind) {
        // Once the closure has the task, another thread may run it to its end and free it, closure
        // and all. One without a size is anywhere, but its captures may go with the cell.
        let _keeps = (size_of::<C>() != 0 || needs_drop::<C>()).then(|| {
            // SAFETY: the `Notified` keeps the task alive.
            unsafe { AbortHandle::of(task) }
        });
        // SAFETY: live for as long as this runs, and `C` is what `allocate` put there. One without
        // a size or a drop is anywhere.
        let schedule = unsafe { cell::scheduler::<C>(task) };
        // SAFETY: passed on. The scheduler type is a stand-in without a size.
        let notified = unsafe { Notified::from_task(task) };
        schedule(notified);
    }
}
