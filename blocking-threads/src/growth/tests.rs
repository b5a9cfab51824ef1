//! Bursts, jobs that wait for others, and caps that change. `LONG` stands for never: if a pool's
//! `grow_after` is `LONG`, its watcher starts no thread while the pool is open. Threads up to
//! `eager` start nevertheless.
#[cfg(not(selvedge_count))]
use crate::StaticPool;
use crate::{Pool, Settings};
use std::{
    io,
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

type Boxed = Box<dyn FnOnce() + Send>;
type Shared = Pool<Boxed>;

const LONG: Duration = Duration::from_secs(600);

fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LONG, "waited too long");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns a pool, and the number of threads that it has started.
fn pool(change: impl FnOnce(&mut Settings)) -> (Shared, Arc<AtomicUsize>) {
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let mut settings = Settings::new();
    settings.keep_alive = LONG;
    settings.spawn = Some(Arc::new(move |builder, run| {
        count.fetch_add(1, SeqCst);
        builder.spawn(run)
    }));
    change(&mut settings);
    (Pool::new(settings), started)
}

/// Submits a job that blocks its thread until the returned sender is dropped, and waits for it to
/// begin.
fn block(pool: &Shared) -> mpsc::Sender<()> {
    let (gate, held) = mpsc::channel();
    let (begun, begins) = mpsc::channel();
    let job = move || {
        begun.send(()).unwrap();
        let _ = held.recv();
    };
    pool.submit(Box::new(job)).unwrap();
    begins.recv().unwrap();
    gate
}

/// Submits `jobs` jobs, which end only when all of them run at the same time.
fn meet(pool: &Shared, jobs: usize) -> mpsc::Receiver<()> {
    let all = Arc::new(Barrier::new(jobs));
    let (met, done) = mpsc::channel();
    for _ in 0..jobs {
        let (all, met) = (all.clone(), met.clone());
        let job = move || {
            all.wait();
            met.send(()).unwrap();
        };
        pool.submit(Box::new(job)).unwrap();
    }
    done
}

fn end(pool: &Shared) {
    pool.finish();
    pool.join();
}

/// Fails if each job that finds no idle thread starts one.
#[test]
fn burst_of_trivial_jobs_starts_eager_threads_and_watcher() {
    let (pool, started) = pool(|settings| settings.grow_after = LONG);
    let (ran, done) = mpsc::channel();
    for n in 0..500 {
        let ran = ran.clone();
        pool.submit(Box::new(move || ran.send(n).unwrap())).unwrap();
    }
    drop(ran);
    assert_eq!(done.iter().count(), 500);
    assert!(started.load(SeqCst) <= 5, "{started:?}");
    end(&pool);
}

#[test]
fn burst_of_blocking_jobs_starts_all_threads_of_the_cap() {
    let (pool, started) = pool(|settings| {
        settings.cap = 500;
        settings.stack_size = Some(0x1_0000);
    });
    let done = meet(&pool, 500);
    assert_eq!(done.iter().count(), 500);
    assert_eq!(started.load(SeqCst), 500);
    end(&pool);
}

#[test]
fn grow_after_zero_starts_a_thread_for_each_job() {
    let (pool, started) = pool(|settings| settings.grow_after = Duration::ZERO);
    let gates: Vec<_> = (0..20).map(|_| block(&pool)).collect();
    assert_eq!(started.load(SeqCst), 20);
    drop(gates);
    end(&pool);
}

#[test]
fn jobs_below_eager_start_threads_at_once() {
    let (pool, started) = pool(|settings| settings.grow_after = LONG);
    let gates: Vec<_> = (0..4).map(|_| block(&pool)).collect();
    assert_eq!(started.load(SeqCst), 4);
    drop(gates);
    until(|| pool.counts().idle == 4);
    // An idle thread is notified at once too.
    let gates: Vec<_> = (0..4).map(|_| block(&pool)).collect();
    assert_eq!(started.load(SeqCst), 4);
    drop(gates);
    end(&pool);
}

/// Each job submits the next one and waits for it. The test's thread submits only the first job.
#[test]
fn chain_of_jobs_that_wait_for_the_next_completes() {
    fn link(pool: Shared, left: usize, done: mpsc::Sender<()>) {
        if left > 0 {
            let (sender, wait) = mpsc::channel();
            let next = pool.clone();
            let job: Boxed = Box::new(move || link(next, left - 1, sender));
            pool.submit(job).unwrap();
            drop(pool);
            wait.recv().unwrap();
        }
        done.send(()).unwrap();
    }
    let (pool, _) = pool(|settings| settings.eager = 0);
    let (sender, wait) = mpsc::channel();
    link(pool.clone(), 30, sender);
    wait.recv().unwrap();
    end(&pool);
}

/// Fails if a thread that finds the pool closed does not notify the watcher.
#[test]
fn finish_ends_a_watcher_that_waits() {
    // `finish` may come before the watcher begins to wait, so the test has many rounds.
    for _ in 0..50 {
        let (pool, left) = refusing(2, LONG);
        let gate = block(&pool);
        let (ran, done) = mpsc::channel();
        for _ in 0..3 {
            let ran = ran.clone();
            pool.submit(Box::new(move || ran.send(()).unwrap()))
                .unwrap();
        }
        assert_eq!(left.load(SeqCst), 0);
        pool.finish();
        drop((gate, ran));
        assert_eq!(done.iter().count(), 3);
        assert!(pool.wait(Some(LONG / 2)));
        pool.join();
    }
}

/// Fails if `Pool::refuse`, which `close` calls, does not notify the watcher.
#[test]
fn close_ends_a_watcher_that_waits() {
    for round in 0..50 {
        let (pool, left) = refusing(2, LONG);
        let gate = block(&pool);
        pool.submit(Box::new(|| ())).unwrap();
        assert_eq!(left.load(SeqCst), 0);
        // The close comes before or after the watcher begins to wait.
        (0..10 * round).for_each(|_| thread::yield_now());
        assert_eq!(pool.close().len(), 1);
        let begun = Instant::now();
        until(|| pool.counts().idle == 0);
        assert!(begun.elapsed() < LONG / 2);
        drop(gate);
        pool.join();
    }
}

#[test]
fn finished_pool_still_grows_for_jobs_that_wait_for_others() {
    let (pool, _) = pool(|settings| settings.eager = 1);
    let gate = block(&pool);
    let done = meet(&pool, 3);
    pool.finish();
    assert_eq!(done.iter().count(), 3);
    drop(gate);
    pool.join();
}

/// Makes a pool with `eager` 1 that can start `threads` threads. The returned count can be raised
/// later.
fn refusing(threads: usize, grow_after: Duration) -> (Shared, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(threads));
    let may = left.clone();
    let (pool, _) = pool(|settings| {
        settings.eager = 1;
        settings.grow_after = grow_after;
        settings.spawn = Some(Arc::new(move |builder, run| {
            may.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1))
                .map_err(|_| io::Error::other("no thread"))?;
            builder.spawn(run)
        }));
    });
    (pool, left)
}

#[test]
fn job_without_a_watcher_waits_for_a_busy_thread() {
    let (pool, _) = refusing(1, Duration::from_millis(1));
    let gate = block(&pool);
    let (ran, done) = mpsc::channel();
    pool.submit(Box::new(move || ran.send(()).unwrap()))
        .unwrap();
    assert_eq!(pool.counts().threads, 1);
    drop(gate);
    done.recv().unwrap();
    end(&pool);
}

#[test]
fn watcher_that_was_refused_threads_retries() {
    let (pool, left) = refusing(2, Duration::from_millis(1));
    let done = meet(&pool, 5);
    // One job has begun, and the watcher keeps checking.
    until(|| pool.counts().queue == 4 && pool.counts().idle == 1);
    left.store(100, SeqCst);
    assert_eq!(done.iter().count(), 5);
    end(&pool);
}

/// Fails if `set_cap` starts no thread for a queued job that may run under the new cap.
#[test]
fn raised_cap_runs_jobs_that_waited_for_room() {
    for (eager, grow_after) in [
        (4, LONG),
        (1, Duration::from_millis(1)),
        (1, Duration::ZERO),
    ] {
        let (pool, _) = pool(|settings| {
            settings.cap = 1;
            settings.eager = eager;
            settings.grow_after = grow_after;
        });
        let done = meet(&pool, 4);
        pool.set_cap(4);
        assert_eq!(pool.cap(), 4);
        assert_eq!(done.iter().count(), 4);
        end(&pool);
    }
}

/// Fails if `set_cap` does not notify the idle thread.
#[test]
fn raised_cap_wakes_an_idle_thread() {
    let (pool, started) = pool(|settings| settings.cap = 1);
    let (gate, held) = mpsc::channel::<()>();
    let urgent = move || held.recv().unwrap_or(());
    pool.submit_now(Box::new(urgent), "now").unwrap();
    let held = block(&pool);
    drop(gate);
    until(|| pool.counts().idle == 1);
    let done = meet(&pool, 1);
    assert_eq!(pool.counts().queue, 1, "there is no room");
    pool.set_cap(2);
    done.recv().unwrap();
    assert_eq!(started.load(SeqCst), 2);
    drop(held);
    end(&pool);
}

/// Fails if `set_cap` does not set the surplus (the number of threads above the new cap), or does
/// not notify the idle threads.
#[test]
fn lowered_cap_ends_threads_as_they_become_idle() {
    let (pool, _) = pool(|settings| settings.eager = 8);
    let mut gates: Vec<_> = (0..8).map(|_| block(&pool)).collect();
    gates.truncate(5);
    until(|| pool.counts().idle == 3);
    pool.set_cap(2);
    until(|| pool.counts().threads == 5);
    assert_eq!(pool.counts().idle, 0);
    let (ran, done) = mpsc::channel();
    pool.submit(Box::new(move || ran.send(()).unwrap()))
        .unwrap();
    gates.truncate(2);
    until(|| pool.counts().threads == 2);
    assert!(done.try_recv().is_err(), "two threads are busy");
    gates.clear();
    done.recv().unwrap();
    until(|| pool.counts().idle == 2);
    end(&pool);
}

#[test]
fn cap_of_zero_refuses_jobs_and_runs_queued_ones() {
    let (pool, _) = pool(|_| ());
    let gate = block(&pool);
    let (ran, done) = mpsc::channel();
    pool.set_cap(1);
    for n in 0..3 {
        let ran = ran.clone();
        pool.submit(Box::new(move || ran.send(n).unwrap())).unwrap();
    }
    drop(ran);
    pool.set_cap(0);
    let refused = pool.submit(Box::new(|| ())).unwrap_err();
    assert!(refused.why.is_none());
    drop(gate);
    assert_eq!(done.iter().collect::<Vec<_>>(), [0, 1, 2]);
    until(|| pool.counts().threads == 0);
    pool.set_cap(1);
    drop(block(&pool));
    end(&pool);
}

#[cfg(not(selvedge_count))]
#[test]
fn static_pool_runs_jobs_and_ends() {
    static POOL: StaticPool<Boxed> = StaticPool::new({
        let mut settings = Settings::named("static");
        settings.cap = 2;
        settings
    });
    let pool = POOL.handle();
    let (sender, name) = mpsc::channel();
    let job = || -> Boxed {
        let sender = sender.clone();
        Box::new(move || {
            let name = thread::current().name().map(String::from);
            sender.send(name).unwrap();
        })
    };
    pool.submit(job()).unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("static"));
    pool.start(job(), "own").unwrap();
    assert_eq!(name.recv().unwrap().as_deref(), Some("own"));
    pool.set_cap(3);
    pool.submit_now(job(), "now").unwrap();
    name.recv().unwrap();
    pool.finish();
    pool.join();
    assert_eq!(pool.counts().threads, 0);
}
