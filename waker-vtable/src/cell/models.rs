//! Registration against wakes: no wake is lost, and one at a time touches the waker.
use crate::*;
use std::task::Waker;
use sync_shim::{
    Model,
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
    model, model_must_fail,
    sync::Arc,
    thread,
};

/// Counts its wakes.
struct Woken(AtomicUsize);

impl Woken {
    fn new() -> (Arc<Self>, Waker) {
        let this = Arc::new(Self(AtomicUsize::new(0)));
        let waker = from_arc(this.clone());
        (this, waker)
    }

    fn times(&self) -> usize {
        // Ordering: Acquire, from `wake`: as a task's poll is ordered after the wake that it answers.
        self.0.load(Acquire)
    }
}

impl WakeRef for Woken {
    fn wake(&self) {
        // Ordering: Release, to `times`.
        self.0.fetch_add(1, Release);
    }
}

/// The two operations, so that a broken cell can be put in.
trait Cell: Send + Sync + 'static {
    fn new() -> Self;
    fn register(&self, waker: &Waker);
    fn wake(&self);
}

impl Cell for WakerCell {
    fn new() -> Self {
        Self::new()
    }
    fn register(&self, waker: &Waker) {
        self.register(waker);
    }
    fn wake(&self) {
        self.wake();
    }
}

/// A task registers and looks; another thread changes the condition and wakes. The condition itself is relaxed: the cell orders it.
fn register_and_wake<C: Cell>() {
    let shared = Arc::new((C::new(), AtomicBool::new(false)));
    let (woken, waker) = Woken::new();
    let notifier = {
        let shared = shared.clone();
        thread::spawn(move || {
            // Ordering: Relaxed, the cell's to order.
            shared.1.store(true, Relaxed);
            shared.0.wake();
        })
    };
    shared.0.register(&waker);
    // Ordering: Relaxed, as above.
    let seen = shared.1.load(Relaxed);
    notifier.join().unwrap();
    assert!(seen || woken.times() == 1, "the wake was lost");
    assert!(woken.times() <= 1);
}

/// A wake comes before the registration, and its condition is seen, or after, and it wakes.
///
/// Bites: `Release` alone or `Acquire` alone in `take`'s first step; `Relaxed` for the registration's first; leaving a registration without
/// looking for `WOKEN`.
#[test]
fn a_wake_is_seen_or_wakes() {
    model(register_and_wake::<WakerCell>);
}

/// A task that is polled where it is woken: it registers again and looks at both conditions.
struct Inline {
    shared: Arc<(WakerCell, [AtomicBool; 2])>,
    again: Waker,
    seen: Arc<AtomicBool>,
}

impl WakeRef for Inline {
    fn wake(&self) {
        self.shared.0.register(&self.again);
        // Ordering: Relaxed, the cell's to order.
        let seen = self.shared.1.iter().all(|set| set.load(Relaxed));
        // Ordering: Relaxed, read after the join.
        self.seen.store(seen, Relaxed);
    }
}

type TwoConditions = (WakerCell, [AtomicBool; 2]);

fn notify(i: usize, shared: &TwoConditions) {
    // Ordering: Relaxed, the cell's to order.
    shared.1[i].store(true, Relaxed);
    shared.0.wake();
}

/// A cell, the waker of an `Inline` task, what that has seen, and its second waker's count.
fn inline() -> (Arc<TwoConditions>, Waker, Arc<AtomicBool>, Arc<Woken>) {
    let shared = Arc::new((
        WakerCell::new(),
        [AtomicBool::new(false), AtomicBool::new(false)],
    ));
    let (woken, again) = Woken::new();
    let seen = Arc::new(AtomicBool::new(false));
    let waker = from_arc(Arc::new(Inline {
        shared: shared.clone(),
        again,
        seen: seen.clone(),
    }));
    (shared, waker, seen, woken)
}

/// Two notifiers, a registered task: in its poll after the first wake it sees both conditions, or it is woken again.
///
/// Bites: a `Release` store in place of `take`'s last step.
#[test]
fn a_wake_that_finds_another_under_way_is_served_by_it() {
    model(|| {
        let (shared, waker, seen, woken) = inline();
        shared.0.register(&waker);
        drop(waker);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || notify(0, &shared))
        };
        notify(1, &shared);
        other.join().unwrap();
        // Ordering: Relaxed, ordered by the join.
        let seen = seen.load(Relaxed);
        assert!(seen || woken.times() == 1, "the second wake was lost");
    });
}

/// Two notifiers during a registration: what it finds, and the poll that it brings about, serve both.
///
/// Bites: a `Release` store in place of the last step of a registration that was woken.
#[test]
fn a_registration_that_was_woken_serves_all_who_woke() {
    // Three threads that share a task: too large without a bound.
    Model::new().bound(2).check(|| {
        let (shared, waker, seen, woken) = inline();
        let notifiers = [0, 1].map(|i| {
            let shared = shared.clone();
            thread::spawn(move || notify(i, &shared))
        });
        shared.0.register(&waker);
        drop(waker);
        // Ordering: Relaxed, the cell's to order.
        let first = shared.1.iter().all(|set| set.load(Relaxed));
        for notifier in notifiers {
            notifier.join().unwrap();
        }
        // Empties the cell, whose waker has a share in it.
        drop(shared.0.take());
        // Ordering: Relaxed, ordered by the joins.
        let seen = first || seen.load(Relaxed);
        assert!(seen || woken.times() == 1, "a wake was lost");
    });
}

/// Two registrations at once, and a wake after them: somebody is woken, and the waker is touched by one at a time.
///
/// Bites: let a registration in where `BUSY` is set.
#[test]
fn of_two_registrations_at_once_one_holds_the_cell_and_a_later_wake_reaches_a_task() {
    model(|| {
        let cell = Arc::new(WakerCell::new());
        let (first, second) = (Woken::new(), Woken::new());
        let other = {
            let (cell, waker) = (cell.clone(), second.1);
            thread::spawn(move || cell.register(&waker))
        };
        cell.register(&first.1);
        other.join().unwrap();
        cell.wake();
        assert!(first.0.times() + second.0.times() >= 1);
    });
}

/// A registration that finds itself woken empties the cell, and another thread's registration may follow at once.
///
/// Bites: `Acquire` for the last step of a registration that was woken.
#[test]
fn a_registration_follows_one_that_was_woken() {
    model(|| {
        let cell = Arc::new(WakerCell::new());
        let (first, second) = (Woken::new(), Woken::new());
        let other = {
            let (cell, waker) = (cell.clone(), second.1);
            thread::spawn(move || {
                cell.wake();
                cell.register(&waker);
            })
        };
        cell.register(&first.1);
        other.join().unwrap();
        cell.wake();
        assert!(first.0.times() + second.0.times() >= 1);
    });
}

/// Registers anew while a wake is under way: the new waker is woken by one or the other, or stays for the next.
///
/// Bites: let a registration in at `FULL | WOKEN`; `Relaxed` for `take`'s first step.
#[test]
fn a_registration_during_a_take_is_not_lost() {
    model(|| {
        let shared = Arc::new((WakerCell::new(), AtomicBool::new(false)));
        let (old, new) = (Woken::new(), Woken::new());
        shared.0.register(&old.1);
        let notifier = {
            let shared = shared.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the cell's to order.
                shared.1.store(true, Relaxed);
                shared.0.wake();
            })
        };
        shared.0.register(&new.1);
        // Ordering: Relaxed, as above.
        let seen = shared.1.load(Relaxed);
        notifier.join().unwrap();
        assert!(seen || new.0.times() == 1, "the wake was lost");
    });
}

/// Of two takes one gets the waker.
///
/// Bites: let a `take` have the waker whenever it finds `FULL`.
#[test]
fn of_two_takes_one_gets_the_waker() {
    model(|| {
        let cell = Arc::new(WakerCell::new());
        let (_woken, waker) = Woken::new();
        cell.register(&waker);
        let other = {
            let cell = cell.clone();
            thread::spawn(move || cell.take().is_some())
        };
        let mine = cell.take().is_some();
        let others = other.join().unwrap();
        assert!(mine ^ others);
    });
}

/// A cell whose wake looks before it writes, to save the read-modify-write when nobody is registered.
struct LooksFirst {
    full: AtomicBool,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: of the cell, only whoever takes `full` away touches the waker.
unsafe impl Send for LooksFirst {}

// SAFETY: as above.
unsafe impl Sync for LooksFirst {}

impl Cell for LooksFirst {
    fn new() -> Self {
        Self {
            full: AtomicBool::new(false),
            waker: UnsafeCell::new(None),
        }
    }

    fn register(&self, waker: &Waker) {
        let new = Some(waker.clone());
        self.waker.with_mut(|slot| {
            // SAFETY: the scenario registers once, while it is not full.
            unsafe { *slot = new };
        });
        // Ordering: AcqRel, which does not help: the wake's load takes no part in it.
        self.full.swap(true, AcqRel);
    }

    fn wake(&self) {
        // Ordering: Acquire, which may still see the past.
        if !self.full.load(Acquire) {
            return;
        }
        // Ordering: AcqRel, with `register`'s.
        if self.full.swap(false, AcqRel) {
            // SAFETY: it was full, and this took that away.
            let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
            waker.unwrap().wake();
        }
    }
}

#[test]
fn a_wake_that_looks_before_it_writes_is_lost() {
    model_must_fail("the wake was lost", register_and_wake::<LooksFirst>);
}
