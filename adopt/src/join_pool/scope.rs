//! Scopes: jobs that borrow from a stack frame, and a worker that waits in that frame for all of
//! them.
use super::{job, pending::Pending, shared::Shared, worker::Worker};
use std::{
    any::Any,
    cell::Cell,
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Mutex, PoisonError},
};

/// Spawns jobs that end before the call of [`Pool::scope`](super::Pool::scope) returns.
pub struct Scope<'scope> {
    /// The worker that holds the scope in its frame, and that waits for the jobs.
    owner: *const Worker,
    /// The owner's index among the pool's workers.
    owner_index: usize,
    pending: Pending,
    /// The payload of the first panic of a job.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    /// Makes `'scope` invariant, as a job could borrow from too short a lifetime otherwise.
    marker: PhantomData<Cell<&'scope ()>>,
}

// SAFETY: other threads use `panic`, which has a lock, and the atomic half of `pending`. Only the
// owner uses the other half: `spawn_by` and `run_job` compare the current worker with `owner`. The
// owner's frame outlives the jobs.
unsafe impl Sync for Scope<'_> {}

impl<'scope> Scope<'scope> {
    /// Calls `f`, and runs any jobs until all jobs of the scope are done. Then resumes the panic of
    /// `f`, or else the first panic of a job. Without a panic, returns the result of `f`.
    pub(super) fn run<R>(owner: &Worker, f: impl FnOnce(&Self) -> R) -> R {
        let scope = Self {
            owner,
            owner_index: owner.index,
            pending: Pending::new(),
            panic: Mutex::new(None),
            marker: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
        owner.run_until(&scope.pending);
        let panic = scope.panic.into_inner();
        match (result, panic.unwrap_or_else(PoisonError::into_inner)) {
            (Err(payload), panic_of_job) => job::resume(payload, panic_of_job),
            (Ok(result), Some(payload)) => job::resume(payload, result),
            (Ok(result), None) => result,
        }
    }

    /// Spawns a job. A worker runs its newest job first; thieves take the oldest.
    pub fn spawn(&self, f: impl FnOnce(&Self) + Send + 'scope) {
        self.spawn_by(Worker::push, f);
    }

    /// Spawns a job. A worker runs jobs of `spawn_fifo` in the order of their spawns, when it has
    /// no job of [`spawn`](Self::spawn). A thief takes the older half of them.
    pub fn spawn_fifo(&self, f: impl FnOnce(&Self) + Send + 'scope) {
        self.spawn_by(Worker::push_fifo, f);
    }

    #[inline]
    fn spawn_by(&self, push: fn(&Worker, job::Job), f: impl FnOnce(&Self) + Send + 'scope) {
        let scope = Borrowed(self);
        let run = move || {
            let Borrowed(scope) = { scope };
            // SAFETY: the scope counts this job, and waits for it.
            unsafe { Self::run_job(scope, f) };
        };
        // SAFETY: the scope waits for the job, and everything that `f` borrows outlives the scope.
        let job = unsafe { job::boxed(run) };
        Worker::with_current_or_none(|worker| {
            if let Some(worker) = worker.filter(|&worker| ptr::eq(worker, self.owner)) {
                push(worker, job);
                self.pending.owner_spawns();
                return;
            }
            self.pending.other_spawns();
            match worker.filter(|worker| ptr::eq(&*worker.shared, self.shared())) {
                Some(worker) => push(worker, job),
                None => self.shared().inject(job),
            }
        });
    }

    fn shared(&self) -> &Shared {
        // SAFETY: the owner waits in the frame that holds this scope, so the owner is live. Its
        // `shared` never changes, and is `Sync`.
        unsafe { &(*self.owner).shared }
    }

    /// Runs a job of the scope. Takes a pointer, as the scope may be gone before this function
    /// returns.
    ///
    /// # Safety
    /// The scope has counted this job as spawned.
    unsafe fn run_job(this: *const Self, f: impl FnOnce(&Self)) {
        // SAFETY: the scope is live until the job is counted as done.
        let scope = unsafe { &*this };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| f(scope))) {
            scope.keep_first_panic(payload);
        }
        // From here on this function holds no reference to the scope, which may be gone as soon as
        // the job is counted as done.
        let (owner, owner_index) = (scope.owner, scope.owner_index);
        let pending = &raw const scope.pending;
        Worker::with_current(|worker| {
            if ptr::eq(worker, owner) {
                // SAFETY: the owner's own frame, which holds the scope, is below this one.
                unsafe { &*pending }.owner_ends_one();
                return;
            }
            // SAFETY: the scope is live until this call counts the job.
            let must_wake_owner = unsafe { Pending::other_ends_one(pending) };
            if must_wake_owner {
                // The scope may be gone. The pool is not gone, as this thread is its worker.
                worker.shared.workers[owner_index].waker.wake_by_ref();
            }
        });
    }

    /// Keeps the first panic, and drops the others.
    fn keep_first_panic(&self, payload: Box<dyn Any + Send>) {
        let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
        let later = match &*first {
            None => first.replace(payload),
            Some(_) => Some(payload),
        };
        drop(first);
        job::contain(|| drop(later));
    }
}

/// A pointer to a scope that waits for the job which holds the pointer.
struct Borrowed<'scope>(*const Scope<'scope>);

// SAFETY: a shared reference to a scope is `Send`, as a scope is `Sync`.
unsafe impl Send for Borrowed<'_> {}
