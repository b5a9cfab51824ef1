//! The one allocation of a task: `Header | scheduler | future or output | join waker | details`.
//! The part for the join waker exists only if the task was made with a join handle.
//!
//! The rest of this crate holds a `NonNull<Header>` that was made from the whole allocation and
//! keeps its provenance. The vtable knows the rest of the layout.
//!
//! Rule 1 of [`state`](crate::state) lists what counts as a *reference*.
//!
//! | field | threads that may touch it |
//! |---|---|
//! | `Header::state` | any thread with a reference; an [`Observer`](crate::Observer) reads it until the details are dropped |
//! | `Header::queue_next` | the holder of the `Notified`; after completion, the owner's release stack |
//! | `Header::place` | the owner writes it before `LISTED` is set, or before any other thread has the task; constant from then on |
//! | `scheduler` | any thread with a reference, shared |
//! | `stage` | rule 6 of [`state`](crate::state) |
//! | `join_waker` | rule 7 of [`state`](crate::state) |
use crate::{details::Details, error::JoinError, id::Id, state::State};
use core::{
    any::Any, fmt, future::Future, marker::PhantomData, mem::ManuallyDrop, ptr::NonNull,
    task::Waker,
};
use sync_shim::cell::UnsafeCell;

/// A pointer to a task of any type. `task.as_ref()` is sound while the caller has a reference to
/// the task: a header is only ever borrowed shared.
pub(crate) type TaskPtr = NonNull<Header>;

/// The part of a task that is used most. It is opaque, and public only because queues have it as
/// their node type.
#[repr(C)]
pub struct Header {
    pub(crate) vtable: &'static TaskVtable,
    pub(crate) state: State,
    pub(crate) queue_next: UnsafeCell<Option<TaskPtr>>,
    /// The task's place in its owner's table, once it is listed.
    pub(crate) place: UnsafeCell<Option<NonNull<Place>>>,
}

/// One task's place in its owner's [table](crate::table). Defined here because a header names it.
pub(crate) struct Place(pub(crate) *mut ());

/// The slot for a join handle's waker, or its absence: a detached task has no slot.
pub(crate) trait Join {
    /// Whether there is a join handle.
    const IS_JOINED: bool;

    fn new() -> Self;

    /// Returns the slot, if there is one.
    fn slot(&mut self) -> Option<&mut JoinWaker>;
}

/// The slot of a task that was made with a join handle. [`free`](crate::complete::free) drops the
/// waker in it, unless the completion has moved the waker out.
pub(crate) struct JoinWaker(pub(crate) UnsafeCell<ManuallyDrop<Option<Waker>>>);

impl Join for JoinWaker {
    const IS_JOINED: bool = true;

    fn new() -> Self {
        Self(UnsafeCell::new(ManuallyDrop::new(None)))
    }

    fn slot(&mut self) -> Option<&mut JoinWaker> {
        Some(self)
    }
}

/// The absence of a slot, in a task that was made without a join handle. It takes no bytes.
pub(crate) struct Detached;

impl Join for Detached {
    const IS_JOINED: bool = false;

    fn new() -> Self {
        Self
    }

    fn slot(&mut self) -> Option<&mut JoinWaker> {
        None
    }
}

/// The value in the output slot.
pub(crate) type Output<T> = Result<T, JoinError>;

/// Both fields lie at offset 0, so a cast of the pointer reaches either.
#[repr(C)]
pub(crate) union Stage<F: Future> {
    pub(crate) future: ManuallyDrop<F>,
    output: ManuallyDrop<Output<F::Output>>,
}

/// A task's one allocation. `M` is the data that the builder was given, usually none. `details` and
/// the join waker come last, so that no other field's offset depends on them.
#[repr(C)]
pub(crate) struct Cell<F: Future, S, J, M> {
    pub(crate) header: Header,
    pub(crate) scheduler: S,
    pub(crate) stage: UnsafeCell<Stage<F>>,
    pub(crate) join_waker: J,
    pub(crate) details: M,
}

/// Why a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WakeKind {
    /// A waker woke the task.
    Wake,
    /// The task was aborted: its run drops the future.
    Abort,
    /// No waker and no handle is left: its run drops the future.
    Orphan,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its future gave an output.
    Completed,
    /// Its future was dropped before it gave an output.
    Cancelled,
    /// Its future panicked, in a poll or in its drop.
    Panicked,
}

/// The kind of a task, which says how the task gets to its queue. There are three kinds: any thread
/// may run the task; only one thread may run it; or its scheduler is a closure.
pub(crate) trait Kind {
    /// The type of the scheduler that the cell holds.
    type Scheduler;
    /// Whether the task is in its owner's list from the start.
    const IS_LISTED: bool = false;

    /// # Safety
    /// The caller holds the one `Notified` of a task of this kind, which the call consumes.
    unsafe fn schedule(task: TaskPtr, why: WakeKind);

    /// # Safety
    /// The caller has a reference to a task of this kind, and the task's code has panicked.
    unsafe fn panicked(_task: TaskPtr, _payload: &(dyn Any + Send)) {}

    /// # Safety
    /// The caller runs a task of this kind, whose future is gone.
    unsafe fn ended(_task: TaskPtr, _outcome: Outcome) {}
}

/// The result of a poll.
#[derive(Clone, Copy)]
pub(crate) enum Polled {
    /// The future is not finished.
    Pending,
    /// The future is not finished, and is to be polled again although nothing has woken the task.
    Yielded,
    /// The future is gone, and the slot holds its output.
    Output,
    /// The future is gone, and so is its output: no join handle will ask for it.
    NoOutput,
}

/// The operations of a task of unknown type.
pub(crate) struct TaskVtable {
    /// Polls the future, and returns what the stage then holds.
    pub(crate) poll: unsafe fn(TaskPtr) -> Polled,
    /// Drops the future and makes the output a cancellation.
    pub(crate) cancel: unsafe fn(TaskPtr) -> Polled,
    pub(crate) schedule: unsafe fn(TaskPtr, WakeKind),
    pub(crate) panicked: unsafe fn(TaskPtr, &(dyn Any + Send)),
    /// The address of the output, an `Output<T>`.
    pub(crate) output: unsafe fn(TaskPtr) -> *mut (),
    pub(crate) drop_output: unsafe fn(TaskPtr),
    pub(crate) dealloc: unsafe fn(TaskPtr),
    pub(crate) details: unsafe fn(TaskPtr) -> NonNull<dyn Details>,
    pub(crate) scheduler: usize,
    pub(crate) join_waker: usize,
}

/// Returns a waker of a live task. Costs one read-modify-write.
///
/// # Safety
/// The caller has a reference to the task.
pub(crate) unsafe fn waker(task: TaskPtr) -> Waker {
    // SAFETY: the caller promises this.
    unsafe { task.as_ref() }.state.ref_inc();
    // SAFETY: this reference was counted just now.
    unsafe { waker_vtable::waker(task) }
}

/// Returns the scheduler of a live task.
///
/// # Safety
/// The caller has a reference to the task for all of `'a`; `S` is the task's own scheduler type.
pub(crate) unsafe fn scheduler<'a, S>(task: TaskPtr) -> &'a S {
    // SAFETY: the caller promises this.
    let offset = unsafe { task.as_ref() }.vtable.scheduler;
    // SAFETY: the vtable is the cell's own, so the offset is within the cell.
    let scheduler = unsafe { task.byte_add(offset) }.cast::<S>();
    // SAFETY: a scheduler is only ever borrowed shared.
    unsafe { scheduler.as_ref() }
}

/// Returns the details that the builder of a live task was given.
///
/// # Safety
/// The caller has a reference to the task for all of `'a`.
pub(crate) unsafe fn details<'a>(task: TaskPtr) -> &'a dyn Details {
    // SAFETY: the caller promises this.
    let vtable = unsafe { task.as_ref() }.vtable;
    // SAFETY: the vtable is the cell's own.
    let details = unsafe { (vtable.details)(task) };
    // SAFETY: the task is live for `'a`, and its details are never borrowed mutably.
    unsafe { details.as_ref() }
}

/// Returns the id of a task.
pub(crate) fn id(task: TaskPtr) -> Id {
    Id(task.addr())
}

/// Defines the accessors of a type that keeps a task alive.
macro_rules! accessors {
    (|$this:ident| $task:expr) => {
        /// Returns the task's id.
        pub fn id(&self) -> crate::id::Id {
            let $this = self;
            crate::id::Id(($task).addr())
        }

        /// Returns the name that the task's [`Builder`](crate::Builder) gave the task.
        pub fn name(&self) -> Option<&str> {
            let $this = self;
            // SAFETY: `self` is a reference to the task.
            unsafe { crate::cell::details($task) }.name()
        }

        /// Returns the place in the source where the task was spawned, if the task's
        /// [`Builder`](crate::Builder) recorded that place.
        pub fn location(&self) -> Option<&'static core::panic::Location<'static>> {
            let $this = self;
            // SAFETY: as above.
            unsafe { crate::cell::details($task) }.location()
        }

        /// Returns the data that the task's [`Builder`](crate::Builder) was given, if the data is
        /// an `M`.
        pub fn metadata<M: 'static>(&self) -> Option<&M> {
            let $this = self;
            // SAFETY: as above.
            let metadata = unsafe { crate::cell::details($task) }.metadata();
            metadata?.downcast_ref()
        }
    };
}
pub(crate) use accessors;

/// A borrowed task, kept alive by its lender. It can be looked at, and nothing else. One word.
pub struct TaskRef<'a, S> {
    task: TaskPtr,
    scheduler: PhantomData<&'a S>,
}

impl<S> TaskRef<'_, S> {
    /// # Safety
    /// The caller has a reference, for as long as this value exists, to a task with this scheduler.
    pub(crate) unsafe fn new(task: TaskPtr) -> Self {
        Self {
            task,
            scheduler: PhantomData,
        }
    }

    /// Returns the scheduler that the task was spawned with.
    pub fn scheduler(&self) -> &S {
        // SAFETY: by the contract of `new`.
        unsafe { scheduler(self.task) }
    }

    accessors!(|this| this.task);
}

impl<S> fmt::Debug for TaskRef<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TaskRef").field(&self.id()).finish()
    }
}

/// Returns the number of bytes that a task takes, for tests of the layout.
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
pub(crate) const fn size_of_cell<F: Future, S, J, M>() -> usize {
    size_of::<Cell<F, S, J, M>>()
}
