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
struct Books {
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

struct Errand {
    books: Arc<Books>,
    done: Arc<Latch>,
    is_under_cap: bool,
}

// Ordering: Relaxed, these are counts. The models read `ran` and `dropped` after the joins.
impl Job for Errand {
    fn run(self) {
        let counted = usize::from(self.is_under_cap);
        let others = self.books.running.fetch_add(counted, Relaxed);
        thread::yield_now();
        self.books.running.fetch_sub(counted, Relaxed);
        // No assertion: the pool catches panics. A job that breaks the cap is not counted.
        let is_fine = others + counted <= CAP;
        self.books.ran.fetch_add(usize::from(is_fine), Relaxed);
        self.done.arrive();
    }
}

impl Drop for Errand {
    fn drop(&mut self) {
        // Ordering: Relaxed, a count.
        self.books.dropped.fetch_add(1, Relaxed);
    }
}

/// Submits two jobs at a time and waits for both, then submits one more job and does not wait for
/// it. With `beyond` the last job is urgent. Returns how many jobs the pool refused.
fn submit(pool: &Pool<Errand>, books: &Arc<Books>, beyond: bool) -> usize {
    let errand = |done: &Arc<Latch>, is_under_cap| Errand {
        books: books.clone(),
        done: done.clone(),
        is_under_cap,
    };
    for _ in 0..TURNS {
        let done = Arc::default();
        for _ in 0..2 {
            pool.submit(errand(&done, true)).unwrap();
        }
        done.wait(2);
    }
    books.through.arrive();
    let last = errand(&Arc::default(), !beyond);
    if beyond {
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
        let books = Arc::new(Books::default());
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|n| {
                let (pool, books) = (pool.clone(), books.clone());
                thread::spawn(move || submit(&pool, &books, n == 0))
            })
            .collect();
        books.through.wait(SUBMITTERS);
        let left = pool.close();
        let mut back = left.len();
        for submitter in submitters {
            back += submitter.join().unwrap();
        }
        pool.join();
        drop(left);
        // Ordering: Relaxed, after the joins.
        assert_eq!(books.ran.load(Relaxed) + back, JOBS);
        assert_eq!(books.dropped.load(Relaxed), JOBS);
        let counts = pool.counts();
        assert_eq!((counts.threads, counts.idle, counts.queue), (0, 0, 0));
        assert_eq!(pool.handles(), 1);
    });
}
