//! Tests of the keys, values and drops of `Timers`.
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};
use timer_wheel::Timers;

/// A value that counts its drops, and may panic in one.
struct DropCounter(Rc<Cell<u32>>, bool);

impl Drop for DropCounter {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        assert!(!self.1, "a drop that panics");
    }
}

#[test]
fn key_names_its_timer_until_it_is_gone() {
    let mut timers = Timers::at(10);
    let (a, b) = (timers.insert(20, 'a'), timers.insert(5, 'b'));
    assert_eq!((timers.get(a), timers.deadline(a)), (Some(&'a'), Some(20)));
    assert_eq!((timers.get(b), timers.deadline(b)), (Some(&'b'), Some(10)));
    *timers.get_mut(a).unwrap() = 'c';

    let expired = timers.pop_expired(10).unwrap();
    assert_eq!((expired.key, expired.deadline, expired.value), (b, 10, 'b'));
    assert_eq!((timers.get(b), timers.deadline(b)), (None, None));
    assert!(!timers.reset(b, 11) && timers.remove(b).is_none());

    // The new timer has the same memory, and another key.
    let d = timers.insert(20, 'd');
    assert_ne!(d, b);
    assert_eq!((timers.get(b), timers.get(d)), (None, Some(&'d')));
    assert!(timers.reset(a, 20));
    let order: Vec<char> =
        std::iter::from_fn(|| timers.pop_expired(20).map(|expired| expired.value)).collect();
    assert_eq!(order, ['d', 'c'], "a reset timer expires after the others");
}

#[test]
fn key_of_larger_timers_names_nothing() {
    let mut many = Timers::new();
    let keys: Vec<_> = (0..200).map(|n| many.insert(n, n)).collect();
    let empty = Timers::<u64>::new();
    assert!(keys.iter().all(|&key| empty.get(key).is_none()));
}

#[test]
fn values_are_dropped_once() {
    let drops = Rc::new(Cell::new(0));
    let mut timers = Timers::new();
    let keys: Vec<_> = (0..150u64)
        .map(|n| timers.insert(n * n, DropCounter(drops.clone(), false)))
        .collect();
    drop(timers.remove(keys[7]));
    drop(timers.pop_expired(0));
    assert_eq!(drops.get(), 2);
    drop(timers);
    assert_eq!(drops.get(), 150);
}

#[test]
fn drop_that_panics_leaves_the_others_dropped_once() {
    let drops = Rc::new(Cell::new(0));
    let mut timers = Timers::new();
    for n in 0..300 {
        timers.insert(n, DropCounter(drops.clone(), n == 50 || n == 250));
    }
    let cleared = catch_unwind(AssertUnwindSafe(|| timers.clear()));
    assert!(cleared.is_err());
    assert_eq!(timers.len() + drops.get() as usize, 300);
    let dropped = catch_unwind(AssertUnwindSafe(|| drop(timers)));
    assert!(dropped.is_err());
    assert_eq!(drops.get(), 300);
}

#[test]
fn timers_that_are_cleared_are_used_again() {
    let mut timers = Timers::new();
    for round in 0..3u64 {
        let keys: Vec<_> = (0..100)
            .map(|n| timers.insert(n * 1000, n + round))
            .collect();
        timers.clear();
        assert!(timers.is_empty() && timers.next_expiration().is_none());
        assert!(keys.iter().all(|&key| timers.get(key).is_none()));
    }
}

#[test]
fn callback_that_panics_loses_only_what_it_was_given() {
    let mut timers = Timers::new();
    for n in 0..5 {
        timers.insert(70 + n, n);
    }
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        timers.advance(80, |_, expired| assert_ne!(expired.value, 2));
    }));
    assert!(panicked.is_err());
    let mut rest = Vec::new();
    timers.advance(80, |_, expired| rest.push(expired.value));
    assert_eq!(rest, [3, 4]);
}

#[test]
fn values_of_no_size_expire() {
    let mut timers = Timers::new();
    let key = timers.insert(u64::MAX, ());
    assert_eq!(timers.next_bound(), Some(u64::MAX));
    assert!(timers.pop_expired(u64::MAX - 1).is_none());
    assert_eq!(
        timers.pop_expired(u64::MAX).map(|expired| expired.key),
        Some(key)
    );
}
