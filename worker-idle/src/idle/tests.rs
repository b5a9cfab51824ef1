//! The operations on one thread. `models.rs` has pushers racing sleepers.
use super::*;
extern crate std;
use std::format;

fn sleepers(workers: usize, sleepers: &[usize]) -> Idle {
    let idle = Idle::new(workers);
    for &worker in sleepers {
        idle.sleep(worker, false);
    }
    idle
}

/// Wakes all sleepers, and returns their indices. Each one searches and stops, so that the next
/// sleeper can be woken.
fn wakes(idle: &Idle) -> alloc::vec::Vec<usize> {
    core::iter::from_fn(|| {
        let woken = idle.notify()?;
        assert!(idle.was_notified(woken));
        let (_, sleeping) = idle.counts();
        assert_eq!(idle.stop_searching(), sleeping > 0);
        Some(woken)
    })
    .collect()
}

#[test]
fn sleepers_of_several_masks_are_woken_each_once() {
    let idle = sleepers(130, &[129, 3, 64, 0]);
    assert!(!idle.was_notified(129) && idle.was_notified(128));
    assert_eq!(wakes(&idle), [0, 3, 64, 129]);
    assert_eq!(idle.counts(), (0, 0));
}

#[test]
fn watcher_is_chosen_last_of_its_mask() {
    let idle = sleepers(130, &[0, 2, 5]);
    assert!(idle.try_watch(0));
    assert_eq!(wakes(&idle), [2, 5, 0]);
    let idle = sleepers(130, &[2, 66, 70]);
    assert!(idle.try_watch(66));
    assert_eq!(wakes(&idle), [2, 70, 66]);
    // A watcher of another mask has no effect.
    let idle = sleepers(130, &[1, 3]);
    assert!(idle.try_watch(65));
    assert_eq!(wakes(&idle), [1, 3]);
    let idle = sleepers(130, &[65, 66]);
    assert!(idle.try_watch(1));
    assert_eq!(wakes(&idle), [65, 66]);
}

#[test]
fn at_most_one_worker_is_the_watcher() {
    let idle = Idle::new(2);
    assert!(!idle.is_watched());
    assert!(idle.try_watch(1) && idle.is_watched() && !idle.try_watch(0));
    idle.leave_watch();
    assert!(!idle.is_watched() && idle.try_watch(0));
}

#[test]
fn push_wakes_nobody_while_a_worker_searches() {
    let idle = sleepers(4, &[1, 2]);
    assert_eq!(idle.notify(), Some(1));
    assert_eq!(idle.counts(), (1, 1));
    assert_eq!(idle.notify(), None);
    assert!(idle.stop_searching());
    assert_eq!(idle.notify(), Some(2));
}

#[test]
fn at_most_half_search_and_the_last_looks_beside_a_sleeper() {
    let idle = Idle::new(4);
    for sleeps in [false, true] {
        assert!(idle.try_search() && idle.try_search() && !idle.try_search());
        assert!(!idle.stop_searching());
        assert_eq!(idle.stop_searching(), sleeps);
        if !sleeps {
            idle.sleep(3, false);
        }
    }
}

#[test]
fn searcher_that_sleeps_no_longer_searches() {
    let idle = Idle::new(4);
    assert!(idle.try_search() && idle.try_search());
    idle.sleep(0, true);
    assert_eq!(idle.counts(), (1, 1));
    idle.sleep(1, true);
    assert_eq!(idle.counts(), (0, 2));
}

#[test]
fn wake_self_returns_who_woke_the_sleeper() {
    let idle = sleepers(130, &[70, 71]);
    assert_eq!(idle.wake_self(71), Woken::BySelf);
    assert_eq!(idle.counts(), (1, 1));
    assert!(idle.stop_searching());
    assert_eq!(idle.notify(), Some(70));
    assert_eq!(idle.wake_self(70), Woken::ByNotifier);
    assert_eq!(idle.counts(), (1, 0));
    assert_eq!(
        alloc::format!("{idle:?}"),
        "Idle { searching: 1, sleeping: 0 }"
    );
}

/// A notifier has chosen this worker: it has cleared the worker's bit. Fails if the worker then
/// changes the counts. (In a model the notifier comes between the worker's look and its change.)
#[test]
fn worker_that_was_chosen_changes_no_count() {
    let idle = sleepers(2, &[0]);
    // This counts another sleeper, whose bit is clear.
    idle.line.counts.fetch_add(SLEEPING, Relaxed);
    let (mask, bit) = idle.mask(0);
    mask.fetch_and(!bit, Relaxed);
    assert_eq!(idle.wake_self(0), Woken::ByNotifier);
    assert_eq!(idle.counts(), (0, 2));
}

/// Runs `f`, which must not wait for another thread, on a thread of its own.
fn without_a_wait<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, result) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || sender.send(f()).unwrap());
    let result = result.recv_timeout(std::time::Duration::from_secs(60));
    let result = result.expect("`f` waits for a stalled thread");
    thread.join().unwrap();
    result
}

/// A notifier that has a lower priority and shares the CPU may be stalled for as long as the
/// sleeper runs.
#[test]
fn wake_self_beside_a_stalled_notifier_returns() {
    let idle = std::sync::Arc::new(sleepers(130, &[129]));
    // The notifier has made a reservation, and has cleared no bit yet.
    idle.line.counts.fetch_add(RESERVATION, Relaxed);
    let sleeper = idle.clone();
    assert_eq!(
        without_a_wait(move || sleeper.wake_self(129)),
        Woken::BySelf
    );
    assert_eq!(idle.counts(), (2, 0));
    // The notifier finds no bit, and gives its reservation back.
    assert_eq!(idle.notify(), None);
    assert_eq!(idle.take_any(), None);
    assert_eq!(sleeping(idle.give_back()), 0);
    assert_eq!(idle.counts(), (1, 0));
    assert!(!idle.stop_searching());
    idle.sleep(129, false);
    assert_eq!(idle.notify(), Some(129));
}

fn message_of(f: impl FnOnce()) -> std::string::String {
    let panic = std::panic::catch_unwind(core::panic::AssertUnwindSafe(f)).unwrap_err();
    *panic.downcast().expect("a formatted message")
}

#[test]
fn worker_index_out_of_range_panics() {
    for workers in [2, 64, 130] {
        let idle = Idle::new(workers);
        for worker in [workers, workers + 64, usize::MAX] {
            let said = format!("there is no worker {worker}: the indices are below {workers}");
            let calls: [&dyn Fn(); 4] = [
                &|| idle.sleep(worker, false),
                &|| assert_eq!(idle.wake_self(worker), Woken::BySelf),
                &|| assert!(!idle.was_notified(worker)),
                &|| assert!(!idle.try_watch(worker)),
            ];
            for call in calls {
                assert_eq!(message_of(call), said);
            }
        }
        assert_eq!(idle.counts(), (0, 0));
        assert!(!idle.is_watched());
    }
}

#[test]
fn push_wakes_only_if_none_searches_and_one_sleeps() {
    for searching in 0..3 {
        for sleeping in 0..3 {
            let counts = searching * SEARCHING + sleeping * SLEEPING;
            let wakes = searching == 0 && sleeping > 0;
            assert_eq!(wakes_nobody(counts), !wakes, "{searching} {sleeping}");
        }
        // There is one more reservation than there are sleepers. That one counts as a searcher.
        let counts = (searching * SEARCHING).wrapping_add(RESERVATION);
        assert_eq!(sleeping(counts), -1);
        assert!(wakes_nobody(counts));
    }
    let most = SLEEPING * i32::MAX as u64;
    assert!(!wakes_nobody(most) && wakes_nobody(most + SEARCHING));
}

#[test]
fn inline_idle_of_64_workers_wakes_each_of_them() {
    let idle = Idle::inline(64);
    (0..64).for_each(|worker| idle.sleep(worker, false));
    for _ in 0..64 {
        let worker = idle.notify().unwrap();
        assert!(idle.was_notified(worker));
        idle.stop_searching();
    }
    assert_eq!(idle.counts(), (0, 0));
}

#[test]
fn inline_idle_of_no_or_too_many_workers_panics() {
    for workers in [0, 65, usize::MAX] {
        let made = std::panic::catch_unwind(|| Idle::inline(workers));
        assert!(made.is_err(), "{workers}");
    }
}
