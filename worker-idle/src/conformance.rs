//! A conformance test for implementations of [`Park`], with the feature `conformance`.
//!
//! ```
//! worker_idle::conformance::park(worker_idle::park::ThreadPark::new);
//! ```
//!
//! A park may return early. So the checks are that no park lasts too long, and that writes before
//! an unpark are visible after the park. A faulty parker makes a check hang: the check then panics
//! with its name after a minute, or loom reports a deadlock.
use crate::park::Park;
use core::time::Duration;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    conformance::{LIMIT, check, explore},
    sync::Arc,
    thread,
};

/// A limit that no wait of a correct parker reaches.
const LONG: Duration = Duration::from_secs(3600);

/// Runs all checks, on parkers that `make` returns. The thread that parks calls `make`.
///
/// Under loom, the checks are models with up to three preemptions, and the check of time is left
/// out.
///
/// # Panics
/// If a check fails. The message begins with the check's name.
pub fn park<P: Park + 'static>(make: fn() -> P) {
    park_within(LIMIT, make);
}

fn park_within<P: Park + 'static>(limit: Duration, make: fn() -> P) {
    let checks = [
        check("unpark_before_park_ends_it", move || {
            unpark_before_park_ends_it(make);
        }),
        check("waker_may_outlive_its_parker", move || {
            waker_may_outlive_its_parker(make);
        }),
        check("park_with_limit_ends_in_time", move || {
            park_with_limit_ends_in_time(make);
        }),
        check("unparks_from_other_threads_end_a_park", move || {
            unparks_from_other_threads_end_a_park(make);
        }),
    ];
    explore(limit, 3, checks);
}

/// Checks that an unpark before a park ends the park, with a limit and without. The second round
/// uses the same parker.
pub fn unpark_before_park_ends_it<P: Park>(make: fn() -> P) {
    let mut park = make();
    let waker = park.waker();
    for _ in 0..2 {
        waker.wake_by_ref();
        park.park();
        waker.wake_by_ref();
        let other = waker.clone();
        other.wake();
        park.park();
        waker.wake_by_ref();
        park.park_timeout(LONG);
    }
}

/// Checks that a wake does nothing if the parker was dropped.
pub fn waker_may_outlive_its_parker<P: Park>(make: fn() -> P) {
    let park = make();
    let waker = park.waker();
    let other = waker.clone();
    drop(park);
    waker.wake_by_ref();
    drop(waker);
    other.wake();
}

/// Checks that a park with a limit ends without an unpark, and leaves the parker as it was.
///
/// No time passes in a model, so this checks nothing there.
pub fn park_with_limit_ends_in_time<P: Park>(make: fn() -> P) {
    if cfg!(any(selvedge_loom, selvedge_shuttle)) {
        return;
    }
    let mut park = make();
    for _ in 0..2 {
        park.park_timeout(Duration::from_micros(100));
        park.park_timeout(Duration::ZERO);
        park.waker().wake();
        park.park();
    }
}

/// Checks that unparks from two threads make the earlier writes of these threads visible.
pub fn unparks_from_other_threads_end_a_park<P: Park>(make: fn() -> P) {
    let mut park = make();
    let words = Arc::new(AtomicUsize::new(0));
    let others = [(); 2].map(|()| {
        let (words, waker) = (words.clone(), park.waker());
        thread::spawn(move || {
            // Ordering: Relaxed, so that the unpark alone makes the write visible.
            words.fetch_add(1, Relaxed);
            waker.wake();
        })
    });
    // Ordering: Relaxed, as above.
    while words.load(Relaxed) < 2 {
        park.park();
    }
    for other in others {
        other.join().expect("a wake doesn't panic");
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
