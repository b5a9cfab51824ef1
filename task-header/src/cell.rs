//! The one allocation of a task: `Header | scheduler | future or output | join waker`, the last only where there is a join handle.
//!
//! Everything else in this crate holds a `NonNull<Header>` that was made from the whole
//! allocation and keeps its provenance; the vtable knows the rest of the layout.
//!
//! | field | who may touch it |
//! |---|---|
//! | `Header::state` | anyone with a reference |
//! | `Header::queue_next` | whoever holds the `Notified`; after completion, the owner's release stack |
//! | `Header::place` | written by the owner before `LISTED` is set, or before anybody else has the task; constant from then on |
//! | `scheduler` | anyone with a reference, shared |
//! | `stage` | rule 6 of [`state`](crate::state) |
//! | `join_waker` | rule 7 of [`state`](crate::state) |
use crate::{
    WakeKind,
    details::Details,
    error::JoinError,
    panics, raw,
    stage::{self, Polled},
    state::State,
    table::Place,
};
use core::{
    any::Any,
    future::Future,
    marker::PhantomData,
    mem::{ManuallyDrop, needs_drop, offset_of},
    ptr::NonNull,
    task::Waker,
};
use sync_shim::{alloc::Layout, atomic::Retire, cell::UnsafeCell};
use waker_vtable::{TargetVtable, WakeHeader, WakeTarget};

#[cfg(all(
    feature = "recycle",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count, selvedge_plain_alloc))
))]
use crate::blocks::{alloc, dealloc};
#[cfg(not(all(
    feature = "recycle",
    not(any(selvedge_loom, selvedge_shuttle, selvedge_count, selvedge_plain_alloc))
)))]
use sync_shim::alloc::{alloc, dealloc};

/// A pointer to a task of any type.
pub(crate) type TaskPtr = NonNull<Header>;

/// The hot part of a task. Opaque; public because queues are typed by it.
#[repr(C)]
pub struct Header {
    wake: WakeHeader,
    pub(crate) state: State,
    pub(crate) queue_next: UnsafeCell<Option<TaskPtr>>,
    /// Where its owner has noted it, once it is listed.
    pub(crate) place: UnsafeCell<Option<NonNull<Place>>>,
}

/// Where a join handle leaves its waker. A type of its own, since a task that nobody joins has none.
pub(crate) trait Join: Sized {
    /// Whether there is a join handle.
    const IS_JOINED: bool;

    fn new() -> Self;

    fn retire(&mut self);

    /// What a handle has left here, if no completion has moved it out. For the last holder.
    fn left(&mut self, state: &State) -> Option<Waker>;
}

/// Dropped by [`free`], unless the completion has moved it out.
pub(crate) struct JoinWaker(pub(crate) UnsafeCell<ManuallyDrop<Option<Waker>>>);

impl Join for JoinWaker {
    const IS_JOINED: bool = true;

    fn new() -> Self {
        Self(UnsafeCell::new(ManuallyDrop::new(None)))
    }

    fn retire(&mut self) {
        self.0.retire();
    }

    fn left(&mut self, state: &State) -> Option<Waker> {
        self.0.with_mut(|slot| {
            // SAFETY: borrowed mutably.
            let slot = unsafe { &mut *slot };
            if slot.is_none() || state.gave_join_waker() {
                return None;
            }
            // SAFETY: no completion has moved it out, and this is the last use of the slot.
            unsafe { ManuallyDrop::take(slot) }
        })
    }
}

/// Nobody joins.
pub(crate) struct Detached;

impl Join for Detached {
    const IS_JOINED: bool = false;

    fn new() -> Self {
        Self
    }

    fn retire(&mut self) {}

    fn left(&mut self, _: &State) -> Option<Waker> {
        None
    }
}

/// What a run leaves in the output slot.
pub(crate) type Output<T> = Result<T, JoinError>;

/// Both fields lie at offset 0, so a cast of the pointer reaches either.
#[repr(C)]
pub(crate) union Stage<F: Future> {
    future: ManuallyDrop<F>,
    output: ManuallyDrop<Output<F::Output>>,
}

/// `M` is what the builder was told of the task, as a rule nothing. It and the join waker come last, so that no other field's place depends on them.
#[repr(C)]
pub(crate) struct Cell<F: Future, S, J, M> {
    header: Header,
    scheduler: S,
    pub(crate) stage: UnsafeCell<Stage<F>>,
    join_waker: J,
    details: M,
}

/// How a task comes to its queue: to any thread's, to its own thread's, through a closure.
pub(crate) trait Kind {
    /// What the cell holds for it.
    type Scheduler;

    /// # Safety
    /// The caller holds the one `Notified` of a task of this kind, which this consumes.
    unsafe fn schedule(task: TaskPtr, why: WakeKind);

    /// # Safety
    /// The caller has a reference to a task of this kind, whose code has panicked.
    unsafe fn panicked(_task: TaskPtr, _payload: &(dyn Any + Send)) {}
}

/// What a task of unknown type can do. The first field lets wakers through.
#[repr(C)]
pub(crate) struct TaskVtable {
    target: TargetVtable,
    /// Polls, and says what is in the stage after that.
    pub(crate) poll: unsafe fn(TaskPtr) -> Polled,
    /// Drops the future; the output is a cancellation.
    pub(crate) cancel: unsafe fn(TaskPtr) -> Polled,
    pub(crate) schedule: unsafe fn(TaskPtr, WakeKind),
    pub(crate) panicked: unsafe fn(TaskPtr, &(dyn Any + Send)),
    /// Where the output is, an `Output<T>`.
    pub(crate) output: unsafe fn(TaskPtr) -> *mut (),
    pub(crate) drop_output: unsafe fn(TaskPtr),
    pub(crate) dealloc: unsafe fn(TaskPtr),
    details: unsafe fn(TaskPtr) -> NonNull<dyn Details>,
    scheduler: usize,
    join_waker: usize,
}

struct Table<F, K, J, M>(PhantomData<(F, K, J, M)>);

impl<F: Future, K: Kind, J: Join, M: Details> Table<F, K, J, M> {
    const VTABLE: &'static TaskVtable = &TaskVtable {
        target: TargetVtable::of::<Header>(),
        poll: stage::poll::<F, K::Scheduler>,
        cancel: stage::cancel::<F, K::Scheduler>,
        schedule: K::schedule,
        panicked: K::panicked,
        output: stage::output::<F, K::Scheduler>,
        drop_output: stage::drop_output::<F, K::Scheduler>,
        dealloc: free::<F, K::Scheduler, J, M>,
        details: details_of::<F, K::Scheduler, J, M>,
        scheduler: offset_of!(Cell<F, K::Scheduler, J, M>, scheduler),
        join_waker: offset_of!(Cell<F, K::Scheduler, J, M>, join_waker),
    };
}

/// Allocates a task that is about to be submitted.
///
/// Inlined up to where the future is made: it is then made in its place, or moved there once.
#[inline(always)]
pub(crate) fn allocate<F: Future, K: Kind, J: Join, M: Details>(
    future: F,
    scheduler: K::Scheduler,
    details: M,
    state: State,
) -> TaskPtr {
    let layout = Layout::new::<Cell<F, K::Scheduler, J, M>>();
    // SAFETY: a cell has a header, so its size is not zero.
    let block = unsafe { alloc(layout) }.cast::<Cell<F, K::Scheduler, J, M>>();
    let Some(cell) = NonNull::new(block) else {
        ::alloc::alloc::handle_alloc_error(layout)
    };
    // SAFETY: the vtable is `repr(C)` and begins with the `TargetVtable` of `Header`.
    let wake = unsafe { WakeHeader::with_vtable(Table::<F, K, J, M>::VTABLE) };
    let value = Cell {
        header: Header {
            wake,
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

/// A waker of a live task. One read-modify-write.
///
/// # Safety
/// As for [`header`].
pub(crate) unsafe fn waker(task: TaskPtr) -> Waker {
    // SAFETY: passed on.
    unsafe { header(task) }.state.ref_inc();
    // SAFETY: counted just now.
    unsafe { waker_vtable::waker(task) }
}

/// Where a task is noted.
///
/// # Safety
/// As for [`header`]; the task is listed, and the caller has acquired that.
pub(crate) unsafe fn place(task: TaskPtr) -> NonNull<Place> {
    // SAFETY: passed on.
    let place = &unsafe { header(task) }.place;
    // SAFETY: constant since the listing.
    let place = place.with(|place| unsafe { *place });
    // SAFETY: a listed task has one.
    unsafe { place.unwrap_unchecked() }
}

/// The place of the join waker of a live task.
///
/// # Safety
/// As for [`header`]; the task was made with a join handle.
pub(crate) unsafe fn join_waker<'a>(task: TaskPtr) -> &'a UnsafeCell<ManuallyDrop<Option<Waker>>> {
    // SAFETY: passed on.
    let offset = unsafe { vtable(task) }.join_waker;
    // SAFETY: the vtable is the cell's own, so the offset is inside it.
    let waker = unsafe { task.byte_add(offset) }.cast::<JoinWaker>();
    // SAFETY: only ever borrowed shared; made with a join handle, so that it is there.
    &unsafe { waker.as_ref() }.0
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

/// What the builder was told of a live task.
///
/// # Safety
/// As for [`header`].
pub(crate) unsafe fn details<'a>(task: TaskPtr) -> &'a dyn Details {
    // SAFETY: passed on.
    let vtable = unsafe { vtable(task) };
    // SAFETY: the vtable is the cell's own.
    let details = unsafe { (vtable.details)(task) };
    // SAFETY: the task is live for `'a`, and its details are only ever borrowed shared.
    unsafe { details.as_ref() }
}

/// # Safety
/// The task is live and of these types.
unsafe fn details_of<F: Future, S, J, M: Details>(task: TaskPtr) -> NonNull<dyn Details> {
    let cell = task.cast::<Cell<F, S, J, M>>();
    // SAFETY: live, so the field's place is inside the cell.
    let details = unsafe { &raw mut (*cell.as_ptr()).details };
    // SAFETY: a field of a live cell is not at null.
    unsafe { NonNull::new_unchecked(details) }
}

/// Frees a cell whose future and output are gone. Contains a panic of the scheduler's drop, and one of the details'.
///
/// # Safety
/// No reference to the task, which is of these types, is left.
unsafe fn free<F: Future, S, J: Join, M>(task: TaskPtr) {
    let cell = task.cast::<Cell<F, S, J, M>>().as_ptr();
    // SAFETY: the last reference is the caller's, so the cell is its alone.
    let whole = unsafe { &mut *cell };
    let waker = whole.join_waker.left(&whole.header.state);
    whole.header.state.retire();
    whole.header.queue_next.retire();
    whole.header.place.retire();
    whole.stage.retire();
    whole.join_waker.retire();
    // SAFETY: `allocate` got the block with this layout.
    let dealloc = move || unsafe { dealloc(cell.cast(), Layout::new::<Cell<F, S, J, M>>()) };
    // What is left of a plain task is a waker's place, and no waker.
    if needs_drop::<S>() || needs_drop::<M>() || waker.is_some() {
        // One by one: two panics at once would end the process. The waker first, of whose panic the scheduler hears.
        // SAFETY: the cell is live until it is freed at the end of this.
        let drop_waker = || unsafe { panics::contain_in(task, || drop(waker)) };
        // SAFETY: a field of a live cell.
        let scheduler = unsafe { &raw mut (*cell).scheduler };
        // SAFETY: dropped once, and not spoken of after that.
        let drop_scheduler = || unsafe { scheduler.drop_in_place() };
        // SAFETY: as the scheduler.
        let details = unsafe { &raw mut (*cell).details };
        // SAFETY: as the scheduler.
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
pub(crate) const fn size_of_cell<F: Future, S, J, M>() -> usize {
    size_of::<Cell<F, S, J, M>>()
}
