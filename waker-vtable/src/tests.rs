//! Which wakers are whose, and what is counted.
use crate::*;
use std::{
    ptr::NonNull,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::Waker,
};

#[repr(C)]
struct Target {
    header: WakeHeader,
    refs: AtomicUsize,
}

static VTABLE: TargetVtable = TargetVtable::of::<Target>();

// SAFETY: `repr(C)`, the header first and with its own table. The tests keep it live.
unsafe impl WakeTarget for Target {
    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: live.
        unsafe { this.as_ref() }.refs.fetch_add(1, Relaxed);
    }
    unsafe fn ref_dec(this: NonNull<Self>) {
        // SAFETY: live.
        unsafe { this.as_ref() }.refs.fetch_sub(1, Relaxed);
    }
    unsafe fn wake_by_ref(_: NonNull<Self>) {}
    unsafe fn wake_by_val(this: NonNull<Self>) {
        // SAFETY: the caller's reference.
        unsafe { Self::ref_dec(this) };
    }
}

#[test]
fn a_borrowed_waker_counts_only_its_clones() {
    let target = Target {
        header: WakeHeader::new(&VTABLE),
        refs: AtomicUsize::new(1),
    };
    {
        // SAFETY: the target outlives it.
        let waker = unsafe { WakerRef::new(NonNull::from(&target)) };
        assert_eq!(target.refs.load(Relaxed), 1);
        let clone = waker.clone();
        assert!(clone.will_wake(&waker));
        assert_eq!(target.refs.load(Relaxed), 2);
        clone.wake();
    }
    assert_eq!(target.refs.load(Relaxed), 1);
}

#[test]
fn ones_own_wakers_are_recognised_and_others_are_not() {
    static OTHER: TargetVtable = TargetVtable::of::<Target>();
    let target = Target {
        header: WakeHeader::new(&VTABLE),
        refs: AtomicUsize::new(1),
    };
    // SAFETY: the target outlives it.
    let waker = unsafe { WakerRef::new(NonNull::from(&target)) };
    assert_eq!(try_target(&waker, &VTABLE), Some(NonNull::from(&target)));
    assert_eq!(try_target::<Target>(&waker, &OTHER), None);
    assert_eq!(target_header(Waker::noop()), None);
}
