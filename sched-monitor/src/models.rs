//! Models of retakes that race exits, and of the monitor's sleep, which races a worker that becomes
//! busy.
use crate::{Doorbell, Handoff};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    cell::UnsafeCell,
    model, model_must_fail,
    sync::Arc,
    thread,
};

/// A worker's core. The thread that owns the core writes to it. The model fails if two threads
/// write to it at the same time.
struct Core(UnsafeCell<u32>);

// SAFETY: the models check that one thread at a time uses the core.
unsafe impl Send for Core {}

impl Core {
    fn boxed() -> Box<Self> {
        Box::new(Self(UnsafeCell::new(0)))
    }

    fn use_it(&self) -> u32 {
        self.0.with_mut(|value| {
            // SAFETY: the model fails if another thread uses the core now.
            unsafe {
                *value += 1;
            }
            // SAFETY: as above.
            unsafe { *value }
        })
    }
}

/// Counts the threads that have taken the core.
#[derive(Default)]
struct Owners(AtomicUsize);

impl Owners {
    fn count(&self, core: Option<Box<Core>>) -> bool {
        let Some(core) = core else { return false };
        core.use_it();
        // Ordering: Relaxed, as the joins of the threads order this before the load.
        self.0.fetch_add(1, Relaxed);
        true
    }

    fn assert_one(&self) {
        // Ordering: Relaxed, as the threads were joined before.
        assert_eq!(self.0.load(Relaxed), 1, "one owner");
    }
}

/// A monitor retakes the core while the caller's call ends: exactly one of the two threads gets the
/// core.
///
/// Fails if `enter` is Relaxed. Two broken variants are below.
#[test]
fn retake_racing_an_exit_has_one_owner() {
    model(|| {
        let (cell, owners) = (Arc::new(Handoff::new()), Arc::new(Owners::default()));
        let core = Core::boxed();
        core.use_it();
        cell.enter(core);
        let monitor = {
            let (cell, owners) = (cell.clone(), owners.clone());
            thread::spawn(move || owners.count(cell.retake()))
        };
        let kept = owners.count(cell.exit());
        let retaken = monitor.join().unwrap();
        assert!(kept != retaken);
        owners.assert_one();
    });
}

/// A monitor retakes before, during or after a call, and a second call follows.
///
/// Fails if an exit leaves the address in the word.
#[test]
fn retake_racing_two_calls_has_one_owner() {
    model(|| {
        let (cell, owners) = (Arc::new(Handoff::new()), Arc::new(Owners::default()));
        let monitor = {
            let (cell, owners) = (cell.clone(), owners.clone());
            thread::spawn(move || owners.count(cell.retake()))
        };
        let mut core = Some(Core::boxed());
        for _call in 0..2 {
            if let Some(owned) = core.take() {
                owned.use_it();
                cell.enter(owned);
                core = cell.exit();
            }
        }
        let retaken = monitor.join().unwrap();
        let kept = owners.count(core);
        assert!(kept != retaken, "kept {kept}, retaken {retaken}");
        owners.assert_one();
    });
}

/// The monitor, and a thread that shuts the runtime down, both retake while the call ends.
///
/// The broken variants below would fail this model too.
#[test]
fn retakes_of_two_threads_racing_an_exit_have_one_owner() {
    model(|| {
        let (cell, owners) = (Arc::new(Handoff::new()), Arc::new(Owners::default()));
        cell.enter(Core::boxed());
        let others = [(); 2].map(|()| {
            let (cell, owners) = (cell.clone(), owners.clone());
            thread::spawn(move || owners.count(cell.retake()))
        });
        owners.count(cell.exit());
        for other in others {
            other.join().unwrap();
        }
        owners.assert_one();
    });
}

/// A thread's exit takes a core that another thread has put into the cell.
///
/// Fails if the exchange of `exit` is Relaxed.
#[test]
fn exit_with_the_core_of_another_sees_its_uses() {
    model(|| {
        let cell = Arc::new(Handoff::new());
        let other = {
            let cell = cell.clone();
            thread::spawn(move || {
                let core = Core::boxed();
                core.use_it();
                cell.enter(core);
            })
        };
        if let Some(core) = cell.exit() {
            core.use_it();
        }
        other.join().unwrap();
    });
}

/// A thread makes a call within a call, while a monitor retakes. The inner call has no core, so it
/// does not enter.
#[test]
fn nested_call_racing_a_retake_leaves_one_owner() {
    /// Makes a call. Only a thread that has the core enters.
    fn call(
        cell: &Handoff<Core>,
        core: &mut Option<Box<Core>>,
        f: impl FnOnce(&mut Option<Box<Core>>),
    ) {
        let Some(owned) = core.take() else {
            return f(core);
        };
        cell.enter(owned);
        f(core);
        *core = cell.exit();
    }

    model(|| {
        let (cell, owners) = (Arc::new(Handoff::new()), Arc::new(Owners::default()));
        let monitor = {
            let (cell, owners) = (cell.clone(), owners.clone());
            thread::spawn(move || owners.count(cell.retake()))
        };
        let mut core = Some(Core::boxed());
        call(&cell, &mut core, |core| {
            call(&cell, core, |core| assert!(core.is_none()));
        });
        let retaken = monitor.join().unwrap();
        assert!(owners.count(core.take()) != retaken);
        owners.assert_one();
    });
}

/// A cell with a bug: a taker reads the word and clears it in two steps.
#[test]
fn exit_in_two_steps_has_two_owners() {
    model_must_fail("one owner", || {
        let (word, owners) = (Arc::new(AtomicUsize::new(1)), Arc::new(AtomicUsize::new(0)));
        let take = |word: &AtomicUsize, owners: &AtomicUsize| {
            // Ordering: Acquire, as in the real cell. The bug is that this load is no exchange.
            if word.load(Acquire) != 0 {
                word.store(0, Relaxed);
                owners.fetch_add(1, Relaxed);
            }
        };
        let monitor = {
            let (word, owners) = (word.clone(), owners.clone());
            thread::spawn(move || take(&word, &owners))
        };
        take(&word, &owners);
        monitor.join().unwrap();
        assert_eq!(owners.load(Relaxed), 1, "one owner");
    });
}

/// A cell with a bug: the entry publishes the core's address, but not its content.
#[test]
fn entry_without_release_races_the_new_owner() {
    model_must_fail("Causality violation", || {
        let core = Arc::new(Core(UnsafeCell::new(0)));
        let word = Arc::new(AtomicUsize::new(0));
        let monitor = {
            let (word, core) = (word.clone(), core.clone());
            thread::spawn(move || {
                // Ordering: AcqRel, more than the Acquire of the real cell: the bug is not here.
                if word.swap(0, AcqRel) != 0 {
                    core.use_it();
                }
            })
        };
        core.use_it();
        // Ordering: Relaxed is the bug.
        word.store(1, Relaxed);
        monitor.join().unwrap();
    });
}

// SAFETY: the models check that one thread at a time uses the core.
unsafe impl Sync for Core {}

/// A worker becomes busy and rings, while the monitor goes to sleep. The monitor does not stay
/// asleep.
///
/// Fails if the monitor waits without checking `rung`. The broken variants are below.
#[test]
fn ring_racing_the_sleep_wakes_the_monitor() {
    model(|| {
        let (bell, busy) = (Arc::new(Doorbell::new()), Arc::new(AtomicBool::new(false)));
        let worker = {
            let (bell, busy) = (bell.clone(), busy.clone());
            thread::spawn(move || {
                // Ordering: Relaxed, as the fence in `ring` orders this store.
                busy.store(true, Relaxed);
                bell.ring();
            })
        };
        // The model hangs if this waits forever.
        bell.sleep(|| !busy.load(Relaxed));
        worker.join().unwrap();
    });
}

/// A stop that races the monitor on its way to sleep ends the sleep.
///
/// Fails if the monitor waits without checking `stopped`.
#[test]
fn stop_racing_the_sleep_ends_it() {
    model(|| {
        let bell = Arc::new(Doorbell::new());
        let stopper = {
            let bell = bell.clone();
            thread::spawn(move || bell.stop())
        };
        bell.sleep(|| true);
        stopper.join().unwrap();
        assert!(bell.is_stopped());
    });
}

/// Runs the protocol of the sleep. `recheck` and `fences` say which steps the two threads make.
/// With both steps, at least one of the threads sees the other's store.
fn sleeps(recheck: bool, fences: bool) {
    let asleep = Arc::new(AtomicBool::new(false));
    let busy = Arc::new(AtomicBool::new(false));
    let worker = {
        let (asleep, busy) = (asleep.clone(), busy.clone());
        thread::spawn(move || {
            busy.store(true, Relaxed);
            if fences {
                // Ordering: SeqCst pairs with the fence below.
                fence(SeqCst);
            }
            asleep.load(Relaxed)
        })
    };
    asleep.store(true, Relaxed);
    if fences {
        // Ordering: SeqCst pairs with the fence above.
        fence(SeqCst);
    }
    let sees_busy = recheck && busy.load(Relaxed);
    let rings = worker.join().unwrap();
    assert!(sees_busy || rings, "the monitor sleeps on");
}

#[test]
fn sleep_with_both_steps_is_seen() {
    model(|| sleeps(true, true));
}

#[test]
fn sleep_without_a_recheck_is_missed() {
    model_must_fail("sleeps on", || sleeps(false, true));
}

#[test]
fn sleep_without_fences_is_missed() {
    model_must_fail("sleeps on", || sleeps(true, false));
}

/// The monitor observes a run and requests its end, while the worker begins the next run. The
/// request reaches the observed run or a later one. The worker sees the request between two polls
/// at the latest, unless it has opened a slice since the request.
///
/// Fails if the slice is opened after the run's number is published.
#[test]
fn request_racing_an_opening_reaches_the_slice() {
    model(|| {
        let slice = Arc::new(coop_budget::Preempt::new());
        let run = Arc::new(AtomicUsize::new(0));
        let requested = Arc::new(AtomicUsize::new(usize::MAX));
        let monitor = {
            let (slice, run, requested) = (slice.clone(), run.clone(), requested.clone());
            thread::spawn(move || {
                // Ordering: Acquire pairs with the worker's publication.
                let seen = run.load(Acquire);
                slice.request();
                // Ordering: Release pairs with the worker's load.
                requested.store(seen, Release);
            })
        };
        for next in 1..=2 {
            slice.open_slice();
            // Ordering: Release pairs with the monitor's load.
            run.store(next, Release);
            // Ordering: Acquire pairs with the monitor's publication.
            let known = requested.load(Acquire) == next;
            assert!(!known || slice.need_preempt(), "a request was lost");
        }
        monitor.join().unwrap();
    });
}
