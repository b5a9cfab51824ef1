//! Whole workers, from their search to their sleep or to an item that keeps them, beside a thread that pushes. The last of them sleeps from the start.
//!
//! An item keeps its worker for good, as a long task does. When the threads are done, those who were woken in their sleep go on, one after the other. Only when
//! all are kept may an item be left then.
use super::Pool;
use crate::Backoff;
use alloc::vec::Vec;
use sync_shim::{Model, atomic::Ordering::Relaxed, model, thread};

/// How a worker comes to its sleep.
#[derive(Clone, Copy)]
enum Sleeps {
    AtOnce,
    AfterAWait,
}

impl Pool {
    /// True when an item keeps the worker, false when it sleeps.
    fn work(&self, me: usize, sleeps: Sleeps) -> bool {
        self.work_on(me, sleeps, false)
    }

    fn work_on(&self, me: usize, sleeps: Sleeps, mut searching: bool) -> bool {
        let mut backoff = Backoff::eager();
        loop {
            searching = searching || self.idle.try_search();
            if self.take() {
                // Ordering: Relaxed, the fence in `stop_searching` orders it.
                if searching && self.idle.stop_searching() && self.items.load(Relaxed) > 0 {
                    self.idle.notify();
                }
                return true;
            }
            if let Sleeps::AfterAWait = sleeps
                && self.back_off(&mut backoff, &mut searching)
            {
                continue;
            }
            self.idle.sleep(me, searching);
            // Ordering: Relaxed, the fence in `sleep` orders it.
            if self.items.load(Relaxed) == 0 {
                return false;
            }
            self.idle.wake_self(me);
            searching = true;
        }
    }

    /// Waits a moment, as the only searcher. Whether there is something after all.
    fn back_off(&self, backoff: &mut Backoff, searching: &mut bool) -> bool {
        if !backoff.is_due() || !*searching && !self.idle.try_search() {
            return false;
        }
        *searching = true;
        // Ordering: Relaxed, a hint: what it misses, the look after the sleep's fence finds.
        self.idle.counts().0 == 1 && backoff.wait(|| self.items.load(Relaxed) > 0)
    }

    /// When all threads are done: who was woken works.
    fn go_on(&self, kept: &mut [bool]) {
        for (me, kept) in kept.iter_mut().enumerate() {
            if !*kept && self.idle.was_notified(me) {
                *kept = self.work_on(me, Sleeps::AtOnce, true);
            }
        }
    }

    fn check(&self, kept: &[bool]) {
        // Ordering: Relaxed, the joins order it.
        let left = self.items.load(Relaxed);
        let busy = kept.iter().filter(|kept| **kept).count();
        assert!(
            left == 0 || busy == kept.len(),
            "{left} items left, {kept:?}"
        );
        assert_eq!(self.idle.counts(), (0, kept.len() - busy));
        assert_eq!(self.bits(), kept.len() - busy);
    }
}

/// So many workers and a sleeper, against so many pushes.
fn workers<const AWAKE: usize>(pushes: usize, sleeps: Sleeps) {
    let pool = Pool::new(AWAKE + 1);
    pool.idle.sleep(AWAKE, false);
    let others: [_; AWAKE] = core::array::from_fn(|me| {
        let pool = pool.clone();
        thread::spawn(move || pool.work(me, sleeps))
    });
    for _ in 0..pushes {
        pool.push();
    }
    let mut kept = Vec::from(others.map(|other| other.join().unwrap()));
    kept.push(false);
    // One that is woken may wake one before it.
    for _ in 0..=AWAKE {
        pool.go_on(&mut kept);
    }
    pool.check(&kept);
}

/// Bites: no fence in `notify`; none in `sleep`; a sleep without the last look.
#[test]
fn two_workers_run_one_item() {
    model(|| workers::<1>(1, Sleeps::AtOnce));
}

/// Bites: a search that is left without the look; no fence in `stop_searching`.
#[test]
fn two_workers_run_two_items() {
    Model::new()
        .bound(4)
        .check(|| workers::<1>(2, Sleeps::AtOnce));
}

/// Without a bound, where a fence and what is before it are one step.
///
/// Bites: as above.
#[test]
fn full_two_workers_run_two_items() {
    Model::new()
        .whole_fences()
        .check(|| workers::<1>(2, Sleeps::AtOnce));
}

/// With more preemptions than 4. Without a bound it was not through after 36 minutes.
///
/// Bites: as above.
#[test]
fn full_two_workers_run_two_items_between_the_fences() {
    Model::new()
        .bound(7)
        .check(|| workers::<1>(2, Sleeps::AtOnce));
}

/// Bites: no fence in `notify`; none in `sleep`; a sleep without the last look.
#[test]
fn worker_that_backs_off_runs_one_item() {
    model(|| workers::<1>(1, Sleeps::AfterAWait));
}

/// Bites: a search that is left without the look; no fence in `stop_searching`.
#[test]
fn worker_that_backs_off_runs_two_items() {
    Model::new()
        .bound(3)
        .check(|| workers::<1>(2, Sleeps::AfterAWait));
}

/// Bites: no fence in `sleep`.
#[test]
fn three_workers_run_one_item() {
    Model::new()
        .bound(2)
        .check(|| workers::<2>(1, Sleeps::AtOnce));
}

/// With more preemptions.
///
/// Bites: as above, where a bound of 2 was enough.
#[test]
fn full_three_workers_run_one_item() {
    Model::new()
        .bound(3)
        .check(|| workers::<2>(1, Sleeps::AtOnce));
}
