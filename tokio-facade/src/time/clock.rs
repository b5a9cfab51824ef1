//! The paused clock, which only a runtime of one thread has in tokio.
use crate::runtime::{Handle, RuntimeFlavor};
use std::time::Duration;

/// Checks that no runtime with worker threads is current.
#[track_caller]
fn assert_one_thread() {
    let flavor = Handle::try_current().map(|handle| handle.runtime_flavor());
    assert!(
        flavor.is_err() || flavor.ok() == Some(RuntimeFlavor::CurrentThread),
        "the clock of a runtime with worker threads cannot be paused: use a runtime of one thread"
    );
}

/// Pauses the clock of the current runtime. See [`selvedge::time::pause`].
///
/// # Panics
/// Outside of a runtime of one thread, or if the clock is paused already.
#[track_caller]
pub fn pause() {
    assert_one_thread();
    selvedge::time::pause();
}

/// Lets the clock of the current runtime go on. See [`selvedge::time::resume`].
///
/// # Panics
/// Outside of a runtime of one thread, or if the clock is not paused.
#[track_caller]
pub fn resume() {
    assert_one_thread();
    selvedge::time::resume();
}

/// Sets the paused clock forward. See [`selvedge::time::advance`].
///
/// # Panics
/// As [`resume`], at the first poll.
pub async fn advance(duration: Duration) {
    assert_one_thread();
    selvedge::time::advance(duration).await;
}
