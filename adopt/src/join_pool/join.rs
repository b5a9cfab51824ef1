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
    Worker::with_any(|worker| match worker {
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
        let job = StackJob::new(b, WorkerLatch::new(self.index));
        // SAFETY: `as_job` is called once. Until the handle is back or the latch is set, the job
        // stays in this frame, and this thread uses only the latch.
        let handle = unsafe { job.as_job() };
        let address = handle.address();
        let abort = AbortOnUnwind;
        self.push(handle);
        let a = catch_unwind(AssertUnwindSafe(a));
        while let Some(other) = self.pop() {
            if other.address() == address {
                // No thief has stolen `b`, and this was its handle.
                mem::forget(abort);
                return match a {
                    Ok(a) => (a, job.into_closure()()),
                    Err(panic) => resume(panic, job.into_closure()),
                };
            }
            other.run();
        }
        self.run_until(&job.latch);
        mem::forget(abort);
        match (a, job.into_result()) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(panic), b) => resume(panic, b),
            (Ok(a), Err(panic)) => resume(panic, a),
        }
    }
}
