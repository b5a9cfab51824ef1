//! Tests of the ring on one thread.
use super::*;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
};

fn put<T>(ring: &Ring<T>, position: u64, value: T, receivers: usize) -> Option<T> {
    // SAFETY: each test puts in order, with one receiver or more.
    unsafe { ring.put(position, value, receivers) }
}

fn take<T: Clone>(ring: &Ring<T>, position: u64) -> Result<T, Missing> {
    // SAFETY: each test takes a position as often as the put counts, or less.
    unsafe { ring.take(position) }
}

#[test]
fn capacity_is_a_power_of_two() {
    let capacities = [1, 2, 3, 5, 64].map(|n| Ring::<u8>::new(n).capacity());
    assert_eq!(capacities, [1, 2, 4, 8, 64]);
}

#[test]
fn positions_are_unsent_then_there_then_replaced() {
    let ring = Ring::new(2);
    assert_eq!(take(&ring, 0), Err(Missing::Unsent));
    for position in 0..5 {
        let replaced = (position >= 2).then(|| position - 2);
        assert_eq!(put(&ring, position, position, 1), replaced);
    }
    let taken: Vec<_> = (0..6).map(|position| take(&ring, position)).collect();
    let mut expected = vec![Err(Missing::Replaced); 3];
    expected.extend([Ok(3), Ok(4), Err(Missing::Unsent)]);
    assert_eq!(taken, expected);
}

#[test]
fn positions_wrap_around() {
    let ring = Ring::new(2);
    let start = u64::MAX - 1;
    // As if the ring had been used until then.
    for (slot, position) in [(0, start - 2), (1, start - 1)] {
        // Ordering: Relaxed, there is one thread.
        ring.slots[slot].position.store(position, Relaxed);
    }
    for step in 0..4 {
        let position = start.wrapping_add(step);
        assert_eq!(take(&ring, position), Err(Missing::Unsent));
        assert_eq!(put(&ring, position, step, 1), None);
        assert_eq!(take(&ring, position), Ok(step));
    }
}

#[test]
fn last_take_moves_the_value_out() {
    let ring = Ring::new(1);
    let value = Rc::new(());
    put(&ring, 0, value.clone(), 3);
    let clones = [0, 0].map(|position| take(&ring, position).unwrap());
    assert_eq!(Rc::strong_count(&value), 4);
    let moved = take(&ring, 0).unwrap();
    assert_eq!(Rc::strong_count(&value), 4);
    drop((clones, moved));
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn skips_release_the_value() {
    let ring = Ring::new(1);
    put(&ring, 0, 7, 2);
    // SAFETY: two receivers are counted.
    let skipped = [0, 0].map(|position| unsafe { ring.skip(position) });
    assert_eq!(skipped, [Ok(None), Ok(Some(7))]);
    assert_eq!(ring.unreleased(1), 0);
}

#[test]
fn unreleased_counts_the_values_from_the_last_back() {
    let ring = Ring::new(4);
    assert_eq!(ring.unreleased(0), 0);
    for position in 0..3 {
        put(&ring, position, (), 1);
        assert_eq!(ring.unreleased(position + 1), position as usize + 1);
    }
    for position in 0..3 {
        take(&ring, position).unwrap();
        assert_eq!(ring.unreleased(3), 2 - position as usize);
    }
    for position in 3..9 {
        put(&ring, position, (), 1);
    }
    assert_eq!(ring.unreleased(9), 4);
}

#[test]
fn drop_of_the_ring_drops_the_values() {
    let value = Rc::new(());
    let ring = Ring::new(4);
    (0..3).for_each(|position| drop(put(&ring, position, value.clone(), 1)));
    drop(take(&ring, 0));
    assert_eq!(Rc::strong_count(&value), 3);
    drop(ring);
    assert_eq!(Rc::strong_count(&value), 1);
}

#[test]
fn clone_that_panics_counts_the_receiver() {
    struct Bomb(Rc<()>);
    impl Clone for Bomb {
        fn clone(&self) -> Self {
            panic!("in the clone");
        }
    }
    let value = Rc::new(());
    let ring = Ring::new(1);
    put(&ring, 0, Bomb(value.clone()), 2);
    assert!(catch_unwind(AssertUnwindSafe(|| take(&ring, 0))).is_err());
    // The last one needs no clone.
    drop(take(&ring, 0).unwrap().0);
    assert_eq!(Rc::strong_count(&value), 1);
    assert!(put(&ring, 1, Bomb(value), 1).is_none());
}
