//! Models of submissions that race the pool's end, or race threads that become idle. No time passes
//! in a model, so no thread ends because its keep-alive is over.
use crate::{Pool, Refused, Settings};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    sync::{Arc, Condvar, Mutex},
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

struct Scene {
    pool: Pool<Job>,
    ran: Arc<AtomicUsize>,
}

impl Scene {
    fn new(cap: usize) -> Self {
        let settings = Settings {
            cap,
            ..Settings::default()
        };
        Self {
            pool: Pool::new(settings),
            ran: Arc::new(AtomicUsize::new(0)),
        }
    }

    fn submit(&self) -> Result<(), Refused<Job>> {
        let ran = self.ran.clone();
        self.pool.submit(Box::new(move || {
            ran.fetch_add(1, Relaxed);
        }))
    }

    /// Closes the pool, waits for its end, and returns the number of jobs that `close` returned.
    fn end(&self) -> usize {
        let left = self.pool.close().len();
        assert!(self.pool.wait(None));
        left
    }
}

/// Fails if `submit` takes a job without checking `closed`, or if `close` drops the queued jobs.
#[test]
fn job_racing_close_is_run_or_returned() {
    Model::new().bound(3).check(|| {
        let scene = Arc::new(Scene::new(1));
        scene.submit().unwrap();
        let other = {
            let scene = scene.clone();
            thread::spawn(move || usize::from(scene.submit().is_err()))
        };
        let left = scene.end();
        let refused = other.join().unwrap();
        assert_eq!(scene.ran.load(Relaxed) + left + refused, 2);
    });
}

/// Fails if `finish` notifies no thread, or if a thread that finds the pool closed ends before it
/// checks the queues.
#[test]
fn job_racing_finish_is_run_or_refused() {
    Model::new().bound(3).check(|| {
        let scene = Arc::new(Scene::new(1));
        scene.submit().unwrap();
        let other = {
            let scene = scene.clone();
            thread::spawn(move || usize::from(scene.submit().is_err()))
        };
        scene.pool.finish();
        assert!(scene.pool.wait(None));
        let refused = other.join().unwrap();
        assert_eq!(scene.ran.load(Relaxed) + refused, 2);
    });
}

/// A job is submitted while the pool's one thread may be about to wait. The thread is notified, or
/// finds the job.
///
/// Fails if `submit` notifies no thread.
#[test]
fn job_racing_a_thread_about_to_wait_is_run() {
    Model::new().bound(3).check(|| {
        let scene = Scene::new(1);
        scene.submit().unwrap();
        scene.submit().unwrap();
        while scene.ran.load(Relaxed) < 2 {
            thread::yield_now();
        }
        assert_eq!(scene.end(), 0);
    });
}

/// A spinning thread takes a job for which the submitter notified no thread. If two jobs wait for
/// each other, the spinning thread takes one, and another thread takes the other.
///
/// Fails if a spinning thread does not check the queues after its hook, or counts as two threads.
#[test]
fn jobs_racing_a_spinning_thread_are_run() {
    Model::new().bound(2).check(|| {
        let settings = Settings {
            cap: 2,
            before_park: Some(std::sync::Arc::new(|| {
                Box::new(|look| {
                    look();
                })
            })),
            ..Settings::default()
        };
        let scene = Scene {
            pool: Pool::new(settings),
            ran: Arc::new(AtomicUsize::new(0)),
        };
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        scene.submit().unwrap();
        for _ in 0..2 {
            let met = met.clone();
            scene.pool.submit(Box::new(move || meet(&met))).unwrap();
        }
        while scene.ran.load(Relaxed) < 1 || *met.0.lock() < 2 {
            thread::yield_now();
        }
        assert_eq!(scene.end(), 0);
    });
}

/// Waits until two threads have called this function.
fn meet(met: &(Mutex<u32>, Condvar)) {
    let mut here = met.0.lock();
    *here += 1;
    met.1.notify_all();
    while *here < 2 {
        here = met.1.wait(here);
    }
}

/// Two jobs wait for each other, and the one ready thread is already needed for one of them.
///
/// Fails if `notify` compares `ready > 0` in place of `ready >= wanted`.
#[test]
fn two_jobs_that_wait_for_each_other_get_two_threads() {
    Model::new().bound(2).check(|| {
        let scene = Scene::new(2);
        scene.submit().unwrap();
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        for _ in 0..2 {
            let met = met.clone();
            scene.pool.submit(Box::new(move || meet(&met))).unwrap();
        }
        while *met.0.lock() < 2 {
            thread::yield_now();
        }
        assert_eq!(scene.end(), 0);
    });
}

/// An urgent job waits for two capped jobs: one that was submitted before it, and one that it
/// submits itself. Meanwhile a thread becomes idle, or the cap is reached.
///
/// Fails if threads with urgent jobs count as busy. Also fails if the pool leaves an urgent job to
/// a ready thread that is on its way to a capped job (a `max` in place of the sum in `wanted`).
#[test]
fn urgent_job_that_waits_for_capped_jobs_completes() {
    Model::new().bound(2).check(|| {
        let scene = Scene::new(1);
        let gates = [(); 3].map(|()| Arc::new((Mutex::new(false), Condvar::new())));
        let [before, inner, done] = gates.clone();
        scene.pool.submit(Box::new(move || open(&before))).unwrap();
        let [before, ..] = gates.clone();
        let pool = scene.pool.clone();
        let job: Job = Box::new(move || {
            wait(&before);
            let set = inner.clone();
            pool.submit(Box::new(move || open(&set))).unwrap();
            wait(&inner);
            open(&done);
        });
        scene.pool.submit_now(job, "now").unwrap();
        wait(&gates[2]);
        assert_eq!(scene.end(), 0);
    });
}

type Gate = (Mutex<bool>, Condvar);

fn open(gate: &Gate) {
    *gate.0.lock() = true;
    gate.1.notify_all();
}

fn wait(gate: &Gate) {
    let mut is_open = gate.0.lock();
    while !*is_open {
        is_open = gate.1.wait(is_open);
    }
}
