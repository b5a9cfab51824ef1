//! Jobs: the items of the queues.
//!
//! A [`Job`] is one word: the address of a [`Header`]. The closure follows the header, either in
//! the stack frame of the thread that waits for the job ([`StackJob`]) or in a box ([`boxed`]). The
//! header has a link, so the injector queues a job without an allocation.
use queue_global::Linked;
use std::{
    any::Any,
    cell::{Cell, UnsafeCell},
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr::NonNull,
    thread,
};

/// The head of every job: the function that runs the job, and the job's link in the injector.
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

/// The handle by which a job is run, once. Each job has one handle.
#[must_use = "a job that is dropped never runs"]
pub(super) struct Job(NonNull<Header>);

// SAFETY: both constructors require a closure that is `Send`, so the job may run on any thread.
unsafe impl Send for Job {}

impl Job {
    /// Runs the job. This does not unwind, as each kind of job catches its closure's panic.
    #[inline]
    pub(super) fn run(self) {
        // SAFETY: this is the job's only handle, which keeps the job alive.
        let run = unsafe { self.0.as_ref() }.run;
        // SAFETY: as above, and this call consumes the handle, so the job runs once.
        unsafe { run(self.0) };
    }

    /// Returns the job's address, which no other job has while this one is alive.
    #[inline]
    pub(super) fn address(&self) -> NonNull<Header> {
        self.0
    }
}

// SAFETY: a `Job` is the only handle of its header. The link is private and `None` at first, and
// only the list that holds the handle uses the link.
unsafe impl Linked for Header {
    type Handle = Job;

    fn into_ptr(job: Job) -> NonNull<Self> {
        job.0
    }

    unsafe fn from_ptr(header: NonNull<Self>) -> Job {
        Job(header)
    }

    unsafe fn next(header: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: the caller promises that it owns the node.
        unsafe { header.as_ref() }.next.get()
    }

    unsafe fn set_next(header: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: the caller promises that it owns the node.
        unsafe { header.as_ref() }.next.set(next);
    }
}

#[repr(C)]
struct Boxed<F> {
    header: Header,
    f: F,
}

/// Makes a job in a box. If `f` panics, the panic hook prints the panic, and no other code gets it.
///
/// # Safety
/// Everything that `f` borrows outlives the job's run.
#[inline]
pub(super) unsafe fn boxed<F: FnOnce() + Send>(f: F) -> Job {
    unsafe fn run<F: FnOnce() + Send>(header: NonNull<Header>) {
        // SAFETY: `header` starts a box of this type, and this is the job's only run.
        let job = unsafe { Box::from_raw(header.cast::<Boxed<F>>().as_ptr()) };
        contain(job.f);
    }
    let header = Header::new(run::<F>);
    Job(NonNull::from(Box::leak(Box::new(Boxed { header, f }))).cast())
}

/// Runs `f`, catches its panic and drops the payload. If the payload's drop panics as well, the
/// second payload is leaked.
pub(super) fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        mem::forget(payload);
    }
}

/// Drops a value that no caller gets, and then resumes a panic. If the panic were resumed first, a
/// second panic, of the value's drop, would end the process.
#[cold]
pub(super) fn resume(panic: Box<dyn Any + Send>, unused: impl Sized) -> ! {
    contain(|| drop(unused));
    resume_unwind(panic)
}

/// A flag that a job sets once it is done. A thread waits for the flag.
pub(super) trait Latch {
    /// Sets the latch and unparks the waiting thread. That thread may leave the frame that has the
    /// latch before this function returns.
    ///
    /// # Safety
    /// `this` is live. The latch is set once, by a worker of its pool.
    unsafe fn set(this: *const Self);
}

/// A job in the frame of the waiting thread.
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

    /// Returns the job's handle, for the queues.
    ///
    /// # Safety
    /// `as_job` is called once. Until the latch is set, or the caller has the handle back, the job
    /// is not moved, and the caller uses only the job's latch.
    #[inline]
    pub(super) unsafe fn as_job(&self) -> Job {
        Job(NonNull::from(self).cast())
    }

    unsafe fn run(header: NonNull<Header>) {
        // SAFETY: the job is live until the latch is set.
        let job = unsafe { header.cast::<Self>().as_ref() };
        // SAFETY: only this run, of which there is one, uses the closure.
        let f = unsafe { &mut *job.f.get() }.take();
        let result = f.map(|f| catch_unwind(AssertUnwindSafe(f)));
        // SAFETY: no thread reads the result before the latch is set.
        unsafe { *job.result.get() = result };
        // SAFETY: the latch is live and is set once. This run uses nothing of the job after that.
        unsafe { L::set(&raw const job.latch) };
    }

    /// Returns the closure of a job whose handle the caller has popped back.
    #[inline]
    pub(super) fn into_closure(self) -> F {
        self.f.into_inner().expect("the job has not run")
    }

    /// Returns the result, after the latch was set.
    pub(super) fn into_result(self) -> Result<R, Box<dyn Any + Send>> {
        self.result.into_inner().expect("the job has run")
    }
}
