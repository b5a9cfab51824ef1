use super::*;
use core::future::{poll_fn, ready};
use std::{cell::RefCell, panic, thread};

#[test]
fn clone_in_the_first_poll_is_equal_to_the_later_wakers() {
    let mut first = None;
    let equal = ThreadPark::block_on(poll_fn(|cx| match first.take() {
        None => {
            first = Some(cx.waker().clone());
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Some(first) => Poll::Ready(first.will_wake(cx.waker())),
    }));
    assert!(equal);
}

#[test]
fn wake_in_the_first_poll_is_not_lost() {
    let mut polls = 0;
    ThreadPark::block_on(poll_fn(|cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls < 3 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }));
    assert_eq!(polls, 3);
}

#[test]
fn reference_to_the_first_waker_serves_other_threads() {
    let mut clone: Option<Waker> = None;
    ThreadPark::block_on(poll_fn(|cx| {
        if let Some(clone) = clone.take() {
            assert!(clone.will_wake(cx.waker()));
            return Poll::Ready(());
        }
        let waker = cx.waker();
        clone = Some(thread::scope(|scope| {
            scope.spawn(|| waker.wake_by_ref());
            scope.spawn(|| waker.clone()).join().unwrap()
        }));
        Poll::Pending
    }));
}

/// No clone of the first poll's waker refers to the stack frame of the `block_on`.
#[test]
fn clones_outlive_a_block_on_that_is_ready_or_panics() {
    let kept = RefCell::new(Vec::new());
    let keep = |cx: &mut Context<'_>| {
        let waker = cx.waker().clone();
        kept.borrow_mut().extend([waker.clone(), waker]);
    };
    ThreadPark::block_on(poll_fn(|cx| {
        keep(cx);
        Poll::Ready(())
    }));
    let panics = panic::AssertUnwindSafe(|| {
        ThreadPark::block_on(poll_fn(|cx| -> Poll<()> {
            keep(cx);
            panic!("on purpose")
        }));
    });
    assert!(panic::catch_unwind(panics).is_err());
    let kept = kept.into_inner();
    assert!(kept[0].will_wake(&kept[1]) && !kept[0].will_wake(&kept[2]));
    thread::spawn(move || kept.into_iter().for_each(Waker::wake))
        .join()
        .unwrap();
}

#[test]
fn block_on_inside_a_first_poll_has_its_own_parker() {
    let mut inner = None;
    let outer = ThreadPark::block_on(poll_fn(|cx| match inner.take() {
        None => {
            inner = Some(ThreadPark::block_on(poll_fn(|cx| {
                Poll::Ready(cx.waker().clone())
            })));
            cx.waker().wake_by_ref();
            Poll::Pending
        }
        Some(inner) => Poll::Ready(inner.will_wake(cx.waker())),
    }));
    assert!(!outer);
    assert_eq!(ThreadPark::block_on(ready(7)), 7);
}
