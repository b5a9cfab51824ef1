//! The calls of a simulated program: threads, time and random numbers.
use std::time::{Duration, Instant};

pub use sync_shim::sim::thread;

/// Keeps this thread busy for this virtual time, for example in the middle of a poll. Other threads
/// run meanwhile. A thread that is not simulated sleeps.
///
/// ```
/// use std::time::Duration;
///
/// let run = selvedge_sim::Sim::new(1).run_main(|| {
///     let begun = selvedge_sim::now();
///     selvedge_sim::busy(Duration::from_millis(3));
///     assert!(selvedge_sim::now() >= begun + Duration::from_millis(3));
/// });
/// run.unwrap();
/// ```
#[track_caller]
pub fn busy(time: Duration) {
    #[cfg(selvedge_sim)]
    sync_shim::sim::busy(time);
    #[cfg(not(selvedge_sim))]
    std::thread::sleep(time);
}

/// Returns the virtual time, or the time of the system in a thread that is not simulated.
pub fn now() -> Instant {
    sync_shim::time::now()
}

/// Returns a random number. A simulated thread draws it from the seed.
///
/// ```
/// let (sender, numbers) = std::sync::mpsc::channel();
/// let run = selvedge_sim::Sim::new(1).run_main(move || sender.send(selvedge_sim::random()).unwrap());
/// run.unwrap();
/// assert_eq!(numbers.iter().count(), 1);
/// ```
pub fn random() -> u64 {
    sync_shim::random::number()
}

/// Returns a random number below `count`, as [`random`] does.
///
/// # Panics
/// If `count` is 0.
#[track_caller]
pub fn random_below(count: u64) -> u64 {
    random() % count
}
