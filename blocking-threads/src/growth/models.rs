//! Models of the watcher, which races submissions, threads that become idle, and the pool's end.
//! The watcher may check the pool at any time.
use crate::{Pool, Settings};
use sync_shim::{
    Model,
    sync::{Arc, Condvar, Mutex},
    thread,
};

type Job = Box<dyn FnOnce() + Send>;
type Shared = Pool<Job>;

/// A pool that starts only its first thread at once.
fn pool(cap: usize) -> Shared {
    let mut settings = Settings::new();
    settings.cap = cap;
    settings.eager = 1;
    Pool::new(settings)
}

struct Meeting(Mutex<usize>, Condvar);

impl Meeting {
    fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(0), Condvar::new()))
    }

    fn wait_for(&self, all: usize) {
        let mut here = self.0.lock();
        while *here < all {
            here = self.1.wait(here);
        }
    }

    fn arrive(&self) {
        *self.0.lock() += 1;
        self.1.notify_all();
    }
}

/// Submits `jobs` jobs that wait for each other.
fn submit_that_meet(pool: &Shared, met: &Arc<Meeting>, jobs: usize) {
    for _ in 0..jobs {
        let met = met.clone();
        let job: Job = Box::new(move || {
            met.arrive();
            met.wait_for(jobs);
        });
        pool.submit(job).unwrap();
    }
}

fn end(pool: &Shared) {
    assert!(pool.close().is_empty());
    pool.join();
    let counts = pool.counts();
    assert_eq!((counts.threads, counts.idle, counts.queue), (0, 0, 0));
}

/// Fails if `provide` starts no watcher.
#[test]
fn last_job_without_a_thread_is_run_by_the_watcher() {
    Model::new().bound(2).check(|| {
        let (pool, met) = (pool(2), Meeting::new());
        submit_that_meet(&pool, &met, 2);
        met.wait_for(2);
        end(&pool);
    });
}

/// Fails if `grow` starts no thread.
#[test]
fn jobs_that_wait_for_each_other_get_threads_from_watcher() {
    Model::new().bound(1).check(|| {
        let (pool, met) = (pool(3), Meeting::new());
        submit_that_meet(&pool, &met, 3);
        met.wait_for(3);
        end(&pool);
    });
}

/// A submitter submits a job while the watcher may be about to end its watch. Another job waits for
/// that job.
///
/// Fails if `watched` stays set after the watch.
#[test]
fn job_racing_the_end_of_a_watch_is_run() {
    Model::new().bound(1).check(|| {
        let (pool, met) = (pool(3), Meeting::new());
        let (all, first) = (met.clone(), met.clone());
        pool.submit(Box::new(move || all.wait_for(2))).unwrap();
        pool.submit(Box::new(move || first.arrive())).unwrap();
        met.wait_for(1);
        let second = met.clone();
        pool.submit(Box::new(move || second.arrive())).unwrap();
        met.wait_for(2);
        end(&pool);
    });
}

/// Fails if `set_cap` starts no thread for a job that the raised cap admits.
#[test]
fn raised_cap_racing_a_pop_runs_both_jobs() {
    Model::new().bound(2).check(|| {
        let (pool, met) = (pool(1), Meeting::new());
        submit_that_meet(&pool, &met, 2);
        let raised = pool.clone();
        let raiser = thread::spawn(move || raised.set_cap(2));
        met.wait_for(2);
        raiser.join().unwrap();
        end(&pool);
    });
}
