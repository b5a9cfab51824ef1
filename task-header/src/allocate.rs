//! The creation of a task: one allocation, and the vtable that knows the task's types.
use crate::{
    blocks::alloc,
    cell::{Cell, Header, Join, Kind, Stage, TaskPtr, TaskVtable, output},
    complete,
    details::Details,
    state::State,
};
use core::{
    future::Future,
    marker::PhantomData,
    mem::{ManuallyDrop, offset_of},
    ptr::NonNull,
};
use sync_shim::{alloc::Layout, cell::UnsafeCell};

struct Table<F, K, J, M>(PhantomData<(F, K, J, M)>);

impl<F: Future, K: Kind, J: Join, M: Details> Table<F, K, J, M> {
    const VTABLE: &'static TaskVtable = &TaskVtable {
        poll: complete::poll::<F, K>,
        cancel: complete::cancel::<F, K>,
        schedule: K::schedule,
        panicked: K::panicked,
        output: output::<F, K::Scheduler>,
        drop_output: complete::drop_output::<F, K::Scheduler>,
        dealloc: complete::free::<F, K::Scheduler, J, M>,
        details: details_of::<F, K::Scheduler, J, M>,
        scheduler: offset_of!(Cell<F, K::Scheduler, J, M>, scheduler),
        join_waker: offset_of!(Cell<F, K::Scheduler, J, M>, join_waker),
    };
}

/// Allocates a task that is about to be scheduled.
///
/// Inlined into the caller that makes the future, so that the future is built in its place in the
/// cell, or moved there once.
#[inline(always)]
pub(crate) fn allocate<F: Future, K: Kind, J: Join, M: Details>(
    future: F,
    scheduler: K::Scheduler,
    details: M,
    state: State,
) -> TaskPtr {
    let layout = Layout::new::<Cell<F, K::Scheduler, J, M>>();
    // SAFETY: a cell contains a header, so its size is not zero.
    let block = unsafe { alloc(layout) }.cast::<Cell<F, K::Scheduler, J, M>>();
    let Some(cell) = NonNull::new(block) else {
        ::alloc::alloc::handle_alloc_error(layout)
    };
    let value = Cell {
        header: Header {
            vtable: Table::<F, K, J, M>::VTABLE,
            state,
            queue_next: UnsafeCell::new(None),
            place: UnsafeCell::new(None),
        },
        scheduler,
        stage: UnsafeCell::new(Stage {
            future: ManuallyDrop::new(future),
        }),
        join_waker: J::new(),
        details,
    };
    // SAFETY: the block is fresh and has the cell's layout.
    unsafe { cell.write(value) };
    cell.cast()
}

/// # Safety
/// The task is live and of these types.
unsafe fn details_of<F: Future, S, J, M: Details>(task: TaskPtr) -> NonNull<dyn Details> {
    let cell = task.cast::<Cell<F, S, J, M>>();
    // SAFETY: the cell is live, so the field's address is inside it.
    let details = unsafe { &raw mut (*cell.as_ptr()).details };
    // SAFETY: the address of a field of a live cell is not null.
    unsafe { NonNull::new_unchecked(details) }
}
