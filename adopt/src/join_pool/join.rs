//! `join`: a job that a thief may run while its caller runs another one.
use super::{
    job::{StackJob, resume},
    latch::WorkerLatch,
    worker::{AbortOnUnwind, Worker},
};
use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

/// Runs both closures, `b` on another worker if one is free, and returns both results. Outside of
/// a pool, runs `a` and then `b` on the caller's thread.
///
/// If `a` panics, its panic is resumed once `b` has ended or will never begin. Otherwise a panic of
/// `b` is resumed.
///
/// ```
/// let pool = adopt::join_pool::Pool::new(2)?;
/// let both = pool.install(|| adopt::join_pool::join(|| 1 + 1, || 2 + 2));
/// assert_eq!(both, (2, 4));
/// # Ok::<(), std::io::Error>(())
/// ```
#[inline]
pub fn join<A, B, RA, RB>(a: A, b: B) -> (RA, RB)
where
    A: FnOnce() -> RA + Send,
    B: FnOnce() -> RB + Send,
    RA: Send,
    RB: Send,
{
    Worker::with_current_or_none(|worker| match worker {
        Some(worker) => worker.join(a, b),
        None => (a(), b()),
    })
}

impl Worker {
    #[inline]
    fn join<A, B, RA, RB>(&self, a: A, b: B) -> (RA, RB)
    where
        A: FnOnce() -> RA + Send,
        B: FnOnce() -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let job_b = StackJob::new(b, WorkerLatch::new(self.index));
        // SAFETY: `as_job` is called once. This thread uses only the latch of the job, which stays
        // in this frame, until one of two things has happened: this thread has popped the handle
        // back, or the latch is set.
        let handle = unsafe { job_b.as_job() };
        let address = handle.address();
        let abort = AbortOnUnwind;
        self.push(handle);
        let result_a = catch_unwind(AssertUnwindSafe(a));
        while let Some(other) = self.pop() {
            if other.address() == address {
                // No thief has stolen `b`, and this was its handle.
                mem::forget(abort);
                let b = job_b.into_closure();
                return match result_a {
                    Ok(a) => (a, b()),
                    Err(panic) => resume(panic, b),
                };
            }
            other.run();
        }
        self.run_until(&job_b.latch);
        mem::forget(abort);
        match (result_a, job_b.into_result()) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(panic), result_b) => resume(panic, result_b),
            (Ok(a), Err(panic)) => resume(panic, a),
        }
    }
}
