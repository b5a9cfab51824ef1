//! Models of the flag of a time slice: requests and nudges race a worker that opens slices, checks
//! the flag and looks for work.
use crate::Preempt;
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    model, model_must_fail,
    sync::Arc,
    thread,
};

/// Opens two slices of two polls each, while a monitor requests the end of at most one of them.
/// `open` opens a slice and calls its second argument, which publishes the slice's number in
/// `opened`. If the monitor reads a number there, it requests the end of the slice and then
/// publishes that number in `requested`. So if a poll reads its own slice's number in `requested`,
/// `need_preempt` must return true.
fn request_beside_two_slices(open: fn(&Preempt, &dyn Fn()), need_preempt: fn(&Preempt) -> bool) {
    let flag = Arc::new(Preempt::new());
    let opened = Arc::new(AtomicUsize::new(0));
    let requested = Arc::new(AtomicUsize::new(0));
    let monitor = {
        let (flag, opened, requested) = (flag.clone(), opened.clone(), requested.clone());
        thread::spawn(move || {
            // Ordering: Acquire pairs with the worker's publication, which follows the opening.
            let number = opened.load(Acquire);
            if number != 0 {
                flag.request();
                // Ordering: Release pairs with the worker's load of `requested`.
                requested.store(number, Release);
            }
        })
    };
    for number in 1..=2 {
        open(&flag, &|| {
            // Ordering: Release pairs with the monitor's load of `opened`.
            opened.store(number, Release);
        });
        for _poll in 0..2 {
            // Ordering: Acquire pairs with the monitor's publication, which follows its request.
            let is_requested = requested.load(Acquire) == number;
            let is_seen = need_preempt(&flag);
            assert!(
                is_seen || !is_requested,
                "a request inside the slice was missed"
            );
        }
    }
    monitor.join().unwrap();
}

fn open_then_publish(flag: &Preempt, publish: &dyn Fn()) {
    flag.open_slice();
    publish();
}

/// The worker sees a request inside a slice before its next poll, and before each later poll of
/// that slice.
///
/// Fails in the two broken variants below, or if `request` does nothing.
#[test]
fn request_inside_a_slice_is_seen_before_the_next_poll() {
    model(|| request_beside_two_slices(open_then_publish, Preempt::need_preempt));
}

#[test]
fn slice_opened_after_publication_loses_the_request() {
    model_must_fail("was missed", || {
        request_beside_two_slices(
            |flag, publish| {
                publish();
                flag.open_slice();
            },
            Preempt::need_preempt,
        );
    });
}

#[test]
fn check_that_clears_the_flag_loses_the_request() {
    model_must_fail("was missed", || {
        request_beside_two_slices(open_then_publish, |flag| {
            let need_preempt = flag.need_preempt();
            flag.open_slice();
            need_preempt
        });
    });
}

/// The opening of a slice clears a request that the worker has seen.
///
/// Fails if `open_slice` clears nothing.
#[test]
fn request_does_not_outlive_its_slice() {
    model(|| {
        let flag = Arc::new(Preempt::new());
        flag.open_slice();
        let monitor = {
            let flag = flag.clone();
            thread::spawn(move || flag.request())
        };
        let _either = flag.need_preempt();
        monitor.join().unwrap();
        assert!(flag.need_preempt());
        flag.open_slice();
        assert!(!flag.need_preempt());
    });
}

/// Another thread pushes an item and nudges, while the worker looks for work by `look`, which pops
/// with its second argument. The slice was nudged once before. Either the look finds the item, or
/// the nudge stays for the next operation.
fn nudge_beside_a_look(look: fn(&Preempt, &dyn Fn() -> Option<()>) -> Option<()>) {
    let flag = Arc::new(Preempt::new());
    // This nudge is for an earlier push, which the worker has already seen.
    flag.nudge();
    let pushed = Arc::new(AtomicUsize::new(0));
    let pusher = {
        let (flag, pushed) = (flag.clone(), pushed.clone());
        thread::spawn(move || {
            // Ordering: Relaxed, as the fence orders the push before the nudge.
            pushed.store(1, Relaxed);
            // Ordering: SeqCst pairs with the fence in `Preempt::look`.
            fence(SeqCst);
            flag.nudge();
        })
    };
    // Ordering: Relaxed, as the model tests the fences alone.
    let found = look(&flag, &|| (pushed.load(Relaxed) > 0).then_some(()));
    pusher.join().unwrap();
    assert!(
        found.is_some() || !flag.nudge(),
        "nobody looks for the item"
    );
}

/// Fails if `look` has no fence, or if it clears the nudge only at its end. The two models below
/// show these mistakes.
#[test]
fn item_pushed_before_a_nudge_is_found_or_the_nudge_stays() {
    model(|| nudge_beside_a_look(|flag, pop| flag.look(pop)));
}

#[test]
fn look_that_clears_the_nudge_afterwards_loses_another() {
    model_must_fail("nobody looks for the item", || {
        nudge_beside_a_look(|flag, pop| {
            let found = pop();
            flag.open_slice();
            found
        });
    });
}

#[test]
fn look_without_a_fence_loses_a_nudge() {
    model_must_fail("nobody looks for the item", || {
        nudge_beside_a_look(|flag, pop| {
            flag.open_slice();
            pop()
        });
    });
}

/// Two nudges race two operations of a worker. One of these operations, or one after the race, is
/// refused by a nudge. Then a budget is used up, and the slice accepts the next nudge.
///
/// Fails if `accept_nudges` does not end the state *ignoring*.
#[test]
fn nudges_racing_operations_leave_the_slice_responsive() {
    model(|| {
        let flag = Arc::new(Preempt::new());
        let nudger = {
            let flag = flag.clone();
            thread::spawn(move || {
                flag.nudge();
                flag.nudge();
            })
        };
        let during_the_race = [flag.take_nudge(), flag.take_nudge()];
        nudger.join().unwrap();
        let after_the_race = flag.take_nudge();
        assert!(
            during_the_race.contains(&true) || after_the_race,
            "no nudge was seen"
        );
        flag.accept_nudges();
        assert!(flag.nudge());
    });
}

/// A request and a nudge race a watch. The request stays, and a nudge of before the watch does so
/// if there was no request.
///
/// Fails if `begin_watch` or `end_watch` is a store.
#[test]
fn watch_beside_a_request_loses_neither_it_nor_a_nudge() {
    model(|| {
        let flag = Arc::new(Preempt::new());
        assert!(flag.nudge());
        let monitor = {
            let flag = flag.clone();
            thread::spawn(move || {
                flag.request();
                flag.nudge();
            })
        };
        if let Some(after) = flag.begin_watch() {
            flag.end_watch(after);
        }
        assert!(flag.is_set(), "the nudge is lost");
        monitor.join().unwrap();
        assert!(flag.take_request(), "the request is lost");
    });
}

/// A thread takes the worker over in the middle of a watched poll. It races `other`.
fn take_over_against(other: fn(&Preempt, u32), after_both: fn(&Preempt)) {
    model(move || {
        let flag = Arc::new(Preempt::new());
        let after = flag.begin_watch().unwrap();
        let thread = {
            let flag = flag.clone();
            thread::spawn(move || other(&flag, after))
        };
        flag.take_over();
        assert!(!flag.is_watched());
        thread.join().unwrap();
        after_both(&flag);
    });
}

/// Fails if `take_over` does nothing.
#[test]
fn slice_taken_over_beside_the_watchs_end_is_nudged() {
    take_over_against(Preempt::end_watch, |flag| assert!(flag.is_set()));
}

/// Fails if `take_over` is a store.
#[test]
fn slice_taken_over_keeps_a_request() {
    take_over_against(
        |flag, _| flag.request(),
        |flag| assert!(flag.take_request(), "the request is lost"),
    );
}

/// A request races each transition that a nudge causes: the request stays.
///
/// Fails if one of the transitions is a store.
#[test]
fn nudge_never_replaces_a_request() {
    let changes: [fn(&Preempt); 4] = [
        |flag| {
            flag.take_nudge();
        },
        |flag| {
            flag.look(|| None::<()>);
            flag.nudge();
        },
        |flag| {
            flag.look(|| Some(()));
        },
        |flag| {
            flag.take_nudge();
            flag.accept_nudges();
        },
    ];
    for change in changes {
        model(move || {
            let flag = Arc::new(Preempt::new());
            flag.nudge();
            let monitor = {
                let flag = flag.clone();
                thread::spawn(move || flag.request())
            };
            change(&flag);
            monitor.join().unwrap();
            assert!(flag.take_request());
        });
    }
}
