//! The flag: a request against the opening of a slice.
use crate::Preempt;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    model, model_must_fail,
    sync::Arc,
    thread,
};

/// A request that is made inside a slice is seen before its next poll: the requester learns by
/// `polls` that the slice is open.
///
/// Bites: let the look clear the flag (a second look in the same slice misses).
#[test]
fn a_request_inside_a_slice_lasts_to_its_end() {
    model(|| slices(|flag| flag.need_preempt()));
}

#[test]
fn a_look_that_clears_the_flag_loses_the_request() {
    model_must_fail(|| {
        slices(|flag| {
            let seen = flag.need_preempt();
            flag.open_slice();
            seen
        });
    });
}

fn slices(look: fn(&Preempt) -> bool) {
    let flag = Arc::new(Preempt::new());
    let requests = Arc::new(AtomicUsize::new(0));
    flag.open_slice();
    let monitor = {
        let (flag, requests) = (flag.clone(), requests.clone());
        thread::spawn(move || {
            flag.request();
            requests.fetch_add(1, Relaxed);
        })
    };
    let early = look(&flag);
    monitor.join().unwrap();
    assert_eq!(requests.load(Relaxed), 1);
    assert!(look(&flag), "the request was lost (seen before: {early})");
    flag.open_slice();
    assert!(!look(&flag), "a request outlived its slice");
}
