//! Wakers with a vtable of the target's own type: a call needs one load and one jump less, but
//! [`try_target`](crate::try_target) does not recognise them.
//!
//! The vtable is a constant of a generic type, which the compiler may emit once in every codegen
//! unit. So two wakers of one target may have different vtables, and `will_wake` may be false where
//! it could be true. That is allowed, and costs a clone.
use crate::{WakeTarget, WakerRef};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

struct VtableOf<T>(PhantomData<T>);

impl<T: WakeTarget> VtableOf<T> {
    const VTABLE: &'static RawWakerVTable =
        &RawWakerVTable::new(clone::<T>, wake::<T>, wake_by_ref::<T>, drop_waker::<T>);
}

/// # Safety
/// `data` is the data of a waker that this module made for a `T`.
unsafe fn target<T>(data: *const ()) -> NonNull<T> {
    // SAFETY: the data was made from a `NonNull<T>`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

unsafe fn clone<T: WakeTarget>(data: *const ()) -> RawWaker {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the cloned waker has a reference.
    unsafe { T::ref_inc(this) };
    RawWaker::new(data, VtableOf::<T>::VTABLE)
}

unsafe fn wake<T: WakeTarget>(data: *const ()) {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker ends here, and gives up its reference.
    unsafe { T::wake_by_val(this) };
}

unsafe fn wake_by_ref<T: WakeTarget>(data: *const ()) {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker has a reference.
    unsafe { T::wake_by_ref(this) };
}

unsafe fn drop_waker<T: WakeTarget>(data: *const ()) {
    // SAFETY: a waker of this type calls this, with its own data.
    let this = unsafe { target::<T>(data) };
    // SAFETY: the waker ends here, and gives up its reference.
    unsafe { T::ref_dec(this) };
}

/// Creates a waker as [`waker`](crate::waker) does, with a vtable of `T`'s own: it calls the
/// operations without reading the header.
///
/// [`target_header`](crate::target_header) and [`try_target`](crate::try_target) do not recognise
/// such a waker. [`Waker::will_wake`] may return false for two wakers of the same target.
///
/// # Safety
/// The caller gives up a reference to the target.
#[inline]
pub unsafe fn direct_waker<T: WakeTarget>(this: NonNull<T>) -> Waker {
    // SAFETY: the functions keep the contract of a waker if `T` keeps that of a target.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), VtableOf::<T>::VTABLE) }
}

impl WakerRef<'_> {
    /// Borrows a target as [`new`](Self::new) does, with the vtable of [`direct_waker`].
    ///
    /// # Safety
    /// Some reference keeps the target live for all of the result's lifetime.
    #[inline]
    pub unsafe fn direct<T: WakeTarget>(this: NonNull<T>) -> Self {
        // SAFETY: the waker is never dropped, so it needs no reference of its own.
        Self::borrow(unsafe { direct_waker(this) })
    }
}
