//! The kit under the model.
use super::park;
use crate::park::ThreadPark;

/// Bites: an unpark with Relaxed; a `PARKED` that is stored over a token.
#[test]
fn a_threads_own_parker_passes() {
    park(ThreadPark::new);
}
