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
use crate::{details::Details, error::JoinError, id::Id, state::State};
use core::{any::Any, future::Future, mem::ManuallyDrop, ptr::NonNull, task::Waker};
use sync_shim::{atomic::Retire, cell::UnsafeCell};
use waker_vtable::{TargetVtable, WakeHeader};

/// A pointer to a task of any type.
pub(crate) type TaskPtr = NonNull<Header>;

/// The hot part of a task. Opaque; public because queues are typed by it.
#[repr(C)]
pub struct Header {
    pub(crate) wake: WakeHeader,
    pub(crate) state: State,
    pub(crate) queue_next: UnsafeCell<Option<TaskPtr>>,
    /// Where its owner has noted it, once it is listed.
    pub(crate) place: UnsafeCell<Option<NonNull<Place>>>,
}

/// The place of one task in its owner's [table](crate::table). Here, since a header names it.
pub(crate) struct Place(pub(crate) *mut ());

/// Where a join handle leaves its waker. A type of its own, since a task that nobody joins has none.
pub(crate) trait Join: Sized {
    /// Whether there is a join handle.
    const IS_JOINED: bool;

    fn new() -> Self;

    fn retire(&mut self);

    /// What a handle has left here, if no completion has moved it out. For the last holder.
    fn left(&mut self, state: &State) -> Option<Waker>;
}

/// Dropped by [`free`](crate::complete::free), unless the completion has moved it out.
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
    pub(crate) future: ManuallyDrop<F>,
    output: ManuallyDrop<Output<F::Output>>,
}

/// `M` is what the builder was told of the task, as a rule nothing. It and the join waker come last, so that no other field's place depends on them.
#[repr(C)]
pub(crate) struct Cell<F: Future, S, J, M> {
    pub(crate) header: Header,
    pub(crate) scheduler: S,
    pub(crate) stage: UnsafeCell<Stage<F>>,
    pub(crate) join_waker: J,
    pub(crate) details: M,
}

impl<F: Future, S, J: Join, M> Cell<F, S, J, M> {
    /// Just before the cell is freed.
    pub(crate) fn retire(&mut self) {
        self.header.state.retire();
        self.header.queue_next.retire();
        self.header.place.retire();
        self.stage.retire();
        self.join_waker.retire();
    }
}

/// Why a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeKind {
    /// A waker was woken.
    Wake,
    /// The task was aborted: its run drops the future.
    Abort,
    /// Nobody is left who could wake it: its run drops the future.
    Orphan,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its future gave an output.
    Completed,
    /// Its future was dropped before it gave one.
    Cancelled,
    /// Its future panicked, in a poll or in its drop.
    Panicked,
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

    /// # Safety
    /// The caller runs a task of this kind, whose future is gone.
    unsafe fn ended(_task: TaskPtr, _outcome: Outcome) {}
}

/// How far a poll got.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Polled {
    /// The future waits.
    Pending,
    /// The future is gone, and its output is in the slot.
    Output,
    /// The future is gone, and so is its output, which nobody will ask for.
    NoOutput,
}

/// What a task of unknown type can do. The first field lets wakers through.
#[repr(C)]
pub(crate) struct TaskVtable {
    pub(crate) target: TargetVtable,
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
    pub(crate) details: unsafe fn(TaskPtr) -> NonNull<dyn Details>,
    pub(crate) scheduler: usize,
    pub(crate) join_waker: usize,
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

/// The future or the output of a live task.
///
/// # Safety
/// The caller has a reference for `'a` to a task of these types.
pub(crate) unsafe fn stage<'a, F: Future + 'a, S: 'a>(task: TaskPtr) -> &'a UnsafeCell<Stage<F>> {
    // What lies behind the stage does not move it.
    let cell = task.cast::<Cell<F, S, (), ()>>();
    // SAFETY: the caller has a reference to a task of this type; the stage is only borrowed shared.
    unsafe { &(*cell.as_ptr()).stage }
}

/// Where the output is, an `Output<F::Output>` for the caller to move out at once: by itself, so that only what there is of it is moved.
///
/// # Safety
/// The caller is the join handle of a complete task of these types, and takes the output once.
pub(crate) unsafe fn output<F: Future, S>(task: TaskPtr) -> *mut () {
    // SAFETY: the task is complete, so the slot is the join handle's (rule 6).
    unsafe { stage::<F, S>(task) }.with_mut(<*mut _>::cast)
}

/// The id of a task.
pub(crate) fn id(task: TaskPtr) -> Id {
    Id::at(task.addr())
}

/// What each type that keeps a task alive tells of it.
macro_rules! accessors {
    (|$this:ident| $task:expr) => {
        /// The task's id.
        pub fn id(&self) -> crate::id::Id {
            let $this = self;
            crate::cell::id($task)
        }

        /// The name that its [`Builder`](crate::Builder) gave it.
        pub fn name(&self) -> Option<&str> {
            let $this = self;
            // SAFETY: `self` is a reference to the task.
            unsafe { crate::cell::details($task) }.name()
        }

        /// Where it was spawned, if its [`Builder`](crate::Builder) was asked to keep that.
        pub fn location(&self) -> Option<&'static core::panic::Location<'static>> {
            let $this = self;
            // SAFETY: as above.
            unsafe { crate::cell::details($task) }.location()
        }

        /// The data that its [`Builder`](crate::Builder) was given, if it is an `M`.
        pub fn metadata<M: 'static>(&self) -> Option<&M> {
            let $this = self;
            // SAFETY: as above.
            let metadata = unsafe { crate::cell::details($task) }.metadata();
            metadata?.downcast_ref()
        }
    };
}
pub(crate) use accessors;

/// Bytes that a task takes, for tests of the layout.
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
pub(crate) const fn size_of_cell<F: Future, S, J, M>() -> usize {
    size_of::<Cell<F, S, J, M>>()
}
