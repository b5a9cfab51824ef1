//! Checks of somebody's [`Park`]. Feature `conformance`, for tests.
//!
//! ```
//! worker_idle::conformance::park(worker_idle::park::ThreadPark::new);
//! ```
//!
//! A park may return early, so what is checked is that none lasts too long, and that what came before an unpark is seen after the park. A fault is a check that doesn't end: a panic that names it
//! after a minute, or a deadlock that loom finds.
use crate::park::{Park, Unpark};
use core::time::Duration;
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    conformance::{LIMIT, check, explore},
    sync::Arc,
    thread,
};

/// So long nobody waits.
const LONG: Duration = Duration::from_secs(3600);

/// Runs all checks, of parkers that `make` makes on the thread that parks. Under loom with up to three preemptions, and without that of time.
///
/// # Panics
/// When one fails, in words that begin with its name.
pub fn park<P: Park + 'static>(make: fn() -> P) {
    park_within(LIMIT, make);
}

fn park_within<P: Park + 'static>(limit: Duration, make: fn() -> P) {
    let checks = [
        check("an_unpark_before_a_park_ends_it", move || {
            an_unpark_before_a_park_ends_it(make);
        }),
        check("an_unparker_may_outlive_its_parker", move || {
            an_unparker_may_outlive_its_parker(make);
        }),
        check("a_park_ends_with_its_time", move || {
            a_park_ends_with_its_time(make);
        }),
        check("unparks_from_other_threads_end_a_park", move || {
            unparks_from_other_threads_end_a_park(make);
        }),
    ];
    explore(limit, 3, checks);
}

/// An unpark, or several, before a park, with or without a limit, are not lost; and again.
pub fn an_unpark_before_a_park_ends_it<P: Park>(make: fn() -> P) {
    let mut park = make();
    let unpark = park.unparker();
    for _ in 0..2 {
        unpark.unpark();
        park.park();
        unpark.unpark();
        unpark.clone().unpark();
        park.park();
        unpark.unpark();
        park.park_timeout(LONG);
    }
}

/// An unpark of a parker that is gone does nothing.
pub fn an_unparker_may_outlive_its_parker<P: Park>(make: fn() -> P) {
    let park = make();
    let unpark = park.unparker();
    let other = unpark.clone();
    drop(park);
    unpark.unpark();
    drop(unpark);
    other.unpark();
}

/// A park with a limit ends without an unpark, and leaves the parker as it was. Under a model no time goes by: there it does nothing.
pub fn a_park_ends_with_its_time<P: Park>(make: fn() -> P) {
    if cfg!(any(selvedge_loom, selvedge_shuttle)) {
        return;
    }
    let mut park = make();
    for _ in 0..2 {
        park.park_timeout(Duration::from_micros(100));
        park.park_timeout(Duration::ZERO);
        park.unparker().unpark();
        park.park();
    }
}

/// Two threads leave word and unpark: who parks for as long as a word is missing gets both.
pub fn unparks_from_other_threads_end_a_park<P: Park>(make: fn() -> P) {
    let mut park = make();
    let words = Arc::new(AtomicUsize::new(0));
    let others = [(); 2].map(|()| {
        let (words, unpark) = (words.clone(), park.unparker());
        thread::spawn(move || {
            // Ordering: Relaxed, so that the unpark alone makes it visible.
            words.fetch_add(1, Relaxed);
            unpark.unpark();
        })
    });
    // Ordering: Relaxed, as above.
    while words.load(Relaxed) < 2 {
        park.park();
    }
    for other in others {
        other.join().expect("an unpark doesn't panic");
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
