//! Tests that need a private item.
use crate::Timers;

#[test]
fn timer_of_the_last_generation_is_retired() {
    let mut timers = Timers::new();
    let key = timers.insert(1, 'a');
    let key = timers.age(key);
    assert_eq!(timers.remove(key), Some('a'));
    // The last key finds the retired timer, and names no armed one.
    assert_eq!(timers.remove(key), None);
    assert_eq!(timers.get(key), None);
    assert_eq!(timers.get_mut(key), None);
    assert_eq!(timers.deadline(key), None);
    assert!(!timers.reset(key, 2));
    assert!(timers.is_empty());

    // The retired timer is not reused: 63 of the block's 64 timers are left, then a new block is
    // allocated.
    let keys: std::vec::Vec<_> = (0..64).map(|at| timers.insert(at, 'b')).collect();
    assert!(!keys.contains(&key));
    assert_eq!(timers.get(key), None);
    timers.clear();
    assert!(timers.is_empty() && timers.pop_expired(u64::MAX).is_none());
}

#[cfg(target_pointer_width = "64")]
#[test]
fn wheel_takes_less_than_5_600_bytes() {
    assert!((5_500..5_600).contains(&size_of::<Timers<u64>>()));
}

#[cfg(target_pointer_width = "64")]
#[test]
fn timer_of_eight_bytes_takes_48() {
    assert_eq!(crate::timers::bytes_each::<u64>(), 48);
}
