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
/// `open` opens a slice and publishes its number in `slice`. If the monitor reads a number there,
/// it requests the end of the slice and then publishes that number in `requested`. So a poll that
/// reads its own slice's number in `requested` must see the flag.
fn slices(open: fn(&Preempt, &dyn Fn()), look: fn(&Preempt) -> bool) {
    let flag = Arc::new(Preempt::new());
    let slice = Arc::new(AtomicUsize::new(0));
    let requested = Arc::new(AtomicUsize::new(0));
    let monitor = {
        let (flag, slice, requested) = (flag.clone(), slice.clone(), requested.clone());
        thread::spawn(move || {
            // Ordering: Acquire pairs with the worker's publication, which follows the opening.
            let seen = slice.load(Acquire);
            if seen != 0 {
                flag.request();
                // Ordering: Release pairs with the worker's load of `requested`.
                requested.store(seen, Release);
            }
        })
    };
    for number in 1..=2 {
        open(&flag, &|| {
            // Ordering: Release pairs with the monitor's load of `slice`.
            slice.store(number, Release);
        });
        for _poll in 0..2 {
            // Ordering: Acquire pairs with the monitor's publication, which follows its request.
            let known = requested.load(Acquire) == number;
            let seen = look(&flag);
            assert!(seen || !known, "a request inside the slice was missed");
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
    model(|| slices(open_then_publish, Preempt::need_preempt));
}

#[test]
fn slice_opened_after_publication_loses_the_request() {
    model_must_fail("was missed", || {
        slices(
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
        slices(open_then_publish, |flag| {
            let seen = flag.need_preempt();
            flag.open_slice();
            seen
        });
    });
}

/// An opening clears the requests that the worker knows of.
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
        let _early = flag.need_preempt();
        monitor.join().unwrap();
        assert!(flag.need_preempt());
        flag.open_slice();
        assert!(!flag.need_preempt());
    });
}

/// A nudger pushes and nudges, while a worker looks for work. The slice was nudged once before.
/// Either the look sees the push, or the nudge stays for the next operation.
fn looks(look: fn(&Preempt, &dyn Fn() -> Option<()>) -> Option<()>) {
    let slice = Arc::new(Preempt::new());
    // This nudge is for an earlier push, which the worker has already seen.
    slice.nudge();
    let pushed = Arc::new(AtomicUsize::new(0));
    let pusher = {
        let (slice, pushed) = (slice.clone(), pushed.clone());
        thread::spawn(move || {
            // Ordering: Relaxed, as the fence orders the push before the nudge.
            pushed.store(1, Relaxed);
            // Ordering: SeqCst pairs with the fence in `look`.
            fence(SeqCst);
            slice.nudge();
        })
    };
    // Ordering: Relaxed, as the model tests the fences alone.
    let found = look(&slice, &|| (pushed.load(Relaxed) > 0).then_some(()));
    pusher.join().unwrap();
    assert!(
        found.is_some() || !slice.nudge(),
        "nobody looks for the item"
    );
}

/// Fails if `look` has no fence, or if it clears the nudge only at its end. The two models below
/// show these mistakes.
#[test]
fn item_pushed_before_a_nudge_is_found_or_the_nudge_stays() {
    model(|| looks(|slice, look| slice.look(look)));
}

#[test]
fn look_that_clears_the_nudge_afterwards_loses_another() {
    model_must_fail("nobody looks for the item", || {
        looks(|slice, look| {
            let found = look();
            slice.open_slice();
            found
        });
    });
}

#[test]
fn look_without_a_fence_loses_a_nudge() {
    model_must_fail("nobody looks for the item", || {
        looks(|slice, look| {
            slice.open_slice();
            look()
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
        let slice = Arc::new(Preempt::new());
        let nudges = slice.clone();
        let other = thread::spawn(move || {
            nudges.nudge();
            nudges.nudge();
        });
        let seen = u32::from(slice.take_nudge()) + u32::from(slice.take_nudge());
        other.join().unwrap();
        let left = slice.take_nudge();
        assert!(seen + u32::from(left) > 0, "no nudge was seen");
        slice.accept_nudges();
        assert!(slice.nudge());
    });
}

/// A request races each transition that a nudge causes: the request stays.
///
/// Fails if one of the transitions is a store.
#[test]
fn nudge_never_replaces_a_request() {
    let changes: [fn(&Preempt); 4] = [
        |slice| {
            slice.take_nudge();
        },
        |slice| {
            slice.look(|| None::<()>);
            slice.nudge();
        },
        |slice| {
            slice.look(|| Some(()));
        },
        |slice| {
            slice.take_nudge();
            slice.accept_nudges();
        },
    ];
    for change in changes {
        model(move || {
            let slice = Arc::new(Preempt::new());
            slice.nudge();
            let monitor = slice.clone();
            let monitor = thread::spawn(move || monitor.request());
            change(&slice);
            monitor.join().unwrap();
            assert!(slice.take_request());
        });
    }
}
