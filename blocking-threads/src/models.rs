//! Who submits, threads that fall idle, and the end. The model's clock stands still: no thread ends for its keep-alive.
use crate::{Pool, Refused, Settings};
use sync_shim::{
    Model,
    atomic::{AtomicUsize, Ordering::Relaxed},
    sync::{Arc, Condvar, Mutex},
    thread,
};

type Job = Box<dyn FnOnce() + Send>;

struct Scene {
    pool: Arc<Pool<Job>>,
    ran: Arc<AtomicUsize>,
}

impl Scene {
    fn new(cap: usize) -> Self {
        let settings = Settings {
            cap,
            ..Settings::default()
        };
        Self {
            pool: Arc::new(Pool::new(settings)),
            ran: Arc::new(AtomicUsize::new(0)),
        }
    }

    fn submit(&self) -> Result<(), Refused<Job>> {
        let ran = self.ran.clone();
        Pool::submit(
            &self.pool,
            Box::new(move || {
                ran.fetch_add(1, Relaxed);
            }),
        )
    }

    /// Closes, waits, and gives the number of jobs handed back.
    fn end(&self) -> usize {
        let left = self.pool.close().len();
        assert!(self.pool.wait(None));
        left
    }
}

/// Bites: take a job in `submit` without a look at `closed`; drop in `close` what has not begun.
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

/// Bites: finish without the notification; let a thread end that finds the pool closed, before it looks at the queue.
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

/// One thread that may be about to wait: it is woken, or sees the job.
///
/// Bites: no notification in `submit`.
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

/// A thread that lingers takes what nobody was woken for; of two jobs that need each other it takes one, and another thread the other.
///
/// Bites: no look at the queue after it has lingered; count who lingers as two.
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
            pool: Arc::new(Pool::new(settings)),
            ran: Arc::new(AtomicUsize::new(0)),
        };
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        scene.submit().unwrap();
        for _ in 0..2 {
            let met = met.clone();
            Pool::submit(&scene.pool, Box::new(move || meet(&met))).unwrap();
        }
        while scene.ran.load(Relaxed) < 1 || *met.0.lock() < 2 {
            thread::yield_now();
        }
        assert_eq!(scene.end(), 0);
    });
}

/// Comes to where two meet, and waits for the other.
fn meet(met: &(Mutex<u32>, Condvar)) {
    let mut here = met.0.lock();
    *here += 1;
    met.1.notify_all();
    while *here < 2 {
        here = met.1.wait(here);
    }
}

/// Bites: notify when one idle thread is spoken for already (`ready > 0` for `ready >= wanted`), with jobs that wait for each other.
#[test]
fn two_jobs_that_wait_for_each_other_get_two_threads() {
    Model::new().bound(2).check(|| {
        let scene = Scene::new(2);
        scene.submit().unwrap();
        let met = Arc::new((Mutex::new(0), Condvar::new()));
        for _ in 0..2 {
            let met = met.clone();
            Pool::submit(&scene.pool, Box::new(move || meet(&met))).unwrap();
        }
        while *met.0.lock() < 2 {
            thread::yield_now();
        }
        assert_eq!(scene.end(), 0);
    });
}

/// Who waits in a job beyond the cap for two under it: one that was there before, and one that it submits, while a thread falls idle or the cap is full.
///
/// Bites: count the jobs beyond the cap as busy; leave them to a ready thread that is on its way to one under it (`max` for the sum in `wanted`).
#[test]
fn urgent_job_that_waits_for_capped_jobs_completes() {
    Model::new().bound(2).check(|| {
        let scene = Scene::new(1);
        let gates = [(); 3].map(|()| Arc::new((Mutex::new(false), Condvar::new())));
        let [before, inner, done] = gates.clone();
        Pool::submit(&scene.pool, Box::new(move || open(&before))).unwrap();
        let [before, ..] = gates.clone();
        let pool = scene.pool.clone();
        let job: Job = Box::new(move || {
            wait(&before);
            let set = inner.clone();
            Pool::submit(&pool, Box::new(move || open(&set))).unwrap();
            wait(&inner);
            open(&done);
        });
        Pool::submit_now(&scene.pool, job, "now").unwrap();
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
