//! Models of pushers and sleepers. A queue is a count of items. A wake-up is lost if a worker stays
//! asleep while an item is left, and no notifier has chosen that worker.
use super::*;
use std::mem::ManuallyDrop;
use sync_shim::{Model, atomic::AtomicUsize, model, model_must_fail, sync::Arc, thread};

struct Pool {
    idle: Idle,
    items: AtomicUsize,
}

impl Pool {
    fn new(workers: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(workers),
            items: AtomicUsize::new(0),
        })
    }

    fn push(&self) -> Option<usize> {
        self.items.fetch_add(1, Relaxed);
        self.idle.notify()
    }

    fn take(&self) -> bool {
        let items = self.items.load(Relaxed);
        items > 0
            && self
                .items
                .compare_exchange(items, items - 1, Relaxed, Relaxed)
                .is_ok()
    }

    /// Returns true if the worker stays asleep.
    fn sleep(&self, worker: usize, searching: bool) -> bool {
        self.idle.sleep(worker, searching);
        if self.items.load(Relaxed) == 0 {
            return true;
        }
        self.idle.wake_self(worker);
        self.take();
        false
    }

    fn bits(&self) -> usize {
        self.idle
            .masks()
            .map(|mask| mask.load(Relaxed).count_ones() as usize)
            .sum()
    }
}

/// Fails if `sleep` has no fence.
#[test]
fn push_racing_sleep_is_seen_or_wakes() {
    model(|| {
        let pool = Pool::new(1);
        let sleeper = {
            let pool = pool.clone();
            thread::spawn(move || pool.sleep(0, false))
        };
        let woken = pool.push();
        let asleep = sleeper.join().unwrap();
        assert_eq!(asleep, woken == Some(0) && pool.items.load(Relaxed) == 1);
        assert_eq!(pool.idle.counts(), (1, 0));
        assert_eq!(pool.bits(), 0);
    });
}

/// Two pushes wake one worker. The second push finds the searcher that the first one has reserved.
///
/// Fails if the chosen worker counts as searching only once it runs.
#[test]
fn burst_of_pushes_wakes_one_worker() {
    Model::new().check(|| {
        let pool = Pool::new(2);
        pool.idle.sleep(0, false);
        pool.idle.sleep(1, false);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.push())
        };
        let woken = [pool.push(), other.join().unwrap()];
        assert_eq!(woken.iter().flatten().count(), 1);
        assert_eq!(pool.idle.counts(), (1, 1));
        assert_eq!(pool.bits(), 1);
    });
}

/// The last searcher leaves with work while another item is pushed. The searcher or the pusher
/// wakes the sleeper.
///
/// Fails if `stop_searching` has no fence.
#[test]
fn last_searcher_rechecks_for_items_that_relied_on_it() {
    model(|| {
        let pool = Pool::new(2);
        pool.items.fetch_add(1, Relaxed);
        pool.idle.sleep(1, false);
        assert!(pool.idle.try_search());
        let pusher = {
            let pool = pool.clone();
            thread::spawn(move || pool.push())
        };
        while !pool.take() {}
        let mut woken = None;
        if pool.idle.stop_searching() && pool.items.load(Relaxed) > 0 {
            woken = pool.idle.notify();
        }
        let woken = [woken, pusher.join().unwrap()];
        assert_eq!(
            woken.iter().flatten().count(),
            1,
            "an item and nobody woken"
        );
        assert_eq!(pool.idle.counts(), (1, 0));
    });
}

/// A sleeper wakes itself while a notifier chooses between that sleeper and another one.
///
/// Fails if `wake_self` keeps its reservation although a notifier has cleared the worker's bit:
/// then a sleeper is not counted.
#[test]
fn wake_self_racing_notify_of_two_keeps_the_counts() {
    model(|| {
        let pool = Pool::new(2);
        pool.idle.sleep(0, false);
        pool.idle.sleep(1, false);
        let notifier = {
            let pool = pool.clone();
            thread::spawn(move || pool.idle.notify())
        };
        let me = pool.idle.wake_self(0);
        let woken = notifier.join().unwrap();
        match (me, woken) {
            (Woken::ByNotifier, Some(0)) | (Woken::BySelf, None) => {
                assert_eq!((pool.idle.counts(), pool.bits()), ((1, 1), 1));
            }
            (Woken::BySelf, Some(1)) => assert_eq!((pool.idle.counts(), pool.bits()), ((2, 0), 0)),
            other => panic!("{other:?}"),
        }
    });
}

/// The only sleeper wakes itself while a notifier makes a reservation. Only one of the two
/// reservations stays in the counts.
///
/// Fails if neither of the two reservations is given back.
#[test]
fn wake_self_racing_notify_of_one_counts_it_once() {
    model(|| {
        let idle = Arc::new(Idle::new(1));
        idle.sleep(0, false);
        let other = idle.clone();
        let notifier = thread::spawn(move || other.notify());
        let me = idle.wake_self(0);
        let woken = notifier.join().unwrap();
        let by = if woken.is_some() {
            Woken::ByNotifier
        } else {
            Woken::BySelf
        };
        assert_eq!(me, by);
        assert_eq!(idle.counts(), (1, 0));
        // The worker's bit is clear, whoever woke it.
        assert!(idle.was_notified(0));
    });
}

/// A worker wakes itself while a notifier holds a reservation. The worker takes a task that never
/// ends, and pushes an item; the push wakes nobody, because of that reservation. The notifier finds
/// no bit and gives the reservation back, while another worker goes to sleep.
///
/// Fails if a notifier that gave its reservation back does not decide again.
#[test]
fn push_that_relied_on_a_returned_reservation_is_seen() {
    Model::new().bound(3).check(|| {
        let pool = Pool::new(2);
        pool.idle.sleep(0, false);
        let notifier = {
            let pool = pool.clone();
            thread::spawn(move || pool.idle.notify())
        };
        let sleeper = {
            let pool = pool.clone();
            thread::spawn(move || pool.sleep(1, false))
        };
        pool.idle.wake_self(0);
        pool.idle.stop_searching();
        let woken = pool.push();
        let woken = [woken, notifier.join().unwrap()];
        let asleep = sleeper.join().unwrap();
        let left = pool.items.load(Relaxed);
        let (searching, sleeping) = pool.idle.counts();
        assert!(
            left == 0 || searching > 0 || sleeping == 0,
            "{left} items left, asleep: {asleep}, woken: {woken:?}"
        );
        assert_eq!(pool.bits(), sleeping);
    });
}

/// Fails if `want_watcher` or `sleep` has no fence.
#[test]
fn want_watcher_racing_sleep_sees_or_is_seen() {
    model(|| {
        let idle = Arc::new(Idle::new(2));
        let other = idle.clone();
        let sleeper = thread::spawn(move || {
            other.sleep(1, false);
            other.is_watcher_wanted()
        });
        idle.want_watcher();
        let seen = idle.counts().1 == 1;
        assert!(sleeper.join().unwrap() || seen);
    });
}

/// A watcher gives up. Another thread sees that there is no watcher, and requests one. The end of
/// the old watch does not clear the request.
///
/// Fails if `give_up_watch` or `is_watched` is Relaxed.
#[test]
fn want_watcher_after_a_given_up_watch_stays_set() {
    model(|| {
        let idle = Arc::new(Idle::new(2));
        idle.want_watcher();
        assert!(idle.try_watch(1));
        let other = idle.clone();
        let watcher = thread::spawn(move || other.give_up_watch());
        let saw_none = !idle.is_watched();
        if saw_none {
            idle.want_watcher();
        }
        watcher.join().unwrap();
        assert_eq!(idle.is_watcher_wanted(), saw_none);
    });
}

/// Fails if `try_watch` uses a store in place of the exchange.
#[test]
fn try_watch_by_two_sleepers_admits_one() {
    model(|| {
        let pool = Pool::new(2);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || pool.idle.try_watch(1))
        };
        let mine = pool.idle.try_watch(0);
        assert!(mine != other.join().unwrap());
        pool.idle.leave_watch();
        assert!(pool.idle.try_watch(0));
    });
}

/// A thread uses an `Idle` that was dropped, and the model fails. All models of a scheduler's end
/// rest on this.
///
/// This test fails if the drop of `Idle` does not retire its atomics (`Retire` of `sync-shim`): the
/// model then passes.
#[test]
fn use_of_a_dropped_idle_is_detected() {
    model_must_fail("mut accesses", || {
        let raw = Box::into_raw(Box::new(Idle::new(1)));
        // SAFETY: the allocation lasts until the end of the model.
        let idle: &'static Idle = unsafe { &*raw };
        let other = thread::spawn(move || idle.counts());
        // SAFETY: unsound on purpose. The other thread reads a field that is not behind a pointer,
        // so the memory stays readable.
        unsafe { raw.drop_in_place() };
        other.join().unwrap();
        // SAFETY: the value was dropped above; this frees its memory only.
        drop(unsafe { Box::from_raw(raw.cast::<ManuallyDrop<Idle>>()) });
    });
}

/// Without the fence of the pusher, or of the sleeper, each of the two may miss the other's write.
#[test]
fn notify_without_its_fence_loses_a_wake() {
    model_must_fail("missed_item && missed_sleeper", || lost_wake(false, true));
}

#[test]
fn sleep_without_its_fence_loses_a_wake() {
    model_must_fail("missed_item && missed_sleeper", || lost_wake(true, false));
}

/// Runs the protocol of rule 3 alone, with or without each fence.
fn lost_wake(pusher_fences: bool, sleeper_fences: bool) {
    let pool = Pool::new(1);
    let pusher = {
        let pool = pool.clone();
        thread::spawn(move || {
            pool.items.store(1, Relaxed);
            if pusher_fences {
                fence(SeqCst);
            }
            sleeping(pool.idle.line.counts.load(Relaxed)) == 0
        })
    };
    pool.idle.line.counts.store(SLEEPING, Relaxed);
    if sleeper_fences {
        fence(SeqCst);
    }
    let missed_item = pool.items.load(Relaxed) == 0;
    let missed_sleeper = pusher.join().unwrap();
    assert!(!(missed_item && missed_sleeper));
}

/// Two sleepers may wake themselves, while a pusher pushes two items: no item is left without a
/// searcher.
///
/// Fails if `notify` has no fence, or if `wake_self` keeps its reservation although a notifier has
/// cleared the worker's bit.
#[test]
fn two_sleepers_racing_two_pushes_leave_no_item() {
    Model::new().bound(2).check(|| {
        let pool = Pool::new(2);
        let sleepers = [0, 1].map(|worker| {
            let pool = pool.clone();
            thread::spawn(move || pool.sleep(worker, false))
        });
        let woken = [pool.push(), pool.push()];
        let asleep = sleepers.map(|sleeper| sleeper.join().unwrap());
        let left = pool.items.load(Relaxed);
        let (searching, _) = pool.idle.counts();
        assert!(
            left == 0 || searching > 0,
            "{left} items left, asleep {asleep:?}, woken {woken:?}"
        );
        assert_eq!(pool.bits(), pool.idle.counts().1);
    });
}

mod workers;
