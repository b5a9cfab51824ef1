//! The flag: a request against the opening of slices.
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

/// Two slices of two polls each, beside a monitor that requests the end of the one it finds. Which slices it learns from a number that
/// `open` publishes, and it publishes in turn which slice it requested the end of: so a poll that knows of the request for its slice must see the flag.
fn slices(open: fn(&Preempt, &dyn Fn()), look: fn(&Preempt) -> bool) {
    let flag = Arc::new(Preempt::new());
    let slice = Arc::new(AtomicUsize::new(0));
    let requested = Arc::new(AtomicUsize::new(0));
    let monitor = {
        let (flag, slice, requested) = (flag.clone(), slice.clone(), requested.clone());
        thread::spawn(move || {
            // Ordering: Acquire, from the worker's publication: its opening came before.
            let seen = slice.load(Acquire);
            if seen != 0 {
                flag.request();
                // Ordering: Release, to the worker's look.
                requested.store(seen, Release);
            }
        })
    };
    for number in 1..=2 {
        open(&flag, &|| {
            // Ordering: Release, to the monitor.
            slice.store(number, Release);
        });
        for _poll in 0..2 {
            // Ordering: Acquire, from the monitor's publication: its request came before.
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

/// A request that is made inside a slice is seen before its next poll, and before each of the others.
///
/// Bites: the two broken variants below; `request` that does nothing.
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

/// Opening clears what was requested before it, as far as the opener knows of it.
///
/// Bites: an `open_slice` that clears nothing.
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

/// Somebody pushes and nudges, as another thread may do too, beside a worker that looks: what is pushed is seen by that look, or the nudge stays for the next operation.
fn looks(look: fn(&Preempt, &dyn Fn() -> Option<()>) -> Option<()>) {
    let slice = Arc::new(Preempt::new());
    // From an earlier push, which has been seen.
    slice.nudge();
    let pushed = Arc::new(AtomicUsize::new(0));
    let pusher = {
        let (slice, pushed) = (slice.clone(), pushed.clone());
        thread::spawn(move || {
            // Ordering: Relaxed, the fence orders it before the nudge.
            pushed.store(1, Relaxed);
            // Ordering: SeqCst, the fence in `look`.
            fence(SeqCst);
            slice.nudge();
        })
    };
    // Ordering: Relaxed, the fences alone are what is tried.
    let found = look(&slice, &|| (pushed.load(Relaxed) > 0).then_some(()));
    pusher.join().unwrap();
    assert!(found.is_some() || !slice.nudge(), "nobody looks");
}

/// Bites: a look without its fence, and one that forgets the nudge when it is over: the two broken variants below.
#[test]
fn item_pushed_before_a_nudge_is_found_or_the_nudge_stays() {
    model(|| looks(|slice, look| slice.look(look)));
}

#[test]
fn look_that_clears_the_nudge_afterwards_loses_another() {
    model_must_fail("nobody looks", || {
        looks(|slice, look| {
            let found = look();
            slice.open_slice();
            found
        });
    });
}

#[test]
fn look_without_a_fence_loses_a_nudge() {
    model_must_fail("nobody looks", || {
        looks(|slice, look| {
            slice.open_slice();
            look()
        });
    });
}

/// Two that nudge, beside a worker that hears one and then uses up a budget: whatever is left of them refuses an operation, and the slice hears the next.
///
/// Bites: a `hear_again` that opens no deaf slice.
#[test]
fn nudges_racing_operations_leave_the_slice_responsive() {
    model(|| {
        let slice = Arc::new(Preempt::new());
        let nudges = slice.clone();
        let other = thread::spawn(move || {
            nudges.nudge();
            nudges.nudge();
        });
        let heard = u32::from(slice.heed_nudge()) + u32::from(slice.heed_nudge());
        other.join().unwrap();
        let left = slice.heed_nudge();
        assert!(heard + u32::from(left) > 0, "one of them is heard");
        slice.hear_again();
        assert!(slice.nudge());
    });
}

/// A request beside each of the changes that come of a nudge: it stays.
///
/// Bites: any of these changes as a store.
#[test]
fn nudge_never_replaces_a_request() {
    let changes: [fn(&Preempt); 4] = [
        |slice| {
            slice.heed_nudge();
        },
        |slice| {
            slice.look(|| None::<()>);
            slice.nudge();
        },
        |slice| {
            slice.look(|| Some(()));
        },
        |slice| {
            slice.heed_nudge();
            slice.hear_again();
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
