//! Each model pins a behaviour of the installed loom. If a model fails, its name says which
//! behaviour has changed, and the rules that rest on that behaviour must be checked again.
//!
//! Most models have a counterpart: the same program with one difference (a fence, an ordering, a
//! store in place of an exchange) and another result. The two results show that the difference
//! matters. A *blind spot* is a case in which loom and the language differ. In most blind spots
//! loom does not show an error, or an execution that the language allows. The model of a blind spot
//! needs no counterpart: it fails when a newer loom sees more.
use crate::{
    Model,
    atomic::{
        AtomicUsize,
        Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst},
        Retire, fence,
    },
    cell::UnsafeCell,
    model, model_must_fail,
    sync::{Arc, Condvar},
    thread,
};
use std::{
    ffi::OsStr,
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    process::Command,
    sync::{Mutex, OnceLock},
    time::Duration,
};

/// Runs two threads on two atomics, and passes the results of all executions to `check`.
fn outcomes(
    left: fn(&AtomicUsize, &AtomicUsize) -> usize,
    right: fn(&AtomicUsize, &AtomicUsize) -> usize,
    check: fn(&[(usize, usize)]),
) {
    let seen: &'static Mutex<Vec<(usize, usize)>> = Box::leak(Box::default());
    model(move || {
        let both = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = {
            let both = both.clone();
            thread::spawn(move || right(&both.0, &both.1))
        };
        let l = left(&both.0, &both.1);
        let pair = (l, other.join().unwrap());
        let mut seen = seen.lock().unwrap();
        if !seen.contains(&pair) {
            seen.push(pair);
        }
    });
    check(&seen.lock().unwrap());
}

fn store_then_load(
    mine: &AtomicUsize,
    theirs: &AtomicUsize,
    order: Ordering,
    fenced: bool,
) -> usize {
    mine.store(1, if order == SeqCst { SeqCst } else { Relaxed });
    if fenced {
        fence(SeqCst);
    }
    theirs.load(order)
}

#[test]
fn store_buffering_with_fences_never_misses_both() {
    outcomes(
        |x, y| store_then_load(x, y, Relaxed, true),
        |x, y| store_then_load(y, x, Relaxed, true),
        |seen| assert!(!seen.contains(&(0, 0)) && seen.len() == 3, "{seen:?}"),
    );
}

#[test]
fn store_buffering_without_fences_misses_both() {
    outcomes(
        |x, y| store_then_load(x, y, Relaxed, false),
        |x, y| store_then_load(y, x, Relaxed, false),
        |seen| assert!(seen.contains(&(0, 0)), "{seen:?}"),
    );
}

/// A blind spot: the language forbids (0, 0) here.
#[test]
fn store_buffering_with_seqcst_accesses_counts_as_acqrel() {
    outcomes(
        |x, y| store_then_load(x, y, SeqCst, false),
        |x, y| store_then_load(y, x, SeqCst, false),
        |seen| {
            assert!(
                seen.contains(&(0, 0)),
                "loom orders SeqCst accesses now: {seen:?}"
            )
        },
    );
}

fn message_passing(release: Ordering, acquire: Ordering) {
    let data = Arc::new((UnsafeCell::new(0), AtomicUsize::new(0)));
    // loom checks the accesses to its cell. loom's `Arc` does not require a content that is `Sync`.
    let other = {
        let data = data.clone();
        thread::spawn(move || {
            // SAFETY: the flag orders this write before the read, or the model reports a race.
            data.0.with_mut(|value| unsafe { *value = 1 });
            data.1.store(1, release);
        })
    };
    if data.1.load(acquire) == 1 {
        // SAFETY: as above.
        assert_eq!(data.0.with(|value| unsafe { *value }), 1);
    }
    other.join().unwrap();
}

#[test]
fn message_passing_by_release_and_acquire_holds() {
    model(|| message_passing(Release, Acquire));
}

#[test]
fn message_passing_by_a_relaxed_store_is_a_race() {
    model_must_fail("Concurrent read and write accesses", || {
        message_passing(Relaxed, Acquire)
    });
}

#[test]
fn message_passing_by_a_relaxed_load_is_a_race() {
    model_must_fail("Concurrent read and write accesses", || {
        message_passing(Release, Relaxed)
    });
}

#[test]
fn load_buffering_is_not_explored() {
    outcomes(
        |x, y| {
            let seen = x.load(Relaxed);
            y.store(1, Relaxed);
            seen
        },
        |x, y| {
            let seen = y.load(Relaxed);
            x.store(1, Relaxed);
            seen
        },
        |seen| {
            assert!(
                !seen.contains(&(1, 1)),
                "loom explores load buffering now: {seen:?}"
            )
        },
    );
}

fn release_sequence(second: fn(&AtomicUsize)) {
    let data = Arc::new((UnsafeCell::new(0), AtomicUsize::new(0)));
    let other = {
        let data = data.clone();
        thread::spawn(move || {
            // SAFETY: the flag orders this write before the read, or the model reports a race.
            data.0.with_mut(|value| unsafe { *value = 1 });
            data.1.store(1, Release);
            second(&data.1);
        })
    };
    if data.1.load(Acquire) == 2 {
        // SAFETY: as above.
        data.0.with(|value| unsafe { *value });
    }
    other.join().unwrap();
}

#[test]
fn read_modify_write_continues_a_release_sequence() {
    model(|| {
        release_sequence(|flag| {
            flag.fetch_add(1, Relaxed);
        });
    });
}

#[test]
fn relaxed_store_by_the_same_thread_ends_a_release_sequence() {
    model_must_fail("Concurrent read and write accesses", || {
        release_sequence(|flag| flag.store(2, Relaxed))
    });
}

/// loom explores both orders only because of this crate's `thread::spawn`.
#[test]
fn load_and_store_beside_a_load_are_explored_in_both_orders() {
    outcomes(
        |x, _| x.load(Relaxed),
        |x, _| load_and_store(x),
        |seen| assert!(seen.contains(&(0, 0)) && seen.contains(&(1, 0)), "{seen:?}"),
    );
}

fn load_and_store(x: &AtomicUsize) -> usize {
    let seen = x.load(Relaxed);
    x.store(1, Relaxed);
    seen
}

/// A blind spot of loom (issue 392): with loom's own spawn, loom explores one execution of the same
/// program. The shim's spawn removes this blind spot.
#[test]
fn load_and_store_beside_a_load_are_explored_once_by_raw_spawn() {
    let seen: &'static Mutex<Vec<usize>> = Box::leak(Box::default());
    // loom's own `model`, as `cargo xtask loom` rejects a model of the shim with one execution.
    loom::model(move || {
        let x = Arc::new(AtomicUsize::new(0));
        let other = {
            let x = x.clone();
            loom::thread::spawn(move || load_and_store(&x))
        };
        seen.lock().unwrap().push(x.load(Relaxed));
        other.join().unwrap();
    });
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [0], "loom explores racing pairs more than once now");
    load_and_store_beside_a_load_are_explored_in_both_orders();
}

/// Returns whether loom explores this execution: the other thread stores a claim, the owner sees
/// the claim and changes a value, and then the other thread reads the new value.
fn a_change_after_a_claim_is_seen(owner: fn(&AtomicUsize)) -> bool {
    let seen: &'static OnceLock<()> = Box::leak(Box::default());
    model(move || {
        let both = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = {
            let both = both.clone();
            thread::spawn(move || {
                both.0.fetch_add(1, AcqRel);
                both.1.load(Acquire)
            })
        };
        let claimed = both.0.load(Acquire) == 1;
        owner(&both.1);
        if (claimed, other.join().unwrap()) == (true, 1) {
            let _ = seen.set(());
        }
    });
    seen.get().is_some()
}

/// The same blind spot, in a program for which the shim's spawn does not help: the owner's load
/// hides the other thread's load from the owner's store. An owner of an atomic must therefore
/// exchange it, or keep a copy of its value.
#[test]
fn load_before_a_store_hides_the_store_from_another_load() {
    assert!(a_change_after_a_claim_is_seen(|x| x.store(1, Release)));
    assert!(a_change_after_a_claim_is_seen(|x| {
        x.swap(1, Release);
    }));
    assert!(
        !a_change_after_a_claim_is_seen(|x| {
            load_and_store(x);
        }),
        "loom explores this now"
    );
}

#[test]
fn failed_exchange_never_reads_a_stale_value() {
    static STALE: OnceLock<()> = OnceLock::new();
    model(|| {
        let both = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = {
            let both = both.clone();
            thread::spawn(move || both.0.store(1, Relaxed))
        };
        // The value is never 2, so the exchange fails and returns the value that was stored last.
        let first = both.0.compare_exchange(2, 3, AcqRel, Relaxed).unwrap_err();
        other.join().unwrap();
        let second = both.0.compare_exchange(2, 3, AcqRel, Relaxed).unwrap_err();
        if first > second || second == 0 {
            let _ = STALE.set(());
        }
    });
    assert!(
        STALE.get().is_none(),
        "loom lets a failed exchange read old values now"
    );
}

/// Frees a block whose last use by another thread is not ordered before the free.
fn use_against_end(retire: bool) {
    let word = Arc::new(Racy(UnsafeCell::new(AtomicUsize::new(0))));
    let other = {
        let word = word.clone();
        thread::spawn(move || {
            // SAFETY: unsound on purpose: this access is not ordered with the free below.
            let word = unsafe { &*word.0.with(|word| word) };
            word.fetch_add(1, Relaxed);
        })
    };
    if retire {
        // SAFETY: as above.
        let word = unsafe { &mut *word.0.with(|word| word.cast_mut()) };
        word.retire();
    }
    other.join().unwrap();
}

struct Racy(UnsafeCell<AtomicUsize>);

// SAFETY: unsound on purpose.
unsafe impl Send for Racy {}

// SAFETY: as above.
unsafe impl Sync for Racy {}

#[test]
fn use_not_ordered_before_the_free_is_seen_by_retire() {
    model_must_fail("Concurrent load and mut accesses", || use_against_end(true));
}

#[test]
fn use_not_ordered_before_the_free_passes_without_retire() {
    model(|| {
        // One more atomic, so that there is something to explore.
        let turn = Arc::new(AtomicUsize::new(0));
        let other = {
            let turn = turn.clone();
            thread::spawn(move || turn.store(1, Relaxed))
        };
        use_against_end(false);
        turn.load(Relaxed);
        other.join().unwrap();
    });
}

#[test]
fn leaked_arc_is_seen() {
    model_must_fail("Arc leaked", || std::mem::forget(Arc::new(0)));
}

/// Runs two writers, and two readers that load both atomics in opposite orders. Returns whether the
/// readers ever disagree on the order of the writes. The model has a bound, because a model of four
/// threads does not finish without one. The bound hides nothing: a stale read needs no preemption.
fn readers_disagree(write: Ordering, read: Ordering, fenced: bool) -> bool {
    let disagreed: &'static OnceLock<()> = Box::leak(Box::default());
    Model::new().bound(2).check(move || {
        let both = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let look = move |first: &AtomicUsize, second: &AtomicUsize| {
            let first = first.load(read);
            if fenced {
                fence(SeqCst);
            }
            (first, second.load(read))
        };
        let (x, y, reader) = (both.clone(), both.clone(), both.clone());
        let writers = [
            thread::spawn(move || x.0.store(1, write)),
            thread::spawn(move || y.1.store(1, write)),
        ];
        let other = thread::spawn(move || look(&reader.0, &reader.1));
        let mine = look(&both.1, &both.0);
        if (mine, other.join().unwrap()) == ((1, 0), (1, 0)) {
            let _ = disagreed.set(());
        }
        for writer in writers {
            writer.join().unwrap();
        }
    });
    disagreed.get().is_some()
}

#[test]
fn independent_reads_by_acquire_disagree_on_independent_writes() {
    assert!(readers_disagree(Release, Acquire, false));
}

#[test]
fn independent_reads_with_fences_agree_on_independent_writes() {
    assert!(!readers_disagree(Release, Acquire, true));
}

/// A blind spot: the language forbids that the readers disagree here.
#[test]
fn independent_reads_by_seqcst_accesses_disagree() {
    assert!(
        readers_disagree(SeqCst, SeqCst, false),
        "loom orders SeqCst accesses now"
    );
}

#[test]
fn two_loads_of_one_atomic_never_go_back() {
    outcomes(
        |x, _| {
            x.store(1, Relaxed);
            x.store(2, Relaxed);
            0
        },
        |x, _| 10 * x.load(Relaxed) + x.load(Relaxed),
        |seen| {
            let mut reads: Vec<_> = seen.iter().map(|&(_, reads)| reads).collect();
            reads.sort_unstable();
            assert_eq!(reads, [0, 1, 2, 11, 12, 22]);
        },
    );
}

/// A blind spot: the language allows a weak exchange to fail spuriously.
#[test]
fn weak_exchange_never_fails_spuriously() {
    outcomes(
        |x, _| x.compare_exchange_weak(0, 1, AcqRel, Relaxed).unwrap_or(9),
        |_, y| y.swap(1, Relaxed),
        |seen| assert_eq!(seen, [(0, 0)], "loom lets weak exchanges fail now"),
    );
}

/// Runs three threads. The middle thread reads the writer's flag with Relaxed, and sets a second
/// flag for the last thread. With `fenced`, the last thread fences after it has read the second
/// flag.
fn fence_of_another(fenced: bool) {
    let data = Arc::new((UnsafeCell::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
    let writer = {
        let data = data.clone();
        thread::spawn(move || {
            // SAFETY: the flag orders this write before the read, or the model reports a race.
            data.0.with_mut(|value| unsafe { *value = 1 });
            data.1.store(1, Release);
        })
    };
    let middle = {
        let data = data.clone();
        thread::spawn(move || {
            if data.1.load(Relaxed) == 1 {
                data.2.store(1, Release);
            }
        })
    };
    if data.2.load(Acquire) == 1 {
        if fenced {
            fence(Acquire);
        }
        // SAFETY: as above.
        data.0.with(|value| unsafe { *value });
    }
    writer.join().unwrap();
    middle.join().unwrap();
}

#[test]
fn relaxed_load_passes_nothing_on() {
    model_must_fail("Concurrent read and write accesses", || {
        fence_of_another(false)
    });
}

/// A blind spot: in the language a fence acquires only what its own thread has read.
#[test]
fn acquire_fence_acquires_what_another_thread_has_read() {
    model(|| fence_of_another(true));
}

/// A blind spot: loom counts only its own allocations and the shim's.
#[test]
fn leaked_box_is_not_seen() {
    model(|| {
        let other = thread::spawn(|| std::mem::forget(Box::new(0)));
        other.join().unwrap();
    });
}

/// A blind spot: time does not pass. loom has no park with a timeout; the shim's is a plain park.
#[test]
fn wait_with_a_timeout_waits_for_ever() {
    model_must_fail("deadlock", || {
        let (lock, changed) = (loom::sync::Mutex::new(()), loom::sync::Condvar::new());
        let guard = lock.lock().unwrap();
        let _ = changed.wait_timeout(guard, Duration::ZERO);
    });
}

/// A blind spot: the language allows a park to end without an unpark.
#[test]
fn park_never_ends_without_an_unpark() {
    model(|| {
        let set = Arc::new(AtomicUsize::new(0));
        let (other, parked) = (set.clone(), thread::current());
        let other = thread::spawn(move || {
            other.store(1, Release);
            parked.unpark();
        });
        if set.load(Acquire) == 0 {
            thread::park();
            assert_eq!(set.load(Acquire), 1, "loom's parks end by themselves now");
        }
        other.join().unwrap();
    });
}

/// A blind spot: the language allows a wait to end without a notification.
#[test]
fn wait_never_ends_without_a_notification() {
    model(|| {
        let both = Arc::new((crate::sync::Mutex::new(false), Condvar::new()));
        let other = both.clone();
        let other = thread::spawn(move || {
            *other.0.lock() = true;
            other.1.notify_one();
        });
        let mut set = both.0.lock();
        if !*set {
            set = both.1.wait(set);
            assert!(*set, "loom's waits end by themselves now");
        }
        drop(set);
        other.join().unwrap();
    });
}

/// Returns whether a reader may miss a store although it has learned of the store, and has fenced
/// since. It may if the writer's own fence, which follows the store, has not happened yet.
fn is_seen_before_its_fence(fenced: fn()) -> bool {
    let seen: &'static OnceLock<()> = Box::leak(Box::default());
    model(move || {
        let both = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let (writer, reader) = (both.clone(), both.clone());
        let writer = thread::spawn(move || {
            writer.0.store(1, Relaxed);
            fenced();
        });
        let reader = thread::spawn(move || {
            if reader.0.load(Relaxed) == 1 {
                reader.1.store(1, Relaxed);
            }
        });
        if both.1.load(Relaxed) == 1 {
            fence(SeqCst);
            if both.0.load(Relaxed) == 0 {
                let _ = seen.set(());
            }
        }
        writer.join().unwrap();
        reader.join().unwrap();
    });
    seen.get().is_some()
}

#[test]
fn store_is_seen_before_the_fence_that_follows_it() {
    assert!(is_seen_before_its_fence(|| fence(SeqCst)));
}

/// A blind spot of loom, which the shim's fence removes.
#[test]
fn raw_fence_is_one_step_with_the_store_before_it() {
    assert!(!is_seen_before_its_fence(|| loom::sync::atomic::fence(
        SeqCst
    )));
}

/// Runs `others` threads beside the first, one after the other: threads that have ended count as
/// well. The shim spawns the last one, so that there is something to explore.
fn threads(others: usize) {
    for _ in 1..others {
        loom::thread::spawn(|| ()).join().unwrap();
    }
    thread::spawn(|| ()).join().unwrap();
}

#[test]
fn five_threads_are_modelled() {
    model(|| threads(4));
}

#[test]
fn sixth_thread_ends_the_model() {
    model_must_fail("self.threads.len() < self.max()", || threads(5));
}

/// Returns the values that a reader may see after `stores` stores. The reader has learned of the
/// stores by a Relaxed load only, so the language allows all values.
fn values_behind(stores: usize) -> Vec<usize> {
    let seen: &'static Mutex<Vec<usize>> = Box::leak(Box::default());
    model(move || {
        let both = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        let other = {
            let both = both.clone();
            thread::spawn(move || {
                for value in 1..=stores {
                    both.0.store(value, Relaxed);
                }
                both.1.store(1, Relaxed);
            })
        };
        if both.1.load(Relaxed) == 1 {
            seen.lock().unwrap().push(both.0.load(Relaxed));
        }
        other.join().unwrap();
    });
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    seen.dedup();
    seen
}

#[test]
fn value_behind_six_newer_ones_is_read() {
    assert_eq!(values_behind(6), [0, 1, 2, 3, 4, 5, 6]);
}

/// A blind spot: loom keeps seven values of an atomic.
#[test]
fn value_behind_seven_newer_ones_is_not_read() {
    assert_eq!(values_behind(7), [1, 2, 3, 4, 5, 6, 7]);
}

/// Makes `stores` branches, and a few more on a second thread, so that there is more than one
/// execution.
fn branches(stores: usize) {
    let x = AtomicUsize::new(0);
    for value in 0..stores {
        x.store(value, Relaxed);
    }
    thread::spawn(|| ()).join().unwrap();
}

#[test]
fn nine_hundred_branches_are_modelled() {
    model(|| branches(900));
}

#[test]
fn more_than_a_thousand_branches_end_the_model() {
    model_must_fail("exceeded maximum number of branches", || branches(1_000));
}

#[test]
fn more_than_a_thousand_branches_are_modelled_if_allowed() {
    Model::new().branches(2_000).check(|| branches(1_000));
}

/// Returns the number of executions by loom's own builder.
fn runs(limit: impl FnOnce(&mut loom::model::Builder)) -> usize {
    let runs: &'static Mutex<usize> = Box::leak(Box::default());
    let mut builder = loom::model::Builder::new();
    limit(&mut builder);
    builder.check(move || {
        *runs.lock().unwrap() += 1;
        message_passing(Release, Acquire);
    });
    *runs.lock().unwrap()
}

/// A blind spot: a run that one of loom's limits cuts short succeeds. So the shim does not use
/// these limits. loom checks the limits only every `checkpoint_interval` executions.
#[test]
fn loom_limits_end_a_run_with_success() {
    let all = runs(|_| ());
    assert!(all > 2);
    let by_number = runs(|builder| {
        builder.max_permutations = Some(2);
        builder.checkpoint_interval = 2;
    });
    let by_time = runs(|builder| {
        builder.max_duration = Some(Duration::ZERO);
        builder.checkpoint_interval = 2;
    });
    let seldom_looked_at = runs(|builder| builder.max_permutations = Some(2));
    assert_eq!((by_number, by_time, seldom_looked_at), (1, 1, all));
    message_passing_by_release_and_acquire_holds();
}

/// Runs each case in a process of its own, since all threads of a process share the environment,
/// which loom reads.
#[test]
fn loom_limits_in_the_environment_do_not_end_a_model() {
    let other = "litmus::models::message_passing_by_release_and_acquire_holds";
    let report = |limit: &[(&str, &str)]| {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", other, "--nocapture"])
            .envs(limit.iter().copied())
            .output()
            .unwrap();
        let said = String::from_utf8(child.stdout).unwrap();
        let report = said.lines().find(|line| line.starts_with("model: "));
        report.expect("a model's report").to_owned()
    };
    let looked_at = ("LOOM_CHECKPOINT_INTERVAL", "2");
    let all = report(&[]);
    assert_eq!(report(&[looked_at, ("LOOM_MAX_PERMUTATIONS", "2")]), all);
    assert_eq!(report(&[looked_at, ("LOOM_MAX_DURATION", "0")]), all);
    message_passing_by_release_and_acquire_holds();
}

/// Each mutant runs in its own process, since the process's environment names the mutant.
#[test]
fn mutant_of_one_call_site_fails_the_model() {
    let sites = std::env::temp_dir().join(format!("selvedge-sites-{}", std::process::id()));
    let passes = |model: &str, name: &str, value: &OsStr| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", &format!("litmus::models::{model}")]);
        let output = child.env(name, value).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("running 1 test"));
        output.status.success()
    };
    for (model, call, how) in [
        (
            "message_passing_by_release_and_acquire_holds",
            "store [Release]",
            "0 Relaxed",
        ),
        (
            "message_passing_by_release_and_acquire_holds",
            "load [Acquire]",
            "0 Relaxed",
        ),
        (
            "store_buffering_with_fences_never_misses_both",
            "fence [SeqCst]",
            "0 AcqRel",
        ),
        (
            "store_buffering_with_fences_never_misses_both",
            "fence [SeqCst]",
            "0 dropped",
        ),
        (
            "failed_exchange_never_reads_a_stale_value",
            "compare_exchange [AcqRel, Relaxed]",
            "0 stored",
        ),
    ] {
        let _ = fs::remove_file(&sites);
        assert!(passes(model, "SELVEDGE_SITES", sites.as_ref()));
        let passed = fs::read_to_string(&sites).unwrap();
        let place = passed.lines().find_map(|line| line.strip_suffix(call));
        let mutant = format!("{}{how}", place.expect("the model makes the call"));
        assert!(
            !passes(model, "SELVEDGE_MUTANT", mutant.as_ref()),
            "{mutant}"
        );
        // Another column is another site.
        let other = mutant.replacen(' ', "9 ", 1);
        assert!(passes(model, "SELVEDGE_MUTANT", other.as_ref()), "{other}");
    }
    fs::remove_file(&sites).unwrap();
    message_passing_by_release_and_acquire_holds();
}

/// A blind spot: the shim cannot ignore the poison of a lock, since loom's own lock panics on it.
#[test]
fn poisoned_lock_ends_the_model() {
    model_must_fail("PoisonError", || {
        let lock = crate::sync::Mutex::new(());
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("with the lock");
        }));
        assert!(panicked.is_err());
        drop(lock.lock());
    });
}
