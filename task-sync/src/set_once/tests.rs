//! Tests of a cell on one thread.
use super::{SetOnce, SetOnceError};
use crate::testing::{Woken, now, poll};
use std::{
    rc::Rc,
    sync::Arc,
    task::{Poll, Wake, Waker},
};

#[test]
fn set_wakes_all_that_wait() {
    let cell = SetOnce::new();
    let (woken, waker) = Woken::new();
    let mut waits = [(); 3].map(|()| Box::pin(cell.wait()));
    for wait in &mut waits {
        assert!(poll(wait, &waker).is_pending());
    }
    drop(cell.wait());
    cell.set(7).unwrap();
    assert_eq!(woken.take(), 3);
    for wait in &mut waits {
        assert_eq!(poll(wait, &waker), Poll::Ready(&7));
    }
    assert_eq!(*now(cell.wait()), 7);
}

/// A wait that is dropped after any number of polls leaves the queue.
#[test]
fn dropped_wait_is_not_woken() {
    let cell = SetOnce::new();
    let (woken, waker) = Woken::new();
    for polls in 0..3 {
        let mut wait = Box::pin(cell.wait());
        for _ in 0..polls {
            assert!(poll(&mut wait, &waker).is_pending());
        }
    }
    cell.set(7).unwrap();
    assert_eq!(woken.take(), 0);
}

#[test]
fn value_is_dropped_once() {
    let value = Rc::new(());
    let count = || Rc::strong_count(&value);
    let cell = SetOnce::new();
    cell.set(value.clone()).unwrap();
    let SetOnceError(refused) = cell.set(value.clone()).unwrap_err();
    assert_eq!(count(), 3);
    drop(refused);
    let clone = cell.clone();
    assert_eq!((count(), clone == cell), (3, true));
    drop(cell);
    assert_eq!(count(), 2);
    let inner = clone.into_inner();
    assert_eq!(count(), 2);
    drop(inner);
    assert_eq!(count(), 1);
    drop(SetOnce::<Rc<()>>::new());
    assert_eq!(SetOnce::<u8>::new().into_inner(), None);
}

#[test]
fn cells_compare_and_print_their_values() {
    let (empty, set) = (SetOnce::new(), SetOnce::from(7));
    assert!(empty != set && set == SetOnce::const_new_with(7) && empty == SetOnce::default());
    assert_eq!(format!("{empty:?}"), "SetOnce { value: None }");
    assert_eq!(format!("{set:?}"), "SetOnce { value: Some(7) }");
    let error = set.set(8).unwrap_err();
    assert_eq!(error.to_string(), "the cell has a value already");
}

#[test]
fn waker_and_value_that_use_the_cell_are_harmless() {
    struct Reentrant(Arc<SetOnce<u8>>);
    impl Wake for Reentrant {
        fn wake(self: Arc<Self>) {
            assert_eq!(self.0.get(), Some(&1));
            assert_eq!(self.0.set(2), Err(SetOnceError(2)));
            assert_eq!(now(self.0.wait()), &1);
        }
    }
    let cell = Arc::new(SetOnce::new());
    let waker = Waker::from(Arc::new(Reentrant(cell.clone())));
    let mut waits = [(); 3].map(|()| Box::pin(cell.wait()));
    for wait in &mut waits {
        assert!(poll(wait, &waker).is_pending());
    }
    cell.set(1).unwrap();
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the sizes are of 64 bits")]
fn cell_and_its_wait_are_small() {
    let cell = SetOnce::<u64>::new();
    assert!(size_of_val(&cell) <= 5 * size_of::<usize>());
    assert!(size_of_val(&cell.wait()) <= 7 * size_of::<usize>());
}
