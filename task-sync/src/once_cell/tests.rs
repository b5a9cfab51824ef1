//! Tests of the cell on one thread.
use super::*;
use crate::testing::{Woken, now, poll};
use core::task::Poll;
use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Waker,
};

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the sizes are of 64 bits")]
fn cell_takes_no_more_bytes_than_that_of_tokio() {
    assert!(size_of::<OnceCell<u64>>() <= size_of::<tokio::sync::OnceCell<u64>>());
    assert!(size_of::<OnceCell<String>>() <= size_of::<tokio::sync::OnceCell<String>>());
    let (ours, tokios) = (OnceCell::new(), tokio::sync::OnceCell::new());
    let ours = ours.get_or_init(|| async { 1 });
    let tokios = tokios.get_or_init(|| async { 1 });
    assert!(size_of_val(&ours) <= size_of_val(&tokios));
}

#[test]
fn waiters_read_the_value_of_the_first() {
    let cell = OnceCell::new();
    let (woken, waker) = Woken::new();
    let (send, receive) = futures::channel::oneshot::channel();
    let mut first = Box::pin(cell.get_or_init(|| async { receive.await.unwrap() }));
    assert!(poll(&mut first, &waker).is_pending());
    let mut others: Vec<_> = (0..40)
        .map(|_| Box::pin(cell.get_or_init(pending)))
        .collect();
    for other in &mut others {
        assert!(poll(other, &waker).is_pending());
    }
    assert_eq!(cell.set(4), Err(SetError::InitializingError(4)));
    send.send(5).unwrap();
    assert_eq!(woken.take(), 1);
    assert_eq!(poll(&mut first, &waker), Poll::Ready(&5));
    assert_eq!(woken.take(), 40);
    for other in &mut others {
        assert_eq!(poll(other, &waker), Poll::Ready(&5));
    }
}

#[test]
fn dropped_or_panicking_function_leaves_the_cell_empty() {
    let cell = OnceCell::new();
    let mut gone = Box::pin(cell.get_or_init(pending));
    let mut next = Box::pin(cell.get_or_init(|| async { panic!("in a function") }));
    let mut last = Box::pin(cell.get_or_init(|| async { 7 }));
    assert!(poll(&mut gone, Waker::noop()).is_pending());
    assert!(poll(&mut next, Waker::noop()).is_pending());
    assert!(poll(&mut last, Waker::noop()).is_pending());
    drop(gone);
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut next, Waker::noop()))).is_err());
    assert_eq!(cell.get(), None);
    assert_eq!(poll(&mut last, Waker::noop()), Poll::Ready(&7));
}

#[test]
fn value_is_dropped_once() {
    let value = Arc::new(());
    drop(OnceCell::from(value.clone()));
    let mut cell = OnceCell::new();
    now(cell.get_or_init(|| async { value.clone() }));
    assert!(cell.set(value.clone()).is_err());
    assert_eq!(Arc::strong_count(&value), 2);
    drop(cell.take());
    assert_eq!(Arc::strong_count(&value), 1);
    drop(cell);
}

#[test]
fn clone_debug_and_comparison_see_the_value() {
    let cell = OnceCell::from(1);
    assert_eq!(cell.clone(), cell);
    assert_ne!(OnceCell::new(), cell);
    assert_eq!(format!("{cell:?}"), "OnceCell { value: Some(1) }");
}
