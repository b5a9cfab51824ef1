//! Models of a registration against wakes: no wake is lost, and one thread at a time touches the
//! waker.
//!
//! "Fails if" names the changes to the code that make a model fail.
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

/// A target that counts its wakes.
struct Woken(AtomicUsize);

impl Woken {
    fn new() -> (Arc<Self>, Waker) {
        let this = Arc::new(Self(AtomicUsize::new(0)));
        let waker = from_arc(this.clone());
        (this, waker)
    }

    fn times(&self) -> usize {
        // Ordering: Acquire pairs with `wake`, as a task's poll is ordered after the wake that
        // caused it.
        self.0.load(Acquire)
    }
}

impl WakeRef for Woken {
    fn wake(&self) {
        // Ordering: Release pairs with `times`.
        self.0.fetch_add(1, Release);
    }
}

/// The two operations of a cell, as a trait, so that a scenario can also run on a broken cell.
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

/// A task registers and checks its condition; another thread changes the condition and wakes. The
/// condition itself is relaxed: the cell must order it.
fn register_and_wake<C: Cell>() {
    let shared = Arc::new((C::new(), AtomicBool::new(false)));
    let (woken, waker) = Woken::new();
    let notifier = {
        let shared = shared.clone();
        thread::spawn(move || {
            // Ordering: Relaxed, the cell must order the condition.
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

/// A wake comes before the registration, which then sees the condition; or it comes after the
/// registration, and wakes the task.
///
/// Fails if the first step of `take` has `Release` or `Acquire` alone, if the first step of a
/// registration is `Relaxed`, or if a registration leaves without a check of `WOKEN`.
#[test]
fn wake_beside_a_registration_is_not_lost() {
    model(register_and_wake::<WakerCell>);
}

/// A task that is polled inside its wake: it registers again and checks both conditions.
struct Inline {
    shared: Arc<(WakerCell, [AtomicBool; 2])>,
    again: Waker,
    seen: Arc<AtomicBool>,
}

impl WakeRef for Inline {
    fn wake(&self) {
        self.shared.0.register(&self.again);
        // Ordering: Relaxed, the cell must order the condition.
        let seen = self.shared.1.iter().all(|set| set.load(Relaxed));
        // Ordering: Relaxed, the value is read after the join.
        self.seen.store(seen, Relaxed);
    }
}

type TwoConditions = (WakerCell, [AtomicBool; 2]);

fn notify(i: usize, shared: &TwoConditions) {
    // Ordering: Relaxed, the cell must order the condition.
    shared.1[i].store(true, Relaxed);
    shared.0.wake();
}

/// Creates a cell, the waker of an `Inline` task, the flag that the task has seen both conditions,
/// and the count of its second waker.
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

/// Two notifiers wake a registered task: in its poll after the first wake the task sees both
/// conditions, or it is woken again.
///
/// Fails if the last step of `take` is a `Release` store.
#[test]
fn wake_beside_another_wake_is_not_lost() {
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

/// Two notifiers wake during a registration: the task sees both conditions, in the registration or
/// in the poll that follows, or it is woken again.
///
/// Fails if the last step of a registration that was woken is a `Release` store.
#[test]
fn registration_beside_two_wakes_loses_neither() {
    // Without a bound, a model of three threads that share a task is too large.
    Model::new().bound(2).check(|| {
        let (shared, waker, seen, woken) = inline();
        let notifiers = [0, 1].map(|i| {
            let shared = shared.clone();
            thread::spawn(move || notify(i, &shared))
        });
        shared.0.register(&waker);
        drop(waker);
        // Ordering: Relaxed, the cell must order the condition.
        let first = shared.1.iter().all(|set| set.load(Relaxed));
        for notifier in notifiers {
            notifier.join().unwrap();
        }
        // Empties the cell, since its waker refers to the cell.
        drop(shared.0.take());
        // Ordering: Relaxed, ordered by the joins.
        let seen = first || seen.load(Relaxed);
        assert!(seen || woken.times() == 1, "a wake was lost");
    });
}

/// Two threads register at once, and a wake follows. At least one of the two wakers is woken, and
/// one thread at a time touches the cell's waker.
///
/// Fails if a registration enters although `BUSY` is set.
#[test]
fn wake_after_two_registrations_at_once_reaches_a_task() {
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

/// A registration that was woken meanwhile empties the cell, and another thread's registration may
/// follow at once.
///
/// Fails if the last step of a registration that was woken has `Acquire` alone.
#[test]
fn registration_after_a_woken_one_is_ordered_after_it() {
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

/// A task registers a new waker during a wake: the wake or the registration wakes the new waker, or
/// the task sees the condition.
///
/// Fails if a registration enters at `FULL | WOKEN`, or if the first step of `take` is `Relaxed`.
#[test]
fn registration_during_a_take_is_not_lost() {
    model(|| {
        let shared = Arc::new((WakerCell::new(), AtomicBool::new(false)));
        let (old, new) = (Woken::new(), Woken::new());
        shared.0.register(&old.1);
        let notifier = {
            let shared = shared.clone();
            thread::spawn(move || {
                // Ordering: Relaxed, the cell must order the condition.
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

/// Two threads take the waker at once: one of them gets it.
///
/// Fails if `take` takes the waker whenever it finds `FULL`.
#[test]
fn two_takes_at_once_return_the_waker_once() {
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

/// A broken cell, whose wake loads before it writes, to save the read-modify-write when no waker is
/// registered.
struct LooksFirst {
    full: AtomicBool,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: only the thread that sets `full` to false touches the waker.
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
            // SAFETY: the scenario registers once, while the cell is not full.
            unsafe { *slot = new };
        });
        // Ordering: AcqRel, which does not help: the load in `wake` may still read an older value.
        self.full.swap(true, AcqRel);
    }

    fn wake(&self) {
        // Ordering: Acquire, which may still read an old value.
        if !self.full.load(Acquire) {
            return;
        }
        // Ordering: AcqRel pairs with the swap of `register`.
        if self.full.swap(false, AcqRel) {
            // SAFETY: the cell was full, and this thread set it to not full.
            let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
            waker.unwrap().wake();
        }
    }
}

#[test]
fn wake_that_loads_before_it_writes_is_lost() {
    model_must_fail("the wake was lost", register_and_wake::<LooksFirst>);
}
