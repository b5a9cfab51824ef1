//! Tasks whose scheduler is a closure.
use crate::{
    cell::{self, Kind, TaskPtr, WakeKind},
    join::AbortHandle,
    notified::{Notified, Schedule},
};
use core::{marker::PhantomData, mem::needs_drop};

/// A task whose scheduler is a closure of any type.
pub type Runnable = Notified<Closure>;

/// The scheduler type of every [`Runnable`]. It does not name the closure's type, which would have
/// to contain itself.
#[derive(Debug)]
pub struct Closure(());

impl Schedule for Closure {
    fn schedule(task: Notified<Self>, why: WakeKind) {
        let task = task.into_task();
        // SAFETY: this was the one `Notified`, which keeps the task alive.
        let vtable = unsafe { task.as_ref() }.vtable;
        // SAFETY: as above; the vtable's `schedule` knows the closure's type.
        unsafe { (vtable.schedule)(task, why) };
    }
}

/// The kind of tasks that hold a closure as their scheduler.
pub(crate) struct ByClosure<C>(PhantomData<C>);

impl<C: Fn(Runnable)> Kind for ByClosure<C> {
    type Scheduler = C;

    unsafe fn schedule(task: TaskPtr, _: WakeKind) {
        // Once the closure has the task, another thread may run it to its end and free the cell,
        // with the closure in it. So a reference keeps the cell, unless the closure has no size and
        // no drop: such a closure may be called at any address.
        let _keeps = (size_of::<C>() != 0 || needs_drop::<C>()).then(|| {
            // SAFETY: the `Notified` keeps the task alive.
            unsafe { AbortHandle::of(task) }
        });
        // SAFETY: the closure is live during the call, and `C` is the type that `allocate` put
        // there. A closure without a size or a drop needs no live cell.
        let schedule = unsafe { cell::scheduler::<C>(task) };
        // SAFETY: the caller promises this. `Closure`, the scheduler type, stands in for `C` and
        // has no size.
        let notified = unsafe { Notified::from_task(task) };
        schedule(notified);
    }
}
