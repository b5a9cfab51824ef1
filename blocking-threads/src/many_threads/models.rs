//! Models of three submitters, the pool's threads and the pool's end: more threads than loom can
//! check.
use crate::{Job, Pool, Settings};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::{Arc, Condvar, Mutex},
    thread,
};

const CAP: usize = 2;
const SUBMITTERS: usize = 3;
const TURNS: usize = 2;
/// The number of all jobs: each submitter submits two in each turn, and then one last job.
const JOBS: usize = SUBMITTERS * (2 * TURNS + 1);

#[derive(Default)]
struct Counts {
    running: AtomicUsize,
    ran: AtomicUsize,
    dropped: AtomicUsize,
    /// Counts the submitters whose turns are over.
    through: Latch,
}

#[derive(Default)]
struct Latch(Mutex<usize>, Condvar);

impl Latch {
    fn arrive(&self) {
        *self.0.lock() += 1;
        self.1.notify_all();
    }

    fn wait(&self, for_all: usize) {
        let mut here = self.0.lock();
        while *here < for_all {
            here = self.1.wait(here);
        }
    }
}

struct CountedJob {
    counts: Arc<Counts>,
    done: Arc<Latch>,
    is_under_cap: bool,
}

// Ordering: Relaxed, these are counts. The models read `ran` and `dropped` after the joins.
impl Job for CountedJob {
    fn run(self) {
        let counted = usize::from(self.is_under_cap);
        let others = self.counts.running.fetch_add(counted, Relaxed);
        thread::yield_now();
        self.counts.running.fetch_sub(counted, Relaxed);
        // No assertion: the pool catches panics. A job that breaks the cap is not counted.
        let is_fine = others + counted <= CAP;
        self.counts.ran.fetch_add(usize::from(is_fine), Relaxed);
        self.done.arrive();
    }
}

impl Drop for CountedJob {
    fn drop(&mut self) {
        // Ordering: Relaxed, a count.
        self.counts.dropped.fetch_add(1, Relaxed);
    }
}

/// Submits two jobs at a time and waits for both, then submits one more job and does not wait for
/// it. With `is_urgent` the last job is urgent. Returns how many jobs the pool refused.
fn submit(pool: &Pool<CountedJob>, counts: &Arc<Counts>, is_urgent: bool) -> usize {
    let job = |done: &Arc<Latch>, is_under_cap| CountedJob {
        counts: counts.clone(),
        done: done.clone(),
        is_under_cap,
    };
    for _ in 0..TURNS {
        let done = Arc::default();
        for _ in 0..2 {
            pool.submit(job(&done, true)).unwrap();
        }
        done.wait(2);
    }
    counts.through.arrive();
    let last = job(&Arc::default(), !is_urgent);
    if is_urgent {
        pool.submit_now(last, "now").unwrap();
        return 0;
    }
    usize::from(pool.submit(last).is_err())
}

/// Three submitters each wait for two jobs at a time, with a cap of two. Then each submits one more
/// job while the pool closes. One of these last jobs is urgent. Each job is run once or comes back,
/// and is dropped once.
///
/// Fails if `notify` notifies no thread, if a job is taken with `busy > cap`, if `close` drops the
/// queued jobs, or if `wanted` leaves out `urgent`.
#[test]
fn three_submitters_racing_close_lose_no_job() {
    model(|| {
        let settings = Settings {
            cap: CAP,
            ..Settings::default()
        };
        let pool = Pool::new(settings);
        let counts = Arc::new(Counts::default());
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|n| {
                let (pool, counts) = (pool.clone(), counts.clone());
                thread::spawn(move || submit(&pool, &counts, n == 0))
            })
            .collect();
        counts.through.wait(SUBMITTERS);
        let left = pool.close();
        let mut back = left.len();
        for submitter in submitters {
            back += submitter.join().unwrap();
        }
        pool.join();
        drop(left);
        // Ordering: Relaxed, after the joins.
        assert_eq!(counts.ran.load(Relaxed) + back, JOBS);
        assert_eq!(counts.dropped.load(Relaxed), JOBS);
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.idle, counts.queue), (0, 0, 0));
        assert_eq!(pool.handles(), 1);
    });
}
