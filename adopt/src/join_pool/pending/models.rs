//! Models of the owner of a scope, with jobs that end on other threads.
use super::*;
use sync_shim::{Model, atomic::Retire, model, sync::Arc, thread};
use worker_idle::park::{Park, ThreadPark};

/// The address of a count, for the threads that run its jobs.
#[derive(Clone, Copy)]
struct PendingAddress(*const Pending);

// SAFETY: the models pass the address to threads that use the atomic half alone.
unsafe impl Send for PendingAddress {}

/// Spawns `jobs` jobs, each of which ends on a thread of its own. Then waits as a worker without
/// other jobs does, and ends the scope.
fn jobs_elsewhere(jobs: usize) {
    let mut park = ThreadPark::new();
    let pending = Box::into_raw(Box::new(Pending::new()));
    let ended = Arc::new(sync_shim::atomic::AtomicU32::new(0));
    // SAFETY: this thread is the owner, and the scope lives until this thread ends it below.
    let scope = unsafe { &*pending };
    let others: Vec<_> = (0..jobs)
        .map(|_| {
            scope.owner_spawns();
            let (waker, ended) = (park.waker(), ended.clone());
            let address = PendingAddress(pending);
            thread::spawn(move || {
                // The block moves the whole address, not its field alone, into this closure.
                let PendingAddress(pending) = { address };
                ended.fetch_add(1, Relaxed);
                // SAFETY: the scope lives until the job is counted as done.
                let must_wake_owner = unsafe { Pending::other_ends_one(pending) };
                if must_wake_owner {
                    waker.wake_by_ref();
                }
            })
        })
        .collect();
    while !scope.is_done() {
        scope.will_sleep();
        if scope.is_done() {
            break;
        }
        park.park();
    }
    assert_eq!(ended.load(Relaxed), jobs as u32);
    // SAFETY: all jobs are counted as done, so no other thread uses the scope any more.
    let mut pending = unsafe { Box::from_raw(pending) };
    pending.by_others.retire();
    drop(pending);
    for other in others {
        other.join().unwrap();
    }
}

/// The owner is unparked and sees the job's writes. The job's thread does not use the scope after
/// it has counted the job as done.
///
/// Fails if the subtraction in `other_ends_one` is Relaxed, or if a job unparks the owner only when
/// the sum of both halves is 0.
#[test]
fn owner_that_sleeps_for_a_job_elsewhere_wakes() {
    model(|| jobs_elsewhere(1));
}

/// The same with two jobs, either of which may be the last to end.
#[test]
fn owner_that_sleeps_for_two_jobs_elsewhere_wakes() {
    Model::new().bound(3).check(|| jobs_elsewhere(2));
}
