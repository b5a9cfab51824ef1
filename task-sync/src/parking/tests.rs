use super::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// As if so many guards had been forgotten.
#[test]
fn guards_beyond_the_limit_panic() {
    let (parking, word) = (Parking::new(), AtomicUsize::new(MOST));
    let locks = || parking.lock(&word, LOCKED | PARKED, UNIT);
    for counted in [MOST + 1, usize::MAX & !(LOCKED | PARKED)] {
        // Ordering: Relaxed, there is one thread.
        word.store(counted, Relaxed);
        assert!(catch_unwind(AssertUnwindSafe(locks)).is_err());
    }
    let free = (MOST - UNIT) & !(LOCKED | PARKED);
    // Ordering: as above.
    word.store(free, Relaxed);
    assert_eq!(locks(), free + UNIT);
    parking.unlock(&word, UNIT, !PARKED);
    // Ordering: as above.
    assert_eq!(word.load(Relaxed), free);
}
