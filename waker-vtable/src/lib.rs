//! Waker vtables over one's own task pointers.
#![cfg_attr(not(feature = "std"), no_std)]
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    ops::Deref,
    ptr::NonNull,
    task::{RawWaker, RawWakerVTable, Waker},
};

/// The four operations of a target.
#[repr(C)]
pub struct TargetVtable {
    ref_inc: unsafe fn(NonNull<WakeHeader>),
    ref_dec: unsafe fn(NonNull<WakeHeader>),
    wake_by_ref: unsafe fn(NonNull<WakeHeader>),
    wake_by_val: unsafe fn(NonNull<WakeHeader>),
}

impl TargetVtable {
    /// The operations of `T`.
    pub const fn of<T: WakeTarget>() -> Self {
        unsafe fn inc<T: WakeTarget>(this: NonNull<WakeHeader>) {
            // SAFETY: passed on.
            unsafe { T::ref_inc(this.cast()) }
        }
        unsafe fn dec<T: WakeTarget>(this: NonNull<WakeHeader>) {
            // SAFETY: passed on.
            unsafe { T::ref_dec(this.cast()) }
        }
        unsafe fn by_ref<T: WakeTarget>(this: NonNull<WakeHeader>) {
            // SAFETY: passed on.
            unsafe { T::wake_by_ref(this.cast()) }
        }
        unsafe fn by_val<T: WakeTarget>(this: NonNull<WakeHeader>) {
            // SAFETY: passed on.
            unsafe { T::wake_by_val(this.cast()) }
        }
        Self {
            ref_inc: inc::<T>,
            ref_dec: dec::<T>,
            wake_by_ref: by_ref::<T>,
            wake_by_val: by_val::<T>,
        }
    }
}

/// What every target starts with.
#[repr(transparent)]
pub struct WakeHeader(NonNull<TargetVtable>);

// SAFETY: a pointer to a constant.
unsafe impl Send for WakeHeader {}
// SAFETY: as above.
unsafe impl Sync for WakeHeader {}

impl WakeHeader {
    /// From a vtable.
    pub const fn new(vtable: &'static TargetVtable) -> Self {
        // SAFETY: a reference is not null.
        Self(unsafe { NonNull::new_unchecked(core::ptr::from_ref(vtable).cast_mut()) })
    }

    /// From a bigger vtable.
    ///
    /// # Safety
    /// `V` is `repr(C)` and begins with a `TargetVtable`.
    pub const unsafe fn with_vtable<V>(vtable: &'static V) -> Self {
        // SAFETY: a reference is not null.
        Self(unsafe { NonNull::new_unchecked(core::ptr::from_ref(vtable).cast_mut().cast()) })
    }

    /// The vtable.
    pub const fn vtable(&self) -> NonNull<TargetVtable> {
        self.0
    }
}

/// What a waker can point to.
///
/// # Safety
/// `repr(C)` with a `WakeHeader` first.
pub unsafe trait WakeTarget: Sized {
    /// Counts a reference.
    /// # Safety
    /// Live.
    unsafe fn ref_inc(this: NonNull<Self>);
    /// Drops a reference.
    /// # Safety
    /// Live.
    unsafe fn ref_dec(this: NonNull<Self>);
    /// Wakes.
    /// # Safety
    /// Live.
    unsafe fn wake_by_ref(this: NonNull<Self>);
    /// Wakes and drops a reference.
    /// # Safety
    /// Live.
    unsafe fn wake_by_val(this: NonNull<Self>);
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

fn parts(data: *const ()) -> (NonNull<WakeHeader>, &'static TargetVtable) {
    let header = data.cast_mut().cast::<WakeHeader>();
    // SAFETY: not null.
    let header = unsafe { NonNull::new_unchecked(header) };
    // SAFETY: live.
    let vtable = unsafe { header.as_ref() }.0;
    // SAFETY: static.
    (header, unsafe { vtable.as_ref() })
}

unsafe fn clone(data: *const ()) -> RawWaker {
    let (header, vtable) = parts(data);
    // SAFETY: live.
    unsafe { (vtable.ref_inc)(header) };
    RawWaker::new(data, &VTABLE)
}
unsafe fn wake(data: *const ()) {
    let (header, vtable) = parts(data);
    // SAFETY: live.
    unsafe { (vtable.wake_by_val)(header) };
}
unsafe fn wake_by_ref(data: *const ()) {
    let (header, vtable) = parts(data);
    // SAFETY: live.
    unsafe { (vtable.wake_by_ref)(header) };
}
unsafe fn drop_waker(data: *const ()) {
    let (header, vtable) = parts(data);
    // SAFETY: live.
    unsafe { (vtable.ref_dec)(header) };
}

/// Takes over one reference.
///
/// # Safety
/// One counted reference.
pub unsafe fn waker<T: WakeTarget>(this: NonNull<T>) -> Waker {
    // SAFETY: the contract.
    unsafe { Waker::new(this.as_ptr().cast_const().cast(), &VTABLE) }
}

/// A borrowed waker.
pub struct WakerRef<'a> {
    waker: ManuallyDrop<Waker>,
    target: PhantomData<&'a ()>,
}

impl WakerRef<'_> {
    /// Borrows.
    ///
    /// # Safety
    /// Live for the lifetime.
    pub unsafe fn new<T: WakeTarget>(this: NonNull<T>) -> Self {
        // SAFETY: passed on; never dropped.
        let waker = unsafe { waker(this) };
        Self {
            waker: ManuallyDrop::new(waker),
            target: PhantomData,
        }
    }
}

impl Deref for WakerRef<'_> {
    type Target = Waker;
    fn deref(&self) -> &Waker {
        &self.waker
    }
}
