//! The fork-join pool as its users see it.
use adopt::join_pool::{Pool, join};
use std::{
    hint,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::{
        Mutex,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc,
    },
    thread,
};

fn pool(workers: usize) -> Pool {
    Pool::new(workers).expect("threads")
}

fn sum(numbers: &[u64]) -> u64 {
    match numbers {
        [] => 0,
        [number] => *number,
        _ => {
            let (left, right) = numbers.split_at(numbers.len() / 2);
            let (left, right) = join(|| sum(left), || sum(right));
            left + right
        }
    }
}

fn add(ran: &AtomicUsize) {
    ran.fetch_add(1, Relaxed);
}

fn message_of(f: impl FnOnce()) -> &'static str {
    let panic = catch_unwind(AssertUnwindSafe(f)).expect_err("it panics");
    panic.downcast_ref::<&str>().expect("a message")
}

/// Forks until another thread has set the flag. A push may miss a sleeper; a later push then
/// notifies that sleeper.
fn wait_for(set: &AtomicBool) {
    while !set.load(Acquire) {
        join(thread::yield_now, || ());
    }
}

#[test]
fn nested_joins_sum_a_slice() {
    let numbers: Vec<u64> = (0..10_000).collect();
    for workers in 1..=3 {
        assert_eq!(pool(workers).install(|| sum(&numbers)), 49_995_000);
    }
    assert_eq!(sum(&numbers), 49_995_000, "outside of a pool");
}

#[test]
fn join_with_a_thief_runs_b_on_it() {
    let pool = pool(2);
    let begun = AtomicBool::new(false);
    let (a, b) = pool.install(|| {
        let b = || {
            begun.store(true, Release);
            thread::current().id()
        };
        let a = || {
            wait_for(&begun);
            thread::current().id()
        };
        join(a, b)
    });
    assert_ne!(a, b);
    assert!(pool.stolen() > 0);
}

#[test]
fn waiting_worker_runs_other_jobs() {
    let pool = pool(2);
    let (begun, ran) = (AtomicBool::new(false), AtomicBool::new(false));
    pool.scope(|scope| {
        let last = || ran.store(true, Release);
        // The thief runs `b`, which waits for a job that only the joining worker can run meanwhile.
        let b = || {
            begun.store(true, Release);
            while !ran.load(Acquire) {
                thread::yield_now();
            }
        };
        scope.spawn_fifo(move |_| last());
        join(|| wait_for(&begun), b);
    });
}

#[test]
fn panic_of_a_before_b_begins_is_resumed_without_b() {
    let pool = pool(1);
    let ran = AtomicBool::new(false);
    let a = || -> () { panic!("of a") };
    let both = || _ = join(a, || ran.store(true, Relaxed));
    assert_eq!(message_of(|| pool.install(both)), "of a");
    assert!(!ran.into_inner());
    assert_eq!(pool.install(|| 7), 7);
}

#[test]
fn panic_of_a_with_stolen_b_waits_for_b() {
    let pool = pool(2);
    let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let a = || {
        wait_for(&begun);
        panic!("of a");
    };
    let b = || {
        begun.store(true, Release);
        (0..100).for_each(|_| thread::yield_now());
        ended.store(true, Release);
    };
    assert_eq!(message_of(|| pool.install(|| _ = join(a, b))), "of a");
    assert!(ended.load(Acquire));
}

#[test]
fn panic_of_b_stolen_or_not_is_resumed() {
    let pool = pool(2);
    assert_eq!(
        message_of(|| pool.install(|| _ = join(|| (), || panic!("of b")))),
        "of b"
    );
    let begun = AtomicBool::new(false);
    let b = || {
        begun.store(true, Release);
        panic!("of a stolen b");
    };
    let both = || _ = join(|| wait_for(&begun), b);
    assert_eq!(message_of(|| pool.install(both)), "of a stolen b");
}

#[test]
fn scope_with_nested_spawns_waits_for_all_jobs() {
    let pool = pool(2);
    let ran = AtomicUsize::new(0);
    pool.scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|scope| {
                for _ in 0..10 {
                    scope.spawn_fifo(|scope| {
                        scope.spawn(|_| add(&ran));
                    });
                }
            });
        }
    });
    assert_eq!(ran.into_inner(), 1_000);
}

/// Sometimes a scope's owner sleeps while other workers run the jobs, and sometimes the owner runs
/// the last job.
#[test]
fn scopes_in_quick_succession_count_all_jobs() {
    let pool = pool(3);
    for round in 0..3_000 {
        let (jobs, turns) = (round % 5, round % 7 * 50);
        let ran = AtomicUsize::new(0);
        let work = || {
            (0..turns).for_each(|_| hint::spin_loop());
            add(&ran);
        };
        pool.scope(|scope| {
            for _ in 0..jobs {
                scope.spawn(|scope| {
                    scope.spawn_fifo(|_| work());
                    work();
                    scope.spawn(|_| work());
                });
            }
        });
        assert_eq!(ran.into_inner(), 3 * jobs);
    }
}

#[test]
fn scope_counts_spawns_of_other_threads() {
    let (pool, other) = (pool(2), pool(1));
    let ran = AtomicUsize::new(0);
    pool.scope(|scope| {
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| (0..100).for_each(|_| scope.spawn(|_| add(&ran))));
            }
        });
        other.install(|| scope.spawn(|_| add(&ran)));
    });
    assert_eq!(ran.into_inner(), 401);
}

#[test]
fn worker_waiting_for_another_pool_runs_its_own_jobs() {
    let (a, b) = (pool(1), pool(1));
    assert_eq!(a.install(|| b.install(|| a.install(|| 1))), 1);
    assert_eq!(b.install(|| a.install(|| b.install(|| 2))), 2);
    let ran = AtomicUsize::new(0);
    a.scope(|outer| {
        outer.spawn(|_| add(&ran));
        b.scope(|inner| {
            inner.spawn(|_| a.install(|| add(&ran)));
            inner.spawn_fifo(|inner| {
                outer.spawn(|_| add(&ran));
                a.scope(|_| inner.spawn(|_| add(&ran)));
            });
        });
    });
    assert_eq!(ran.into_inner(), 4);
}

#[test]
fn workers_of_two_pools_installing_on_each_other_end() {
    fn there_and_back(a: &Pool, b: &Pool, left: u32) -> u32 {
        match left {
            0 => 0,
            _ => 1 + b.install(|| there_and_back(b, a, left - 1)),
        }
    }
    let (a, b) = (pool(2), pool(1));
    thread::scope(|threads| {
        for (a, b) in [(&a, &b), (&b, &a)] {
            threads.spawn(move || {
                for _ in 0..100 {
                    assert_eq!(there_and_back(a, b, 8), 8);
                }
            });
        }
    });
}

#[test]
fn panic_on_another_pool_is_resumed_on_the_worker() {
    let (a, b) = (pool(1), pool(1));
    let panics = || a.install(|| panic!("of a"));
    let run = || a.install(|| assert_eq!(message_of(|| b.install(panics)), "of a"));
    run();
}

#[test]
fn scope_of_one_worker_runs_lifo_then_fifo() {
    let pool = pool(1);
    let order = Mutex::new(Vec::new());
    let push = |n| order.lock().unwrap().push(n);
    pool.scope(|scope| {
        for n in 0..3 {
            scope.spawn(move |_| push(n));
            scope.spawn_fifo(move |_| push(10 + n));
        }
    });
    assert_eq!(order.into_inner().unwrap(), [2, 1, 0, 10, 11, 12]);
}

#[test]
fn scope_with_panicking_jobs_resumes_after_all_jobs() {
    let pool = pool(2);
    let ran = AtomicUsize::new(0);
    let run = || {
        pool.scope(|scope| {
            for n in 0..100 {
                let ran = &ran;
                scope.spawn(move |_| {
                    add(ran);
                    assert!(n % 2 == 0, "of a job");
                });
            }
        });
    };
    assert_eq!(message_of(run), "of a job");
    assert_eq!(ran.into_inner(), 100);
}

#[test]
fn dropped_pool_runs_queued_jobs() {
    const JOBS: usize = 1_000;
    let (done, jobs) = mpsc::channel();
    let (gate, opened) = mpsc::channel::<()>();
    let pool = pool(2);
    pool.spawn(move || assert!(opened.recv().is_err()));
    for n in 0..JOBS {
        let done = done.clone();
        pool.spawn(move || done.send(n).unwrap());
    }
    pool.spawn(|| panic!("goes no further"));
    drop((pool, done, gate));
    let mut ran: Vec<_> = jobs.iter().collect();
    ran.sort_unstable();
    assert!(ran.into_iter().eq(0..JOBS));
}

#[test]
fn spawns_of_many_threads_all_run() {
    let pool = pool(2);
    let (done, jobs) = mpsc::channel();
    thread::scope(|threads| {
        for _ in 0..4 {
            let (pool, done) = (&pool, done.clone());
            threads.spawn(move || {
                for n in 0..500 {
                    let done = done.clone();
                    pool.spawn(move || done.send(n).unwrap());
                }
            });
        }
    });
    drop(done);
    assert_eq!(jobs.iter().count(), 2_000);
}

#[test]
fn pool_dropped_by_its_own_job_does_not_hang() {
    let pool = pool(1);
    let (done, ended) = mpsc::channel();
    let (give, taken) = mpsc::channel::<Pool>();
    pool.spawn(move || {
        drop(taken.recv().unwrap());
        done.send(()).unwrap();
    });
    give.send(pool).unwrap();
    ended.recv().unwrap();
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a drop");
    }
}

// Fails if a value is dropped while a panic unwinds: a second panic then ends the process.
#[test]
fn join_resumes_one_panic_though_other_values_panic() {
    let pool = pool(1);
    let unused = Bomb;
    let b_is_dropped = || {
        join(
            || panic!("a"),
            || {
                let _unused = unused;
            },
        );
    };
    assert_eq!(message_of(|| pool.install(b_is_dropped)), "a");

    // A thief runs `b` while `a` waits for that.
    let pool = self::pool(2);
    let began = AtomicBool::new(false);
    let begin = || began.store(true, Release);
    let both_panic = || {
        join(
            || {
                wait_for(&began);
                panic!("a")
            },
            || {
                begin();
                panic_any(Bomb);
            },
        );
    };
    assert_eq!(message_of(|| pool.install(both_panic)), "a");
    began.store(false, Relaxed);
    let b_panics = || {
        let (_a, ()) = join(
            || {
                wait_for(&began);
                Bomb
            },
            || {
                begin();
                panic!("b")
            },
        );
    };
    assert_eq!(message_of(|| pool.install(b_panics)), "b");
}

#[test]
fn scope_resumes_one_panic_though_other_values_panic() {
    let pool = pool(1);
    let both_panic = || {
        pool.scope(|scope| {
            scope.spawn(|_| panic_any(Bomb));
            panic!("the closure");
        });
    };
    assert_eq!(message_of(both_panic), "the closure");
    let job_panics = || {
        let _result = pool.scope(|scope| {
            scope.spawn(|_| panic!("a job"));
            Bomb
        });
    };
    assert_eq!(message_of(job_panics), "a job");
}
