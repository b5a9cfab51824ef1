//! Jobs: what the queues hold, wherever the closure is.
//!
//! A queue holds a [`Job`], one word: the address of a [`Header`]. The closure follows the header,
//! in the frame of the thread that waits for it ([`StackJob`]) or in a box ([`boxed`]). The header
//! has a link, so that a job waits in the injector without an allocation.
use super::Worker;
use queue_global::Linked;
use std::{
    any::Any,
    cell::{Cell, UnsafeCell},
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    thread,
};
use worker_idle::park::{ThreadUnpark, Unpark};

/// The head of every job: how it runs, and its link in the injector.
pub(super) struct Header {
    run: unsafe fn(NonNull<Header>),
    next: Cell<Option<NonNull<Header>>>,
}

impl Header {
    fn new(run: unsafe fn(NonNull<Header>)) -> Self {
        let next = Cell::new(None);
        Self { run, next }
    }
}

/// A job that is to run once. There is one of each.
#[must_use = "a job that is dropped never runs"]
pub(super) struct Job(NonNull<Header>);

// SAFETY: who makes a job promises that its closure may run on any thread.
unsafe impl Send for Job {}

impl Job {
    /// Runs it. It does not unwind: each kind catches its closure's panic.
    #[inline]
    pub(super) fn run(self) {
        // SAFETY: this is the job's one handle, which keeps it alive.
        let run = unsafe { self.0.as_ref() }.run;
        // SAFETY: as above, and the handle is consumed.
        unsafe { run(self.0) };
    }

    /// Names the job while it is alive.
    #[inline]
    pub(super) fn address(&self) -> NonNull<Header> {
        self.0
    }
}

// SAFETY: a `Job` is its header's one handle. The link is private, `None` at first, and only the
// list that has the handle uses it.
unsafe impl Linked for Header {
    type Handle = Job;

    fn into_ptr(job: Job) -> NonNull<Self> {
        job.0
    }

    unsafe fn from_ptr(header: NonNull<Self>) -> Job {
        Job(header)
    }

    unsafe fn next(header: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: the caller owns the node.
        unsafe { header.as_ref() }.next.get()
    }

    unsafe fn set_next(header: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: the caller owns the node.
        unsafe { header.as_ref() }.next.set(next);
    }
}

#[repr(C)]
struct Boxed<F> {
    header: Header,
    f: F,
}

/// A job in a box, whose panic is printed by the hook and goes no further.
///
/// # Safety
/// What `f` borrows outlives the job's run.
#[inline]
pub(super) unsafe fn boxed<F: FnOnce() + Send>(f: F) -> Job {
    unsafe fn run<F: FnOnce() + Send>(header: NonNull<Header>) {
        // SAFETY: it is the header of such a box, and this the job's one run.
        let job = unsafe { Box::from_raw(header.cast::<Boxed<F>>().as_ptr()) };
        contain(job.f);
    }
    let header = Header::new(run::<F>);
    Job(NonNull::from(Box::leak(Box::new(Boxed { header, f }))).cast())
}

/// Runs `f`, and keeps its panic in: the payload's drop may panic as well.
pub(super) fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        mem::forget(payload);
    }
}

/// Says that a job is done to the thread that waits for it.
pub(super) trait Latch {
    /// Sets it. The latch may be gone when this returns, and so may the frame that it is in.
    ///
    /// # Safety
    /// `this` is live, and set once, by a worker.
    unsafe fn set(this: *const Self);
}

/// A latch for which a worker waits, and works meanwhile.
pub(super) struct WorkerLatch {
    done: AtomicBool,
    worker: usize,
}

impl WorkerLatch {
    pub(super) fn new(worker: usize) -> Self {
        let done = AtomicBool::new(false);
        Self { done, worker }
    }

    #[inline]
    pub(super) fn is_set(&self) -> bool {
        // Ordering: Acquire pairs with `set`: the job's result is there.
        self.done.load(Acquire)
    }
}

impl Latch for WorkerLatch {
    unsafe fn set(this: *const Self) {
        // SAFETY: live until the store below.
        let latch = unsafe { &*this };
        let worker = latch.worker;
        // Ordering: Release pairs with `is_set`.
        latch.done.store(true, Release);
        // From here on the latch may be gone. The workers are not: this thread is one of them.
        Worker::with(|current| current.shared.workers[worker].unpark.unpark());
    }
}

/// A latch for which a thread waits that is no worker of the pool.
pub(super) struct OutsideLatch {
    done: AtomicBool,
    unpark: ThreadUnpark,
}

impl OutsideLatch {
    pub(super) fn new(unpark: ThreadUnpark) -> Self {
        let done = AtomicBool::new(false);
        Self { done, unpark }
    }

    pub(super) fn is_set(&self) -> bool {
        // Ordering: Acquire pairs with `set`: the job's result is there.
        self.done.load(Acquire)
    }
}

impl Latch for OutsideLatch {
    unsafe fn set(this: *const Self) {
        // SAFETY: live until the store below.
        let latch = unsafe { &*this };
        let unpark = latch.unpark.clone();
        // Ordering: Release pairs with `is_set`.
        latch.done.store(true, Release);
        unpark.unpark();
    }
}

/// A job in the frame of the thread that waits for it.
#[repr(C)]
pub(super) struct StackJob<F, R, L> {
    header: Header,
    pub(super) latch: L,
    f: UnsafeCell<Option<F>>,
    result: UnsafeCell<Option<thread::Result<R>>>,
}

impl<F: FnOnce() -> R + Send, R: Send, L: Latch> StackJob<F, R, L> {
    #[inline]
    pub(super) fn new(f: F, latch: L) -> Self {
        Self {
            header: Header::new(Self::run),
            latch,
            f: UnsafeCell::new(Some(f)),
            result: UnsafeCell::new(None),
        }
    }

    /// The handle for the queues.
    ///
    /// # Safety
    /// This is called once. Until the latch is set, or the handle is back, the job stays where it
    /// is and only its latch is used.
    #[inline]
    pub(super) unsafe fn as_job(&self) -> Job {
        Job(NonNull::from(self).cast())
    }

    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: live until the latch is set.
        let job = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: the one run has the closure.
        let f = unsafe { &mut *job.f.get() }.take();
        let result = f.map(|f| catch_unwind(AssertUnwindSafe(f)));
        // SAFETY: nobody reads it before the latch is set.
        unsafe { *job.result.get() = result };
        // SAFETY: live, and set once. Nothing of the job is used after this.
        unsafe { L::set(&raw const job.latch) };
    }

    /// The closure, of a job whose handle came back.
    #[inline]
    pub(super) fn into_closure(self) -> F {
        self.f.into_inner().expect("the job has not run")
    }

    /// The result, after the latch was set.
    pub(super) fn into_result(self) -> Result<R, Box<dyn Any + Send>> {
        self.result.into_inner().expect("the job has run")
    }
}
