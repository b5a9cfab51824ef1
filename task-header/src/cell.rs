//! The one allocation of a task: `Header | scheduler | future or output | Trailer`.
//!
//! Everything else in this crate holds a `NonNull<Header>` that was made from the whole
//! allocation and keeps its provenance; the vtable knows the rest of the layout.
//!
//! | field | who may touch it |
//! |---|---|
//! | `Header::state` | anyone with a reference |
//! | `Header::queue_next` | whoever holds the `Notified`; after completion, the owner's release stack |
//! | `Header::owner` | written by the owner before `LISTED` is set, constant from then on |
//! | `scheduler` | anyone with a reference, shared |
//! | `stage` | rule 6 of [`state`](crate::state) |
//! | `Trailer::links` | the owner alone |
//! | `Trailer::join_waker` | rule 7 of [`state`](crate::state) |
use crate::{
    Schedule, WakeKind,
    error::Failure,
    notified::Notified,
    owned::Releases,
    panics::{self, Payload},
    raw,
    state::State,
};
use ::alloc::boxed::Box;
use core::{
    future::Future,
    mem::{ManuallyDrop, offset_of},
    pin::Pin,
    ptr::{self, NonNull},
    task::{Context, Poll, Waker},
};
use sync_shim::{
    alloc::{Layout, alloc, dealloc},
    atomic::Retire,
    cell::UnsafeCell,
};
use waker_vtable::{TargetVtable, WakeHeader, WakeTarget, WakerRef};

/// A pointer to a task of any type.
pub(crate) type TaskPtr = NonNull<Header>;

/// The hot part of a task. Opaque; public because queues are typed by it.
#[repr(C)]
pub struct Header {
    wake: WakeHeader,
    pub(crate) state: State,
    pub(crate) queue_next: UnsafeCell<Option<TaskPtr>>,
    pub(crate) owner: UnsafeCell<*const Releases>,
}

/// The cold part.
pub(crate) struct Trailer {
    pub(crate) links: UnsafeCell<Links>,
    pub(crate) join_waker: UnsafeCell<Option<Waker>>,
}

/// The neighbours in the owner's list.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) prev: Option<TaskPtr>,
    pub(crate) next: Option<TaskPtr>,
}

/// What a run leaves in the output slot.
pub(crate) type Output<T> = Result<T, Failure>;

/// Both fields lie at offset 0, so a cast of the pointer reaches either.
#[repr(C)]
union Stage<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Output<F::Output>>,
}

#[repr(C)]
struct Cell<F: Future, S> {
    header: Header,
    scheduler: S,
    stage: UnsafeCell<Stage<F>>,
    trailer: Trailer,
}

/// What a task of unknown type can do. The first field lets wakers through.
#[repr(C)]
pub(crate) struct TaskVtable {
    target: TargetVtable,
    /// Polls; true when the output slot is written and the future gone.
    pub(crate) poll: unsafe fn(TaskPtr) -> bool,
    /// Drops the future and writes a cancellation to the output slot.
    pub(crate) cancel: unsafe fn(TaskPtr),
    pub(crate) schedule: unsafe fn(TaskPtr, WakeKind),
    /// Moves the output out to a slot of type `MaybeUninit<Output<T>>`.
    pub(crate) take_output: unsafe fn(TaskPtr, *mut ()),
    pub(crate) drop_output: unsafe fn(TaskPtr),
    pub(crate) dealloc: unsafe fn(TaskPtr),
    scheduler: usize,
    trailer: usize,
}

impl<F: Future, S: Schedule> Cell<F, S> {
    const VTABLE: &'static TaskVtable = &TaskVtable {
        target: TargetVtable::of::<Header>(),
        poll: poll::<F, S>,
        cancel: cancel::<F, S>,
        schedule: schedule::<S>,
        take_output: take_output::<F, S>,
        drop_output: drop_output::<F, S>,
        dealloc: free::<F, S>,
        scheduler: offset_of!(Self, scheduler),
        trailer: offset_of!(Self, trailer),
    };
}

/// Allocates a task that is about to be submitted.
pub(crate) fn allocate<F: Future, S: Schedule>(future: F, scheduler: S, joined: bool) -> TaskPtr {
    let layout = Layout::new::<Cell<F, S>>();
    // SAFETY: a cell has a header, so its size is not zero.
    let block = unsafe { alloc(layout) }.cast::<Cell<F, S>>();
    let Some(cell) = NonNull::new(block) else {
        ::alloc::alloc::handle_alloc_error(layout)
    };
    // SAFETY: the vtable is `repr(C)` and begins with the `TargetVtable` of `Header`.
    let wake = unsafe { WakeHeader::with_vtable(Cell::<F, S>::VTABLE) };
    let value = Cell {
        header: Header {
            wake,
            state: State::new(joined),
            queue_next: UnsafeCell::new(None),
            owner: UnsafeCell::new(ptr::null()),
        },
        scheduler,
        stage: UnsafeCell::new(Stage {
            future: ManuallyDrop::new(future),
        }),
        trailer: Trailer {
            links: UnsafeCell::new(Links::default()),
            join_waker: UnsafeCell::new(None),
        },
    };
    // SAFETY: the block is fresh and has the cell's layout.
    unsafe { cell.write(value) };
    cell.cast()
}

/// The header of a live task.
///
/// # Safety
/// The caller has a reference to the task for all of `'a`.
pub(crate) unsafe fn header<'a>(task: TaskPtr) -> &'a Header {
    // SAFETY: the task is live for `'a`, and a header is only ever borrowed shared.
    unsafe { task.as_ref() }
}

/// The vtable of a live task.
///
/// # Safety
/// As for [`header`].
pub(crate) unsafe fn vtable(task: TaskPtr) -> &'static TaskVtable {
    // SAFETY: passed on.
    let target = unsafe { header(task) }.wake.vtable();
    // SAFETY: `allocate` made it from a `&'static TaskVtable`.
    unsafe { target.cast().as_ref() }
}

/// The trailer of a live task.
///
/// # Safety
/// As for [`header`].
pub(crate) unsafe fn trailer<'a>(task: TaskPtr) -> &'a Trailer {
    // SAFETY: passed on.
    let offset = unsafe { vtable(task) }.trailer;
    // SAFETY: the vtable is the cell's own, so the offset is inside it.
    let trailer = unsafe { task.byte_add(offset) }.cast::<Trailer>();
    // SAFETY: a trailer is only ever borrowed shared.
    unsafe { trailer.as_ref() }
}

/// The scheduler of a live task.
///
/// # Safety
/// As for [`header`]; `S` is the task's own scheduler type.
pub(crate) unsafe fn scheduler<'a, S>(task: TaskPtr) -> &'a S {
    // SAFETY: passed on.
    let offset = unsafe { vtable(task) }.scheduler;
    // SAFETY: the vtable is the cell's own, so the offset is inside it.
    let scheduler = unsafe { task.byte_add(offset) }.cast::<S>();
    // SAFETY: a scheduler is only ever borrowed shared.
    unsafe { scheduler.as_ref() }
}

unsafe fn stage<'a, F: Future + 'a, S: 'a>(task: TaskPtr) -> &'a UnsafeCell<Stage<F>> {
    let cell = task.cast::<Cell<F, S>>();
    // SAFETY: the caller has a reference to a task of this type; the stage is only borrowed shared.
    unsafe { &(*cell.as_ptr()).stage }
}

/// The running thread polls.
unsafe fn poll<F: Future, S: Schedule>(task: TaskPtr) -> bool {
    // SAFETY: the run holds a reference for longer than this waker lives.
    let waker = unsafe { WakerRef::new(task) };
    let mut cx = Context::from_waker(&waker);
    // SAFETY: a running task of this type is live.
    let stage = unsafe { stage::<F, S>(task) };
    let unwound = OnUnwind::<F, S>::arm(task, true);
    let polled = stage.with_mut(|stage| {
        // SAFETY: the running thread alone touches the stage, which holds the future (rule 6).
        let future = unsafe { &mut *stage.cast::<F>() };
        // SAFETY: the cell never moves, and the future is dropped in place.
        let future = unsafe { Pin::new_unchecked(future) };
        panics::catch(|| future.poll(&mut cx))
    });
    unwound.disarm();
    match polled {
        Ok(Poll::Pending) => return false,
        // SAFETY: still running, and the future is there.
        Ok(Poll::Ready(output)) => unsafe { finish::<F, S>(task, Ok(output)) },
        // SAFETY: as above.
        Err(payload) => unsafe { finish::<F, S>(task, Err(Failure::Panic(Box::new(payload)))) },
    }
    true
}

/// The running thread drops a future that was aborted.
unsafe fn cancel<F: Future, S: Schedule>(task: TaskPtr) {
    // SAFETY: the caller runs the task, whose future is there.
    unsafe { finish::<F, S>(task, Err(Failure::Cancelled)) }
}

/// Drops the future and writes the output, in which a panic of that drop takes precedence.
unsafe fn finish<F: Future, S: Schedule>(task: TaskPtr, output: Output<F::Output>) {
    // SAFETY: the caller runs a task of this type.
    let stage = unsafe { stage::<F, S>(task) };
    let unwound = OnUnwind::<F, S>::arm(task, false);
    let dropped = stage.with_mut(|stage| {
        panics::catch(|| {
            // SAFETY: the running thread alone touches the stage, which holds the future (rule 6);
            // this is its only drop, in place.
            unsafe { stage.cast::<F>().drop_in_place() }
        })
    });
    unwound.disarm();
    let output = match (dropped, output) {
        (Ok(()), output) => output,
        (Err(payload), output) => worse(payload, output),
    };
    write_output(stage, output);
}

fn write_output<F: Future>(stage: &UnsafeCell<Stage<F>>, output: Output<F::Output>) {
    stage.with_mut(|stage| {
        let slot = stage.cast::<Output<F::Output>>();
        // SAFETY: called by the running thread (rule 6), the future is gone and the slot free.
        unsafe { slot.write(output) }
    });
}

/// The future's drop panicked: that is the outcome, unless the poll had panicked before.
fn worse<T>(payload: Payload, output: Output<T>) -> Output<T> {
    match output {
        Err(Failure::Panic(first)) => {
            panics::discard(payload);
            Err(Failure::Panic(first))
        }
        output => {
            panics::contain(|| drop(output));
            Err(Failure::Panic(Box::new(payload)))
        }
    }
}

/// A guard for builds that can't catch: it completes the task while the panic goes on.
struct OnUnwind<F: Future, S: Schedule> {
    task: TaskPtr,
    future_is_there: bool,
    types: core::marker::PhantomData<(F, S)>,
}

impl<F: Future, S: Schedule> OnUnwind<F, S> {
    fn arm(task: TaskPtr, future_is_there: bool) -> Self {
        Self {
            task,
            future_is_there,
            types: core::marker::PhantomData,
        }
    }

    fn disarm(self) {
        core::mem::forget(self);
    }
}

impl<F: Future, S: Schedule> Drop for OnUnwind<F, S> {
    fn drop(&mut self) {
        if self.future_is_there {
            // SAFETY: the run was cut off by the future's panic, so it is still running.
            unsafe { cancel::<F, S>(self.task) };
        } else {
            // SAFETY: as above.
            let stage = unsafe { stage::<F, S>(self.task) };
            write_output(stage, Err(Failure::Cancelled));
        }
        // SAFETY: the output is written, and nobody else ends this run.
        unsafe { raw::complete(self.task, None) };
    }
}

unsafe fn schedule<S: Schedule>(task: TaskPtr, why: WakeKind) {
    // SAFETY: the caller has the duty to submit, that is, the one `Notified`.
    let notified = unsafe { Notified::from_raw(task) };
    S::schedule(notified, why);
}

unsafe fn take_output<F: Future, S: Schedule>(task: TaskPtr, slot: *mut ()) {
    // SAFETY: the caller is the join handle of a task of this type.
    let stage = unsafe { stage::<F, S>(task) };
    let output = stage.with_mut(|stage| {
        // SAFETY: the task is complete, so the slot is written and the join handle's (rule 6),
        // which takes it once.
        unsafe { stage.cast::<Output<F::Output>>().read() }
    });
    // SAFETY: the caller gives a slot for this very type.
    unsafe { slot.cast::<Output<F::Output>>().write(output) };
}

/// Contains a panic of the output's drop.
unsafe fn drop_output<F: Future, S: Schedule>(task: TaskPtr) {
    // SAFETY: the caller owns the output slot of a task of this type (rule 6).
    let stage = unsafe { stage::<F, S>(task) };
    stage.with_mut(|stage| {
        panics::contain(|| {
            // SAFETY: the slot is written; this is its only drop.
            unsafe { stage.cast::<Output<F::Output>>().drop_in_place() }
        });
    });
}

/// Frees a cell whose future and output are gone. Contains a panic of the scheduler's drop.
unsafe fn free<F: Future, S: Schedule>(task: TaskPtr) {
    let cell = task.cast::<Cell<F, S>>().as_ptr();
    // SAFETY: the last reference is the caller's, so the cell is its alone.
    let whole = unsafe { &mut *cell };
    whole.header.state.retire();
    whole.header.queue_next.retire();
    whole.header.owner.retire();
    whole.stage.retire();
    whole.trailer.links.retire();
    whole.trailer.join_waker.retire();
    // SAFETY: the cell is initialised and dropped once; its stage has no drop of its own.
    panics::contain(|| unsafe { cell.drop_in_place() });
    // SAFETY: `allocate` got the block with this layout.
    unsafe { dealloc(cell.cast(), Layout::new::<Cell<F, S>>()) };
}

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
        unsafe { raw::fulfil(this, duty, WakeKind::Orphan) };
    }

    unsafe fn wake_by_ref(this: TaskPtr) {
        // SAFETY: the waker has a reference.
        let duty = unsafe { header(this) }.state.wake_by_ref();
        // SAFETY: the duty is this transition's.
        unsafe { raw::fulfil(this, duty, WakeKind::Wake) };
    }

    unsafe fn wake_by_val(this: TaskPtr) {
        // SAFETY: the waker's own reference lasts until this transition.
        let duty = unsafe { header(this) }.state.wake_by_val();
        // SAFETY: the duty is this transition's.
        unsafe { raw::fulfil(this, duty, WakeKind::Wake) };
    }
}

/// Bytes that a task takes, for tests of the layout.
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
pub(crate) const fn size_of_cell<F: Future, S>() -> usize {
    size_of::<Cell<F, S>>()
}
