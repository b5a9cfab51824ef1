//! Wakers over a vtable of the target's type: one load and one jump fewer, and less to recognise them by.
//!
//! The vtable is a constant of a generic type. The compiler may make it once in every codegen unit, so two wakers
//! of one target may have different vtables, and `will_wake` may then be false where it could be true. That is allowed, and costs a clone.
use crate::{WakeTarget, WakerRef};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

struct Table<T>(PhantomData<T>);

impl<T: WakeTarget> Table<T> {
    const VTABLE: &'static RawWakerVTable =
        &RawWakerVTable::new(clone::<T>, wake::<T>, wake_by_ref::<T>, drop_waker::<T>);
}

/// # Safety
/// `data` is that of a waker of this file over a `T`.
unsafe fn target<T>(data: *const ()) -> NonNull<T> {
    // SAFETY: it was a `NonNull<T>`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

unsafe fn clone<T: WakeTarget>(data: *const ()) -> RawWaker {
    // SAFETY: called by a waker of this type.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the cloned waker has a reference.
    unsafe { T::ref_inc(this) };
    RawWaker::new(data, Table::<T>::VTABLE)
}

unsafe fn wake<T: WakeTarget>(data: *const ()) {
    // SAFETY: called by a waker of this type.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker goes.
    unsafe { T::wake_by_val(this) };
}

unsafe fn wake_by_ref<T: WakeTarget>(data: *const ()) {
    // SAFETY: called by a waker of this type.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker has a reference.
    unsafe { T::wake_by_ref(this) };
}

unsafe fn drop_waker<T: WakeTarget>(data: *const ()) {
    // SAFETY: called by a waker of this type.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker goes.
    unsafe { T::ref_dec(this) };
}

/// As [`waker`](crate::waker), with a vtable of `T`'s own: its operations are called without a look at the header.
///
/// Such wakers are unknown to [`target_header`](crate::target_header) and [`try_target`](crate::try_target), and
/// [`Waker::will_wake`] may be false of two that wake the same target.
///
/// # Safety
/// The caller gives up a reference to the target.
#[inline]
pub unsafe fn direct_waker<T: WakeTarget>(this: NonNull<T>) -> Waker {
    // SAFETY: the functions keep the contract of a waker if `T` keeps that of a target.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), Table::<T>::VTABLE) }
}

impl WakerRef<'_> {
    /// As [`new`](Self::new), over the vtable of [`direct_waker`].
    ///
    /// # Safety
    /// Somebody's reference keeps the target live for all of the lifetime.
    #[inline]
    pub unsafe fn direct<T: WakeTarget>(this: NonNull<T>) -> Self {
        // SAFETY: never dropped, the waker needs no reference of its own.
        Self::borrow(unsafe { direct_waker(this) })
    }
}
