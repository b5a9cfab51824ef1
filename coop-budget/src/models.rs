//! The flag: a request against the opening of slices.
use crate::Preempt;
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
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
fn a_request_inside_a_slice_is_seen_before_its_next_poll() {
    model(|| slices(open_then_publish, Preempt::need_preempt));
}

#[test]
fn a_slice_that_is_opened_after_it_is_published_loses_the_request() {
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
fn a_look_that_clears_the_flag_loses_the_request() {
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
fn a_request_does_not_outlive_its_slice() {
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
