//! Tests of closures that block.
use adopt::blocking::{Blocking, set_max_threads, unblock};
use futures_lite::future::block_on;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
};

#[test]
fn burst_of_jobs_gives_each_its_output() {
    let jobs: Vec<_> = (0..1_000).map(|n| unblock(move || n * n)).collect();
    for (n, job) in jobs.into_iter().enumerate() {
        assert_eq!(block_on(job), n * n);
    }
}

#[test]
fn jobs_that_wait_for_each_other_get_a_thread_each() {
    let blocking = Blocking::new(8);
    let all = Arc::new(Barrier::new(8));
    let wait = |_| {
        let all = all.clone();
        blocking.unblock(move || all.wait().is_leader())
    };
    let jobs: Vec<_> = (0..8).map(wait).collect();
    assert_eq!(
        jobs.into_iter()
            .map(block_on)
            .filter(|leads| *leads)
            .count(),
        1
    );
}

#[test]
fn max_threads_of_zero_leaves_one_thread() {
    static RUNNING: AtomicUsize = AtomicUsize::new(0);
    set_max_threads(0);
    let alone = |_| {
        unblock(|| {
            assert_eq!(RUNNING.fetch_add(1, Relaxed), 0);
            thread::yield_now();
            RUNNING.fetch_sub(1, Relaxed);
        })
    };
    let jobs: Vec<_> = (0..100).map(alone).collect();
    jobs.into_iter().for_each(block_on);
}

#[test]
fn panic_of_a_job_is_resumed_by_its_handle() {
    let blocking = Blocking::new(1);
    let job = blocking.unblock(|| panic!("of a job"));
    let panic = catch_unwind(AssertUnwindSafe(|| block_on(job))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"of a job"));
    assert_eq!(block_on(blocking.unblock(|| 7)), 7);
}

#[test]
fn queued_job_of_dropped_pool_or_handle_is_cancelled() {
    let blocking = Blocking::new(1);
    let ran = Arc::new(AtomicUsize::new(0));
    let (begun, begins) = mpsc::channel();
    let (end, ends) = mpsc::channel::<()>();
    let first = blocking.unblock(move || {
        begun.send(()).unwrap();
        ends.recv().is_err()
    });
    begins.recv().unwrap();
    let count = || {
        let ran = ran.clone();
        blocking.unblock(move || ran.fetch_add(1, Relaxed))
    };
    drop(count()); // Cancelled by the drop of its handle.
    let queued = count(); // Cancelled by the drop of the pool.
    let dropped = thread::spawn(move || drop(blocking));
    dropped.join().unwrap();
    drop(end);
    assert!(block_on(first), "one that has begun ends");
    assert!(block_on(queued.cancel()).unwrap_err().is_cancelled());
    assert_eq!(ran.load(Relaxed), 0);
}
