//! Scopes: jobs that borrow from the frame of the thread that waits for all of them.
use super::{Awaited, Shared, Worker, job};
use std::{
    any::Any,
    cell::Cell,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{
            AtomicIsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};
use worker_idle::park::Unpark;

/// Spawns jobs that end before the call of [`Pool::scope`](super::Pool::scope) does.
pub struct Scope<'scope> {
    /// The worker whose frame this is in, and which waits for the jobs.
    owner: *const Worker,
    index: usize,
    pending: Pending,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Invariant, or a job could borrow what does not outlive the scope.
    marker: PhantomData<Cell<&'scope ()>>,
}

// SAFETY: other threads use the panic's place, which has a lock, and of `pending` the half that is
// atomic: `is_owner` says which thread has the other half. The owner's frame outlives the jobs.
unsafe impl Sync for Scope<'_> {}

/// Jobs that are not done, counted in two halves whose sum counts. Most jobs are spawned and run by
/// the owner, which counts them without a read-modify-write.
///
/// A job that is counted as done was counted as spawned before, and its spawner counts it before it
/// is done itself. So a sum of 0 that the owner sees is that of all jobs.
struct Pending {
    here: Cell<isize>,
    elsewhere: AtomicIsize,
}

impl Awaited for Pending {
    fn is_done(&self) -> bool {
        // Ordering: Acquire pairs with `run_job` of other threads: what their jobs did is there.
        self.here.get() + self.elsewhere.load(Acquire) == 0
    }

    /// Moves all to the half of the others: one of them then counts down to 0, and unparks.
    fn will_sleep(&self) {
        // Ordering: Relaxed, `is_done` follows.
        self.elsewhere.fetch_add(self.here.take(), Relaxed);
    }
}

impl<'scope> Scope<'scope> {
    /// Calls `f`, and runs the worker's and other jobs until all of the scope's are done. The first
    /// panic, that of `f` before all, is resumed after that.
    pub(super) fn run<R>(owner: &Worker, f: impl FnOnce(&Self) -> R) -> R {
        let scope = Self {
            owner,
            index: owner.index,
            pending: Pending {
                here: Cell::new(0),
                elsewhere: AtomicIsize::new(0),
            },
            panic: Mutex::new(None),
            marker: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        owner.run_until(&scope.pending);
        let panic = scope.panic.into_inner();
        match (result, panic.unwrap_or_else(PoisonError::into_inner)) {
            (Err(payload), _) | (Ok(_), Some(payload)) => resume_unwind(payload),
            (Ok(result), None) => result,
        }
    }

    /// Spawns a job. The newest that a worker has is the first that it runs; thieves take the
    /// oldest.
    pub fn spawn(&self, f: impl FnOnce(&Self) + Send + 'scope) {
        self.spawn_by(Worker::push, f);
    }

    /// Spawns a job. A worker runs the oldest of these that it has, when it has none of
    /// [`spawn`](Self::spawn); thieves take half, the oldest.
    pub fn spawn_fifo(&self, f: impl FnOnce(&Self) + Send + 'scope) {
        self.spawn_by(Worker::push_fifo, f);
    }

    #[inline]
    fn spawn_by(&self, push: fn(&Worker, job::Job), f: impl FnOnce(&Self) + Send + 'scope) {
        let scope = Borrowed(self);
        let run = move || {
            let Borrowed(scope) = { scope };
            // SAFETY: the scope waits for this job.
            unsafe { Self::run_job(scope, f) };
        };
        // SAFETY: the scope waits for the job, and what it borrows outlives that.
        let job = unsafe { job::boxed(run) };
        Worker::with_any(|worker| {
            if let Some(worker) = worker.filter(|&worker| ptr::eq(worker, self.owner)) {
                push(worker, job);
                self.pending.here.set(self.pending.here.get() + 1);
                return;
            }
            // Ordering: Relaxed. The job is done after this, by whatever way it went.
            self.pending.elsewhere.fetch_add(1, Relaxed);
            match worker.filter(|worker| ptr::eq(&*worker.shared, self.shared())) {
                Some(worker) => push(worker, job),
                None => self.shared().inject(job),
            }
        });
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the owner waits in the frame that this is in. Its `shared` never changes, and is
        // `Sync`.
        unsafe { &(*self.owner).shared }
    }

    /// A job of this scope. It takes a pointer: the scope may be gone before this returns.
    ///
    /// # Safety
    /// The scope counts this job.
    unsafe fn run_job(this: *const Self, f: impl FnOnce(&Self)) {
        // SAFETY: the scope is there until the job is counted as done.
        let scope = unsafe { &*this };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| f(scope))) {
            scope.keep(payload);
        }
        // No closure holds the scope by reference from here on.
        let (owner, index, pending) = (scope.owner, scope.index, &raw const scope.pending);
        Worker::with(|worker| {
            // SAFETY: as above.
            let pending = unsafe { &*pending };
            if ptr::eq(worker, owner) {
                pending.here.set(pending.here.get() - 1);
                return;
            }
            // Ordering: Release pairs with `is_done`.
            if pending.elsewhere.fetch_sub(1, Release) == 1 {
                // The scope may be gone. The workers are not: this thread is one of them.
                worker.shared.workers[index].unpark.unpark();
            }
        });
    }

    /// Keeps the first panic, and drops the others.
    fn keep(&self, payload: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        let dropped = match &*first {
            None => first.replace(payload),
            Some(_) => Some(payload),
        };
        drop(first);
        job::contain(|| drop(dropped));
    }
}

/// A scope that waits for the job which has this.
struct Borrowed<'scope>(*const Scope<'scope>);

// SAFETY: a scope is `Sync`.
unsafe impl Send for Borrowed<'_> {}
