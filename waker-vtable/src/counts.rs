//! The costs of the operations in read-modify-writes, as the README's table states them.
use crate::*;
use std::{ptr::NonNull, task::Waker};
use sync_shim::{
    atomic::{AtomicUsize, Ordering::Relaxed},
    count::counted,
};

struct Target {
    refs: AtomicUsize,
}

// SAFETY: the table is the default. The tests keep the target live.
unsafe impl WakeTarget for Target {
    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: the target is live.
        let this = unsafe { this.as_ref() };
        // Ordering: Relaxed, only counted here.
        this.refs.fetch_add(1, Relaxed);
    }
    unsafe fn ref_dec(this: NonNull<Self>) {
        // SAFETY: the target is live.
        let this = unsafe { this.as_ref() };
        // Ordering: Relaxed, only counted here.
        this.refs.fetch_sub(1, Relaxed);
    }
    unsafe fn wake_by_ref(this: NonNull<Self>) {
        // SAFETY: the target is live.
        let this = unsafe { this.as_ref() };
        // Ordering: Relaxed, only counted here.
        this.refs.fetch_or(1 << 63, Relaxed);
    }
    unsafe fn wake_by_val(this: NonNull<Self>) {
        // SAFETY: the caller has a reference. These tests count no reference that a wake drops.
        unsafe { Self::wake_by_ref(this) };
    }
}

fn rmws<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let (result, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    (result, counts.rmws)
}

#[test]
fn clone_drop_and_wake_cost_one_and_a_borrow_costs_none() {
    let target = Target {
        refs: AtomicUsize::new(1),
    };
    // SAFETY: the target outlives the waker.
    let (borrowed, cost) = rmws(|| unsafe { WakerRef::new(NonNull::from(&target)) });
    assert_eq!(cost, 0);
    let (clone, cost) = rmws(|| borrowed.clone());
    assert_eq!(cost, 1);
    assert_eq!(rmws(|| drop(clone)).1, 1);
    assert_eq!(rmws(|| borrowed.wake_by_ref()).1, 1);
    let last = borrowed.clone();
    assert_eq!(rmws(|| last.wake()).1, 1);
    assert_eq!(rmws(|| drop(borrowed)).1, 0);
}

#[test]
fn waker_cell_operations_cost_what_the_readme_says() {
    let cell = WakerCell::new();
    assert_eq!(rmws(|| cell.wake()).1, 1);
    assert_eq!(rmws(|| cell.register(Waker::noop())).1, 2);
    assert_eq!(rmws(|| cell.register(Waker::noop())).1, 2);
    assert_eq!(rmws(|| cell.wake()).1, 2);
}

#[test]
fn static_and_noop_wakers_cost_nothing() {
    struct Nothing;
    impl WakeRef for Nothing {
        fn wake(&self) {}
    }
    static NOTHING: Nothing = Nothing;
    for waker in [from_static(&NOTHING), Waker::noop().clone()] {
        let ((), cost) = rmws(|| {
            let clone = waker.clone();
            clone.wake_by_ref();
            clone.wake();
            drop(waker);
        });
        assert_eq!(cost, 0);
    }
}
