//! Models of whole workers, which search, take an item or go to sleep, while a thread pushes. The
//! last worker sleeps from the start.
//!
//! An item *keeps* the worker that takes it: the worker takes no other item, as if this one were a
//! task without end. When the threads have ended, the model runs the workers that a notifier has
//! woken, one after another. After that an item may be left only if all workers are kept.
use super::Pool;
use crate::Backoff;
use alloc::vec::Vec;
use sync_shim::{Model, atomic::Ordering::Relaxed, model, thread};

/// The way in which a worker goes to sleep.
#[derive(Clone, Copy)]
enum Sleeps {
    AtOnce,
    AfterAWait,
}

impl Pool {
    /// Runs a worker. Returns true if an item keeps it, false if it sleeps.
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
            let waits = matches!(sleeps, Sleeps::AfterAWait);
            if waits && self.back_off(&mut backoff, &mut searching) {
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

    /// If a wait is due, makes the worker a searcher if it can. The only searcher then waits for an
    /// item. Returns whether the wait found an item, and false if there was no wait.
    fn back_off(&self, backoff: &mut Backoff, searching: &mut bool) -> bool {
        if !backoff.is_due() || !*searching && !self.idle.try_search() {
            return false;
        }
        *searching = true;
        // Ordering: Relaxed, because this look is a hint. The look after the fence in `sleep` finds
        // an item that this one misses.
        self.idle.counts().0 == 1 && backoff.wait(|| self.items.load(Relaxed) > 0)
    }

    /// Runs the workers that were woken, after all threads have ended.
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

/// Runs `AWAKE` workers and a sleeper, which race `pushes` pushes.
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
    // A worker that is woken may wake one with a lower index.
    for _ in 0..=AWAKE {
        pool.go_on(&mut kept);
    }
    pool.check(&kept);
}

/// Fails if `notify` or `sleep` has no fence, or if a worker sleeps without the last look.
#[test]
fn two_workers_run_one_item() {
    model(|| workers::<1>(1, Sleeps::AtOnce));
}

/// Fails if the last searcher leaves without looking once more, or if `stop_searching` has no
/// fence.
#[test]
fn two_workers_run_two_items() {
    Model::new()
        .bound(4)
        .check(|| workers::<1>(2, Sleeps::AtOnce));
}

/// The same model without a bound. So that it ends, no thread is preempted between a write and the
/// fence after it.
///
/// Fails like the model above.
#[test]
fn full_two_workers_run_two_items() {
    Model::new()
        .whole_fences()
        .check(|| workers::<1>(2, Sleeps::AtOnce));
}

/// The same model with up to 7 preemptions, also between a write and its fence. Without a bound it
/// did not end in 36 minutes.
///
/// Fails like the model above.
#[test]
fn full_two_workers_run_two_items_between_the_fences() {
    Model::new()
        .bound(7)
        .check(|| workers::<1>(2, Sleeps::AtOnce));
}

/// Fails if `notify` or `sleep` has no fence, or if a worker sleeps without the last look.
#[test]
fn worker_that_backs_off_runs_one_item() {
    model(|| workers::<1>(1, Sleeps::AfterAWait));
}

/// Fails if the last searcher leaves without looking once more, or if `stop_searching` has no
/// fence.
#[test]
fn worker_that_backs_off_runs_two_items() {
    Model::new()
        .bound(3)
        .check(|| workers::<1>(2, Sleeps::AfterAWait));
}

/// Fails if `sleep` has no fence.
#[test]
fn three_workers_run_one_item() {
    Model::new()
        .bound(2)
        .check(|| workers::<2>(1, Sleeps::AtOnce));
}

/// The same model with more preemptions.
///
/// Fails like the model above, which finds the same mistakes with a bound of 2.
#[test]
fn full_three_workers_run_one_item() {
    Model::new()
        .bound(3)
        .check(|| workers::<2>(1, Sleeps::AtOnce));
}
