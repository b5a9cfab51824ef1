use super::*;
use crate::{Builder, Wait};

/// Fails if a thread for blocking closures looks for closures before a park although the runtime's
/// rule is to save power.
#[test]
fn only_rules_other_than_power_look_before_a_park() {
    let looks = |wait| {
        let mut hook = before_park(Builder::new().wait(wait).settings.backoff)();
        let mut looks = 0;
        for _park in 0..100 {
            hook(&mut || {
                looks += 1;
                true
            });
        }
        looks
    };
    assert_eq!(looks(Wait::Power), 0);
    // A wait that a busy machine makes late is followed by parks without waits.
    assert!(looks(Wait::Adaptive) > 0 && looks(Wait::Latency) > 0);
}
