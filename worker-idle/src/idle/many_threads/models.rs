//! Models of four workers that sleep and are woken, and two threads that push: more threads than
//! loom can check.
//!
//! In each round, an item keeps the worker that took it until each worker has taken one. So each
//! round needs all workers: if one worker stays asleep, the round never ends.
use super::super::Idle;
use crate::park::{Park, ThreadPark};
use alloc::vec::Vec;
use core::{mem, task::Waker};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    model,
    sync::{Arc, Condvar, Mutex},
    thread,
};

const WORKERS: usize = 4;
const ROUNDS: usize = 3;
const PUSHERS: usize = 2;

struct Pool {
    idle: Idle,
    items: AtomicUsize,
    wakers: Vec<Waker>,
    taken: Mutex<usize>,
    round_is_full: Condvar,
}

impl Pool {
    fn push(&self) {
        // Ordering: Relaxed, the fence in `notify` orders it.
        self.items.fetch_add(1, Relaxed);
        self.notify();
    }

    fn notify(&self) {
        if let Some(worker) = self.idle.notify() {
            self.wakers[worker].wake_by_ref();
        }
    }

    fn has_items(&self) -> bool {
        // Ordering: Relaxed, the fences in `sleep` and `stop_searching` order it.
        self.items.load(Relaxed) > 0
    }

    fn take(&self) -> bool {
        // Ordering: Relaxed, a count.
        let less = |items: usize| items.checked_sub(1);
        self.items.fetch_update(Relaxed, Relaxed, less).is_ok()
    }

    fn run_item(&self) {
        let mut taken = self.taken.lock();
        let until = (*taken / WORKERS + 1) * WORKERS;
        *taken += 1;
        if *taken == until {
            self.round_is_full.notify_all();
        }
        while *taken < until {
            taken = self.round_is_full.wait(taken);
        }
    }

    fn work(&self, me: usize, park: &mut ThreadPark) {
        let (mut rounds, mut searching) = (0, false);
        while rounds < ROUNDS {
            searching = searching || self.idle.try_search();
            if self.take() {
                let last = mem::take(&mut searching) && self.idle.stop_searching();
                if last && self.has_items() {
                    self.notify();
                }
                self.run_item();
                rounds += 1;
                continue;
            }
            self.idle.sleep(me, searching);
            searching = true;
            while !self.idle.was_notified(me) {
                if self.has_items() {
                    self.idle.wake_self(me);
                    break;
                }
                park.park();
            }
        }
    }
}

/// Each item is run by a worker, and the counts end as they began.
///
/// Fails if `stop_searching` reports no searcher as the last one, or if `wake_self` keeps its
/// reservation although a notifier has cleared the worker's bit.
#[test]
fn four_workers_run_the_items_of_two_pushers() {
    model(|| {
        let parks = [(); WORKERS].map(|()| ThreadPark::new());
        let pool = Arc::new(Pool {
            idle: Idle::new(WORKERS),
            items: AtomicUsize::new(0),
            wakers: parks.iter().map(|park| park.waker()).collect(),
            taken: Mutex::new(0),
            round_is_full: Condvar::new(),
        });
        let workers: Vec<_> = (parks.into_iter().enumerate())
            .map(|(me, mut park)| {
                let pool = pool.clone();
                thread::spawn(move || pool.work(me, &mut park))
            })
            .collect();
        let pushers = [(); PUSHERS].map(|()| {
            let pool = pool.clone();
            thread::spawn(move || (0..WORKERS * ROUNDS / PUSHERS).for_each(|_| pool.push()))
        });
        for thread in workers.into_iter().chain(pushers) {
            thread.join().unwrap();
        }
        assert!(!pool.has_items());
        assert_eq!(*pool.taken.lock(), WORKERS * ROUNDS);
        assert_eq!(pool.idle.counts(), (0, 0));
        // Ordering: Relaxed, after the joins.
        assert!(pool.idle.masks().all(|mask| mask.load(Relaxed) == 0));
    });
}
