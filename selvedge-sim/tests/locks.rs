//! The locks of std between simulated threads.
#![cfg(all(
    selvedge_sim,
    target_os = "linux",
    target_env = "gnu",
    target_pointer_width = "64"
))]

use selvedge_sim::{Failure, Sim, explore, thread};
use std::{
    hint,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc,
    },
    time::{Duration, Instant},
};

const MS: Duration = Duration::from_millis(1);

#[test]
fn lock_of_std_held_during_a_sleep_admits_one_thread() {
    let explored = explore(0..100, |sim: Sim| {
        sim.run_main(|| {
            let lock = Arc::new(Mutex::new(0));
            let threads = (0..3).map(|_| {
                let lock = lock.clone();
                thread::spawn(move || {
                    let mut held = lock.lock().unwrap();
                    let before = *held;
                    thread::sleep(MS);
                    *held = before + 1;
                })
            });
            for thread in threads.collect::<Vec<_>>() {
                thread.join().unwrap();
            }
            assert_eq!(*lock.lock().unwrap(), 3);
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

/// Its count is 2 then, as the word of a lock that a thread of the system may hold.
#[test]
fn condvar_notified_twice_before_a_wait_is_no_lock() {
    let begun = Instant::now();
    for seed in 0..50 {
        let run = Sim::new(seed).run_main(|| {
            let pair = Arc::new((Mutex::new(false), Condvar::new()));
            let (lock, condvar) = &*pair;
            condvar.notify_one();
            condvar.notify_one();
            let other = pair.clone();
            let notifier = thread::spawn(move || {
                thread::sleep(20 * MS);
                *other.0.lock().unwrap() = true;
                other.1.notify_one();
            });
            drop(condvar.wait_while(lock.lock().unwrap(), |done| !*done));
            notifier.join().unwrap();
        });
        run.unwrap();
    }
    // Each look at a lock takes 100 ms of the system's time.
    assert!(begun.elapsed() < Duration::from_secs(2));
}

#[test]
fn condvar_of_std_waits_for_a_notification_or_the_time() {
    let run = Sim::new(1).run_main(|| {
        let pair = Arc::new((Mutex::new(false), Condvar::new()));
        let begun = Instant::now();
        let (lock, condvar) = &*pair;
        let (held, waited) = condvar
            .wait_timeout_while(lock.lock().unwrap(), 3_600_000 * MS, |done| !*done)
            .unwrap();
        assert!(waited.timed_out());
        drop(held);
        assert!((3_600_000 * MS..3_600_010 * MS).contains(&begun.elapsed()));

        let other = pair.clone();
        let notifier = thread::spawn(move || {
            thread::sleep(20 * MS);
            *other.0.lock().unwrap() = true;
            other.1.notify_all();
        });
        let begun = Instant::now();
        let held = condvar.wait_while(lock.lock().unwrap(), |done| !*done);
        assert!(*held.unwrap());
        assert!((20 * MS..21 * MS).contains(&begun.elapsed()));
        notifier.join().unwrap();
    });
    run.unwrap();
}

#[test]
fn threads_of_std_locks_in_two_orders_deadlock() {
    let run = Sim::new(1).run_main(|| {
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let threads = [(0, 1), (1, 0)].map(|(first, second)| {
            let locks = locks.clone();
            thread::spawn(move || {
                let _held = locks[first].lock();
                thread::sleep(MS);
                drop(locks[second].lock());
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
    });
    let Some(Failure::Deadlock(threads)) = run.failure() else {
        panic!("{run}");
    };
    let at_locks = threads
        .iter()
        .filter(|thread| thread.contains("lock of std"));
    assert_eq!(at_locks.count(), 2, "{threads:?}");
}

#[test]
fn lock_that_a_thread_of_the_system_frees_is_taken() {
    static LOCK: Mutex<()> = Mutex::new(());
    static IS_FREE: AtomicBool = AtomicBool::new(false);
    let (is_held, held) = mpsc::channel();
    let (free, to_free) = mpsc::channel();
    let holder = std::thread::spawn(move || {
        let guard = LOCK.lock().unwrap();
        is_held.send(()).unwrap();
        to_free.recv().unwrap();
        drop(guard);
        IS_FREE.store(true, SeqCst);
    });
    held.recv().unwrap();
    let run = Sim::new(1).run_main(move || {
        let waiter = thread::spawn(|| drop(LOCK.lock()));
        // The waiter waits before the time passes.
        thread::sleep(MS);
        free.send(()).unwrap();
        while !IS_FREE.load(SeqCst) {
            hint::spin_loop();
        }
        waiter.join().unwrap();
    });
    run.unwrap();
    holder.join().unwrap();
}
